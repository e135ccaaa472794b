"""What a compiled function is called, where several have one name: `Expert.forward`."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cached_property

from tcw.compiler.trace.records import FrameStart
from tcw.viewers.recording import Recording
from tcw.viewers.syntax import statements


class FunctionNames:
    """The names of the functions of all frames. A name that is two functions' gets its classes in
    front, as far as the recorded source has them."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._starts: dict[str, FrameStart] = {}
        places: dict[str, set[tuple[str, int]]] = defaultdict(set)
        for start in recording.all(FrameStart):
            self._starts.setdefault(start.compile_id, start)
            place = start.wrapped or start.location
            if start.resumes_at is None and start.compile_id.endswith("/0"):
                places[start.called].add((place.file, place.line))
        self._shared = {name for name, found in places.items() if len(found) > 1}

    def of(self, compile_id: str, name: str) -> str:
        """`name`, which the compile's function has in torch's words, if no other has it."""
        start = self._starts.get(compile_id)
        if start is None or start.called not in self._shared:
            return name
        place = start.wrapped or start.location
        return self._qualified.get((place.file, place.line, start.called), name)

    @cached_property
    def _qualified(self) -> dict[tuple[str, int, str], str]:
        starts = [start for start in self._starts.values() if start.called in self._shared]
        found: dict[tuple[str, int, str], str] = {}
        for file in {(start.wrapped or start.location).file for start in starts}:
            tree = statements("\n".join(self._recording.source(file)))
            for line, names in _methods(tree, ()):
                found[file, line, names[-1]] = ".".join(names)
        return found


def _methods(tree: ast.AST, outer: tuple[str, ...]) -> list[tuple[int, tuple[str, ...]]]:
    """The first line of each function, and the classes and functions around it with its name. The
    first line of code is that of the first decorator."""
    found = []
    for node in ast.iter_child_nodes(tree):
        names = outer
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = (*outer, node.name)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            found.append((first, names))
        found += _methods(node, names)
    return found
