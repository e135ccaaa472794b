"""The graphs of a log, and the code and kernels that were generated from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from tcw.compiler.trace.records import Graph, Location, Record, TextHash, Wrapper
from tcw.compiler.trace.records.graph import GraphKind
from tcw.compiler.trace.torch_logs import fx_text, output_code
from tcw.compiler.trace.torch_logs.entries import LogEntry
from tcw.compiler.trace.torch_logs.places import Files

KINDS: dict[str, GraphKind] = {
    "dynamo_output_graph": "captured",
    "aot_joint_graph": "joint",
    "aot_forward_graph": "forward",
    "aot_backward_graph": "backward",
    "aot_inference_graph": "inference",
    "inductor_post_grad_graph": "lowered",
}
"""Kind of entry -> kind of graph."""
NOTHING: Mapping[str, tuple[str, ...]] = {}


class Graphs:
    """The graphs read so far, and which of them is being lowered."""

    def __init__(
        self, emit: Callable[[Record], None], text: Callable[[str], TextHash], files: Files
    ) -> None:
        """`emit` writes a record, `text` keeps a text and returns its hash."""
        self._emit = emit
        self._text = text
        self._files = files
        self.kernels = 0
        """How many kernels were written."""
        self._graphs: dict[str, dict[str, Location]] = {}
        """Graph -> the user's line of each of its nodes."""
        self._names: dict[str, set[str]] = {}
        """Graph -> its nodes, for the graph that is made from it."""
        self._used: dict[str, int] = {}
        self.lowered: dict[str, str] = {}
        """Compile -> the graph that Inductor is lowering."""
        self.written: dict[str, str] = {}
        """Compile -> the graph whose code was generated last."""
        self._code: dict[str, tuple[str, str]] = {}
        """Compile -> generated code whose kernels are not written yet, and its graph."""

    @property
    def any(self) -> bool:
        """Whether the log has any graph."""
        return bool(self._names)

    def finish(self) -> None:
        """Write the kernels whose compile did not end."""
        for compile_id in list(self._code):
            self.write_kernels(compile_id)

    def graph(self, entry: LogEntry) -> None:
        """Add a graph."""
        kind, compile_id = KINDS[entry.kind], entry.compile_id
        if kind == "forward" and f"{compile_id}/joint" not in self._used:
            kind = "inference"  # its name before torch 2.9
        printed = fx_text.parse(entry.text)
        for (file, line), code in printed.lines.items():
            self._files.quote(file, line, code)
        parent = ""
        name = f"{compile_id}/{kind}"
        if kind == "captured":
            name = compile_id
        elif kind in ("joint", "inference"):
            parent = compile_id
        elif kind in ("forward", "backward"):
            parent = f"{compile_id}/joint"
        else:
            parent = self._lowered_from(compile_id, printed)
            name = f"{parent}/lowered"
            self.lowered[compile_id] = name
        if parent not in self._names:
            parent = parent if kind == "lowered" and parent in self._used else ""
        known = self._names.get(parent, set())
        nodes = tuple(
            msgspec.structs.replace(node, origins=(node.name,))
            if kind in ("forward", "backward", "lowered") and node.name in known
            else node
            for node in printed.nodes
        )
        if kind != "lowered":
            name = self._free(name)
        self._names[name] = {node.name for node in nodes}
        self._graphs[name] = {
            node.name: node.location for node in nodes if node.location is not None
        }
        self._emit(
            Graph(
                id=name,
                kind=kind,
                compile_id=compile_id,
                nodes=nodes,
                parent=parent,
                ops=sum(node.op.startswith("call_") for node in nodes),
                code=self._text(entry.text),
            )
        )

    def _free(self, name: str) -> str:
        """A further graph of this kind in one compile has a number: DDP splits graphs."""
        self._used[name] = count = self._used.get(name, 0) + 1
        return name if count == 1 else f"{name}.{count}"

    def _lowered_from(self, compile_id: str, printed: fx_text.FxText) -> str:
        inputs = (node.name for node in printed.nodes if node.op == "placeholder")
        backward = any(name.startswith("tangents_") for name in inputs)
        kind = "backward" if backward else self.of_forward(compile_id)
        name = f"{compile_id}/{kind}"
        count = self._used.get(name, 0)
        return name if count <= 1 else f"{name}.{count}"

    def of_forward(self, compile_id: str) -> str:
        """The kind of the graph that runs a compile's forward."""
        return "forward" if f"{compile_id}/forward" in self._used else "inference"

    def output(self, entry: LogEntry) -> None:
        """Add the generated code of a graph."""
        compile_id, code = entry.compile_id, entry.text
        self.write_kernels(compile_id)
        graph = self.lowered.pop(compile_id, "")
        if not graph:
            kind = output_code.graph_kind(code) or "inference"
            graph = f"{compile_id}/{kind}/lowered"
        self.written[compile_id] = graph
        self._code[compile_id] = code, graph
        self._emit(Wrapper(graph=graph, language="python", text=self._text(code)))

    def mapping(self, entry: LogEntry) -> None:
        """Which nodes each kernel computes, where torch was asked to track it."""
        found = entry.json
        made = found.get("cppCodeToPost") if isinstance(found, dict) else None
        mapped: dict[str, tuple[str, ...]] = {}
        for name, nodes in made.items() if isinstance(made, dict) else ():
            if isinstance(nodes, list):
                kernel = name.partition(":")[0]
                named = [node for node in nodes if isinstance(node, str)]
                mapped[kernel] = tuple(dict.fromkeys([*mapped.get(kernel, ()), *named]))
        self.write_kernels(entry.compile_id, mapped)

    def write_kernels(
        self, compile_id: str, mapped: Mapping[str, tuple[str, ...]] = NOTHING
    ) -> None:
        """Write the kernels of the code that this compile has generated, if they are not yet.
        `mapped`: kernel -> the nodes that it computes."""
        code, graph = self._code.pop(compile_id, ("", ""))
        if not code:
            return
        places = self._graphs.get(graph, {})
        for kernel in output_code.kernels_of(code, graph, self.kernels, self._text, places, mapped):
            self.kernels += 1
            self._emit(kernel)
