"""The input of the advice on a recompile: one failed guard, and what is known around it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tcw.compiler.capture.advice.broken import Advised, parse
from tcw.compiler.capture.advice.user_source import UserSource
from tcw.compiler.capture.recompile_advice.users_call import UsersCall
from tcw.compiler.trace.source_names import root_of

Settings = Mapping[str, object]


@dataclass(frozen=True)
class Facts:
    """What is known of the guarded value itself, in the call that recompiled."""

    parameter: bool = False
    """It is an `nn.Parameter`."""
    contiguous: bool = False
    """torch calls the tensor contiguous, whatever its strides."""
    leaf: bool = True
    """No gradient flows through the tensor to what it was computed from."""
    marked: bool = False
    """Its sizes are marked as dynamic."""
    owner: str = ""
    """Class of the object that has the value: the optimizer of a `param_groups` entry."""
    owner_source: UserSource | None = None
    """The source of that class, if it is the user's."""
    default: str = ""
    """Of a setting of an optimizer: what its constructor was given."""
    indexes_list: bool = False
    """The number indexes a list, whose items are no part of one tensor."""


@dataclass(frozen=True)
class ChangedValue:
    """One failed guard, from `parse_failed_guard` and the recorded guards."""

    what: str
    kind: str = ""
    source: str = ""
    """torch's expression."""
    subject: str = ""
    """`source` in the terms of the frame's caller."""
    name: str = ""
    """What was compared, in the same terms: the subject, or one of its sizes or settings."""
    expected: str = ""
    seen: str = ""
    index: int | None = None
    guard: str = ""
    """The condition in readable form."""
    described: str = ""
    """Description of the guarded value when the entry was compiled."""
    resumed: bool = False
    """The frame resumes after a graph break."""
    made: bool = False
    """The model computed the value, before that break or in a function that runs in Python: no
    argument that the caller could change."""
    sizes: tuple[tuple[str, int], ...] = ()
    """If a size failed: each (argument, dimension) whose size changed."""
    by_chance: bool = False
    """Two sizes that differ now were equal in the call that compiled: torch took them for one."""
    line: str = ""
    """The source line that made torch depend on the value."""
    passed: Literal["", "*", "**"] = ""
    """Set if the source is the frame's whole `*args` or `**kwargs`."""
    wrapped: bool = False
    """The frame is a decorator's wrapper, and the entry is for another function that it wraps."""
    facts: Facts = field(default_factory=Facts)
    function: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    """The user's function whose line made torch depend on the value."""
    source_text: UserSource | None = None
    """The user's file that has this function."""
    call: UsersCall | None = None
    """The user's call of the compiled function; None if tcw makes the calls."""
    resumes: tuple[UserSource, int] | None = None
    """If the frame resumes after a graph break: the source and the line of that break."""

    @property
    def statement(self) -> ast.stmt | None:
        """The first line of the statement that made torch depend on the value, with no body."""
        line = self.line.strip()
        if line.startswith("elif "):
            line = line[2:]
        return parse((line,)) or parse((line, " pass"))

    @property
    def root(self) -> str:
        return root_of(self.subject)

    @property
    def on_stack(self) -> bool:
        """Whether a graph break in the middle of an expression left the value on the stack."""
        return self.resumed and STACK.match(self.source) is not None


AdviceRule = Callable[[ChangedValue, Settings], Advised]

ARGUMENT = re.compile(r"^L\['(?!self'\])[^']+'\](\[[^\]]+\])*$")
"""A source that is an argument of the frame, or an item of one."""
STACK = re.compile(r"^L\['___stack\d+'\]$")
"""A value that was on the stack at a graph break; no name of the user's."""
MODULE_ATTRIBUTE = re.compile(
    r"^L\['self'\](?:\._modules\['[^']+'\])*(?:\.(?P<plain>\w+)|\.__dict__\['(?P<own>\w+)'\])$"
)


def attribute_of(source: str) -> str:
    """`act` of `L['self'].act`; "" if it is no attribute of a module."""
    match = MODULE_ATTRIBUTE.match(source)
    return (match["plain"] or match["own"]) if match else ""
