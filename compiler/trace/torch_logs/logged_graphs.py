"""The graphs of a log, and the code and kernels that were generated from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from tcw.compiler.trace.generated_code import definitions
from tcw.compiler.trace.records import Graph, Kernel, Location, Record, TextHash, Wrapper
from tcw.compiler.trace.records.graph import GraphKind
from tcw.compiler.trace.refs import digits
from tcw.compiler.trace.torch_logs import fx_text
from tcw.compiler.trace.torch_logs.entries import LogEntry
from tcw.compiler.trace.torch_logs.logged_places import LogSources

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
        self, emit: Callable[[Record], None], text: Callable[[str], TextHash], files: LogSources
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
            kind = graph_kind(code) or "inference"
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
        for kernel in kernels_of(code, graph, self.kernels, self._text, places, mapped):
            self.kernels += 1
            self._emit(kernel)


_CALLS = re.compile(r"^ *def (?:call|partition_\d+)\((?:self, )?args\b.*$", re.MULTILINE)
_LIBRARY = re.compile(
    r"(?:^|= )(?P<name>extern_kernels\.\w+"
    r"|(?:torch\.ops\.|aten\.|inductor_ops\.|_quantized\.)[\w.]+)\("
)
_CALLED = re.compile(r"^ *(?:\w+ = )?(?P<name>\w+)(?:\.run)?\(")
_SORTED = re.compile(r"Original ATen: \[(?P<operations>[^\]]*)\]")
_MAPPED = re.compile(r"^#   (?P<source>[^\n=]+?) => (?P<nodes>[\w, ]+)$", re.MULTILINE)
_FUSED = re.compile(r"^(?:cpp|triton_[a-z]{2,4}|triton)_fused_(?P<words>.*?)(?:_\d{1,9})?$")
_BACKWARD = re.compile(r"^# AOT ID: \['\d+_(?P<kind>forward|backward|inference)'\]", re.MULTILINE)
MOST = 100_000
"""Kernels of one graph that are read."""


@dataclass
class _Made:
    """A kernel's definition."""

    text: str
    language: Literal["cpp", "triton"]
    operations: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


def graph_kind(code: str) -> str:
    """`forward`, `backward` or `inference`, as the code says itself; "" if it does not."""
    match = _BACKWARD.search(code, 0, 2000)
    return match["kind"] if match else ""


def kernels_of(
    code: str,
    graph: str,
    first: int,
    store: Callable[[str], TextHash],
    places: Mapping[str, Location],
    mapped: Mapping[str, tuple[str, ...]],
) -> list[Kernel]:
    """The kernels that the code calls, in order of their first call, numbered from `first` on.

    `places`: node of the lowered graph -> the user's line. `mapped`: kernel -> its nodes, where
    torch says so apart from the code.
    """
    made = _definitions(code)
    found: dict[str, list[int]] = {}
    order: list[tuple[str, bool]] = []
    for step, (name, library) in enumerate(_calls(code, made)):
        if library:
            order.append((name, True))
        elif name not in found:
            found[name] = []
            order.append((name, False))
        if not library:
            found[name].append(step)
        if len(order) >= MOST:
            break
    kernels = []
    for number, (name, library) in enumerate(order, first):
        one = None if library else made[name]
        nodes = mapped.get(name) or (one.nodes if one else ())
        nodes = tuple(node for node in nodes if node in places or not places)
        lines = {places[node]: None for node in nodes if node in places}
        kernels.append(
            Kernel(
                id=f"k{number}",
                graph=graph,
                name=name,
                label=_label(name, one),
                language=one.language if one else "aten",
                text=store(one.text) if one else "",
                origins=nodes,
                locations=tuple(sorted(lines, key=lambda place: (place.file, place.line))),
                no_line="" if lines else "not in this log",
            )
        )
    return kernels


def _definitions(code: str) -> dict[str, _Made]:
    made: dict[str, _Made] = {}
    for defined in definitions(code):
        if not defined.text:
            continue
        comment = _comment(code, defined.start)
        operations = _SORTED.search(comment)
        nodes = [
            node.strip()
            for match in _MAPPED.finditer(comment)
            for node in match["nodes"].split(",")
        ]
        made[defined.name] = _Made(
            defined.text.strip("\n"),
            "cpp" if defined.how.startswith("cpp") else "triton",
            tuple(
                part.strip().removeprefix("aten.").removeprefix("prims.")
                for part in (operations["operations"].split(",") if operations else ())
                if part.strip()
            ),
            tuple(dict.fromkeys(filter(None, nodes))),
        )
    return made


def _comment(code: str, at: int) -> str:
    """The comment lines directly above."""
    start = at
    while start > 0:
        before = code.rfind("\n", 0, start - 1) + 1
        row = code[before:start]
        if not row.startswith("#"):
            break
        start = before
    return code[start:at]


def _calls(code: str, made: Mapping[str, _Made]) -> list[tuple[str, bool]]:
    """(name, whether it is a library's) of each call, in order."""
    found = []
    starts = [match.end() for match in _CALLS.finditer(code)]
    for start in starts:
        for row in code[start:].split("\n")[1:]:
            if row.strip() and (not row.startswith("    ") or row.startswith("    def ")):
                break
            called = _CALLED.match(row)
            if called is not None and called["name"] in made:
                found.append((called["name"], False))
                continue
            library = _LIBRARY.search(row.strip())
            if library is not None:
                found.append((library["name"], True))
    return found


def _label(name: str, made: _Made | None) -> str:
    if made is not None and made.operations:
        return ", ".join(word.removeprefix("_").removeprefix("native_") for word in made.operations)
    fused = _FUSED.match(name)
    if fused is not None:
        return fused["words"].strip("_")
    words = [word for word in name.split(".") if digits(word) is None]
    skip = ("default", "out")
    last = [word for word in words[1:] if word not in skip and not word.endswith("_out")]
    return last[0].strip("_") if last else name
