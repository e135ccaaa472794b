"""What a kernel is called in the workbench: the same in the graph, the code and every list."""

from __future__ import annotations

from collections.abc import Iterable

from compiler.trace.compile_names import compile_of
from compiler.trace.records import Graph, Kernel
from viewers.labels import kernel_label, short_label
from viewers.panes.names import is_view, short_target
from viewers.panes.view import Facts


def kernel_name(facts: Facts, kernel: Kernel) -> str:
    """`softmax`, `addmm qkv`. Where too many operations are recorded: those of the user's
    program."""
    known = facts.kernel_names.get(kernel.id)
    if known is None:
        known = facts.kernel_names[kernel.id] = _name(facts, kernel)
    return known


def kernel_title(facts: Facts, kernel: Kernel) -> str:
    """`k4 softmax`; with its last line where kernels beside it have its name: `k2 copy :31`."""
    name = kernel_name(facts, kernel)
    graph = facts.recording.graphs.get(kernel.graph)
    compile_id = graph.compile_id if graph else compile_of(kernel.graph)
    same = [
        one
        for one in facts.kernels_of.get(compile_id, [])
        if one.predicted == kernel.predicted and kernel_name(facts, one) == name
    ]
    line = last_line(kernel)
    apart = line and len({last_line(one) for one in same}) > 1
    return f"{kernel.id} {name} :{line}" if apart else f"{kernel.id} {name}"


def last_line(kernel: Kernel) -> int:
    """The last user line that a kernel computes; 0 where none is known."""
    return max((place.line for place in kernel.locations), default=0)


def purpose(facts: Facts, graph: Graph, names: Iterable[str]) -> str:
    """The captured operations that nodes of a graph come from; "" if the trace does not say."""
    nodes = facts.nodes(graph.id)
    wanted = dict.fromkeys(name for name in names if name in nodes and not is_view(nodes[name]))
    while graph.kind != "captured":
        known = facts.nodes(graph.id)
        origins = (known[name].origins for name in wanted if name in known)
        wanted = dict.fromkeys(name for group in origins for name in group)
        parent = facts.recording.graphs.get(graph.parent)
        if parent is None or parent is graph:
            return ""
        graph = parent
    known = facts.nodes(graph.id)
    targets = (short_target(known[name].target) for name in wanted if name in known)
    return short_label(", ".join(dict.fromkeys(targets)))


def _name(facts: Facts, kernel: Kernel) -> str:
    label = kernel_label(kernel)
    graph = facts.recording.graphs.get(kernel.graph)
    if graph is None:
        return label
    if kernel.language == "aten":
        nodes = facts.nodes(graph.id)
        found = [nodes[name] for name in _origins(facts, kernel) if name in nodes]
        main = next((one for one in reversed(found) if not is_view(one)), None)
        if main is None or label != short_label(short_target(main.target)):
            return label
        return f"{label} {main.module.rpartition('.')[2]}".rstrip()
    if label.endswith("…"):
        return purpose(facts, graph, _origins(facts, kernel)) or label
    return label


def _origins(facts: Facts, kernel: Kernel) -> tuple[str, ...]:
    """The nodes of its graph that a kernel computes."""
    records = (facts.operations.get((kernel.graph, name)) for name in kernel.nodes)
    return kernel.origins or tuple(one for record in records if record for one in record.origins)
