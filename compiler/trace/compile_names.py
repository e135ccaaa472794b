"""Names of compiles.

torch numbers compiles `frame/compile`, and begins with `0/0` again after `torch._dynamo.reset()`.
Here the ids after the first reset begin with `r1.`, after the second with `r2.`: `r1.0/0`.
"""

from __future__ import annotations

import re

RESET = re.compile(r"^r(?P<resets>\d{1,9})\.")
"""The prefix of a name."""


class CompileNames:
    """The names of one process, or of one log, so far. A reset is known from an id that begins
    a second time."""

    def __init__(self) -> None:
        self._prefix = ""
        self._resets = 0
        self._begun: set[str] = set()
        """torch's ids since the last reset."""
        self._names: dict[str, str] = {}
        """torch's id -> the name of the last compile that had it."""

    def begin(self, compile_id: str) -> str:
        """The name of a compile that begins now. A restart does not begin one."""
        if compile_id in self._begun:
            self._resets += 1
            self._prefix = f"r{self._resets}."
            self._begun.clear()
        self._begun.add(compile_id)
        name = self._names[compile_id] = self._prefix + compile_id
        return name

    def of(self, compile_id: str) -> str:
        """The name of a compile that has begun. Without any of this id since the last reset, that
        of an earlier one: a backward may be compiled after the reset."""
        if compile_id in self._begun or compile_id not in self._names:
            return self._prefix + compile_id if compile_id else ""
        frame, _, number = compile_id.rpartition("/")
        if number.isdigit() and f"{frame}/{int(number[:9]) - 1}" in self._begun:
            return self._prefix + compile_id  # about to begin: torch says first why it recompiles
        return self._names[compile_id]


def compile_of(graph: str) -> str:
    """The compile of a graph: `0/0/bucket1/backward` -> `0/0`."""
    return "/".join(graph.split("/")[:2])
