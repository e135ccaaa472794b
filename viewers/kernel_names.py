"""Names of kernels: the same in graph, code, lists and reports."""

from __future__ import annotations

from collections.abc import Iterable

from tcw.compiler.trace.compile_names import compile_of
from tcw.compiler.trace.records import Graph, Kernel
from tcw.viewers.labels import is_view, kernel_label, short_label, short_target
from tcw.viewers.recording import Recording


class KernelNames:
    """The names of the kernels of one recording."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._known: dict[str, str] = {}

    def name(self, kernel: Kernel) -> str:
        """`softmax`, `addmm qkv`. If too many operations are recorded: those of the user's
        program."""
        known = self._known.get(kernel.id)
        if known is None:
            known = self._known[kernel.id] = self._name(kernel)
        return known

    def title(self, kernel: Kernel) -> str:
        """`k4 softmax`; with its last line if other kernels of the compile have its name:
        `k2 copy :31`."""
        name = self.name(kernel)
        graph = self.recording.graphs.get(kernel.graph)
        compile_id = graph.compile_id if graph else compile_of(kernel.graph)
        same = [
            one
            for one in self.recording.kernels_of.get(compile_id, [])
            if one.predicted == kernel.predicted and self.name(one) == name
        ]
        line = last_line(kernel)
        apart = line and len({last_line(one) for one in same}) > 1
        return f"{kernel.id} {name} :{line}" if apart else f"{kernel.id} {name}"

    def purpose(self, graph: Graph, names: Iterable[str]) -> str:
        """The captured operations that nodes of a graph come from; "" if the trace does not say."""
        nodes = self.recording.nodes(graph.id)
        wanted = dict.fromkeys(name for name in names if name in nodes and not is_view(nodes[name]))
        while graph.kind != "captured":
            known = self.recording.nodes(graph.id)
            origins = (known[name].origins for name in wanted if name in known)
            wanted = dict.fromkeys(name for group in origins for name in group)
            parent = self.recording.graphs.get(graph.parent)
            if parent is None or parent is graph:
                return ""
            graph = parent
        known = self.recording.nodes(graph.id)
        targets = (short_target(known[name].target) for name in wanted if name in known)
        return short_label(", ".join(dict.fromkeys(targets)))

    def _name(self, kernel: Kernel) -> str:
        label = kernel_label(kernel)
        graph = self.recording.graphs.get(kernel.graph)
        if graph is None:
            return label
        if not kernel.generated:
            nodes = self.recording.nodes(graph.id)
            found = [nodes[name] for name in self._origins(kernel) if name in nodes]
            main = next((one for one in reversed(found) if not is_view(one)), None)
            if main is None or label != short_label(short_target(main.target)):
                return label
            module = _module(main.module)
            return label if module == label else f"{label} {module}".rstrip()
        if label.endswith("…"):
            return self.purpose(graph, self._origins(kernel)) or label
        return label

    def _origins(self, kernel: Kernel) -> tuple[str, ...]:
        """The nodes of its graph that a kernel computes."""
        operations = self.recording.operations
        records = (operations.get((kernel.graph, name)) for name in kernel.nodes)
        return kernel.origins or tuple(
            one for record in records if record for one in record.origins
        )


def _module(path: str) -> str:
    """`qkv` of `layers.0.qkv`; `attention.self` and `net.0`, for `self` and `0` say nothing."""
    rest, _, last = path.rpartition(".")
    return (
        f"{rest.rpartition('.')[2]}.{last}" if rest and (last == "self" or last.isdigit()) else last
    )


def last_line(kernel: Kernel) -> int:
    """The last user line that a kernel computes; 0 if none is known."""
    return max((place.line for place in kernel.locations), default=0)
