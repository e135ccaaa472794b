"""Kernels in the code that Inductor generated (`inductor_output_code`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from tcw.compiler.trace.generated_code import definitions
from tcw.compiler.trace.records import Kernel, Location, TextHash
from tcw.compiler.trace.refs import digits

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
            node.strip() for one in _MAPPED.finditer(comment) for node in one["nodes"].split(",")
        ]
        made[defined.name] = _Made(
            defined.text.strip("\n"),
            "cpp" if defined.how.startswith("cpp") else "triton",
            tuple(
                one.strip().removeprefix("aten.").removeprefix("prims.")
                for one in (operations["operations"].split(",") if operations else ())
                if one.strip()
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
