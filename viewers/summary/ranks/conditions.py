"""The conditions of the program under which a line runs, read from its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from tcw.compiler.trace.records import Location
from tcw.viewers.recording import Recording
from tcw.viewers.summary.place import Place
from tcw.viewers.syntax import statements

_RANK = re.compile(r"(?:^|[^a-z])(?:rank|is_main_process|is_master|is_world_process_zero)", re.I)
"""In a condition that is another one on each rank."""


def condition_of(recording: Recording, stack: Sequence[Location]) -> Place | None:
    """The condition that decides whether the innermost of these lines runs: the innermost one that
    asks for the rank, else the innermost in the function of the line itself."""
    places = [
        Place(location.file, line, text=recording.line(location.file, line))
        for location in reversed(stack)
        for line in _conditions(recording, location)
    ]
    by_rank = (place for place in places if asks_for_rank(place.text))
    nearest = _conditions(recording, stack[-1]) if stack else ()
    return next(by_rank, places[0] if nearest else None)


def asks_for_rank(text: str) -> bool:
    return _RANK.search(text) is not None


def calls_of(recording: Recording, function: str) -> list[Location]:
    """The lines of the program that call a function by this name, or `.name`."""
    name = function.rpartition(".")[2]
    return [
        Location(file=file, line=line)
        for file in recording.files
        for line in _calls("\n".join(recording.source(file)), name)
    ]


def _conditions(recording: Recording, location: Location) -> tuple[int, ...]:
    lines = recording.source(location.file)
    return _around("\n".join(lines), location.line) if lines else ()


@lru_cache(maxsize=64)
def _tree(source: str) -> ast.Module:
    return statements(source)


@lru_cache(maxsize=512)
def _around(source: str, line: int) -> tuple[int, ...]:
    """Lines of the conditions around a line within its function, the innermost first."""
    found: list[int] = []
    for node in _path(_tree(source), line):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.clear()
        elif isinstance(node, (ast.If, ast.While)):
            first = node.test.lineno
            if line > (node.test.end_lineno or first) or node.body[0].lineno == line:
                found.append(first)
        elif isinstance(node, ast.IfExp):
            found.append(node.test.lineno)
    return tuple(reversed(found))


def _path(node: ast.AST, line: int) -> Iterator[ast.AST]:
    """The nodes that contain a line, outermost first."""
    while True:
        inside = (one for one in ast.iter_child_nodes(node) if _contains(one, line))
        if (found := next(inside, None)) is None:
            return
        node = found
        yield node


def _contains(node: ast.AST, line: int) -> bool:
    first = getattr(node, "lineno", None)
    last = getattr(node, "end_lineno", None)
    return first is not None and last is not None and first <= line <= last


@lru_cache(maxsize=512)
def _calls(source: str, name: str) -> tuple[int, ...]:
    found = []
    for node in ast.walk(_tree(source)):
        if isinstance(node, ast.Call):
            called = node.func
            own = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            if own == name:
                found.append(node.lineno)
    return tuple(found)
