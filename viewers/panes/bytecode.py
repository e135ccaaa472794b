"""The bytecode that Dynamo traces: the current instruction, its line, and inlined functions."""

from __future__ import annotations

import re
from functools import partial

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import Bytecode
from tcw.viewers.kit.cells import cut, pad
from tcw.viewers.kit.spans import Role, Span, text
from tcw.viewers.panes.rows import Content, Row, Rows, empty
from tcw.viewers.panes.stepping import book, none_recorded, state_of
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain
from tcw.viewers.summary.steps import StepBook, StepState, instructions
from tcw.viewers.words import plural

QUIET = frozenset({
    "RESUME", "PRECALL", "CACHE", "NOP", "PUSH_NULL", "EXTENDED_ARG", "COPY_FREE_VARS",
    "MAKE_CELL", "NOT_TAKEN",
})  # fmt: skip
"""Instructions that tell a reader nothing: tidied code omits them."""

OPERATORS = (
    "+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^",
    "+=", "&=", "//=", "<<=", "@=", "*=", "%=", "|=", "**=", ">>=", "-=", "/=", "^=", "[]",
)  # fmt: skip
"""BINARY_OP's argument, as CPython numbers it (Lib/opcode.py, `_nb_ops`)."""

_COUNTS = {
    "CALL": "argument",
    "CALL_FUNCTION": "argument",
    "CALL_METHOD": "argument",
    "CALL_KW": "argument",
    "CALL_FUNCTION_KW": "argument",
    "BUILD_TUPLE": "item",
    "BUILD_LIST": "item",
    "BUILD_SET": "item",
    "BUILD_STRING": "part",
    "UNPACK_SEQUENCE": "item",
}
NAME = 15


def argument_words(opcode: str, argument: str) -> str:
    """`BINARY_OP 5` -> `*`, `CALL 2` -> `2 arguments`; anything else as it is."""
    count = refs.digits(argument)
    if opcode == "BINARY_OP" and count is not None and count < len(OPERATORS):
        return OPERATORS[count]
    noun = _COUNTS.get(opcode)
    if noun is not None and count is not None:
        return plural(count, noun)
    if opcode == "RESUME":
        return ""
    if opcode == "KW_NAMES":
        return ", ".join(re.findall(r"'([^']*)'", argument)) or argument
    return argument


def content(view: View, width: int) -> Content:
    """The function that is traced; tidied, it lacks the instructions that do nothing."""
    state = state_of(view)
    if state is None:
        return Content("bytecode", rows=none_recorded(view, width))
    steps, frame = book(view), state.frame
    code = steps.bytecode(frame, view.derived.whole)
    if code is None:
        why = f"the trace has no bytecode of {frame.function}"
        right: tuple[Span, ...] = ((f"ip {state.step.ip}", "dim"),)
        return Content("bytecode", plain(frame.function), right, empty(width, why))
    known = instructions(view.derived.whole.text(code.text))
    shown = [
        ip
        for ip, (opcode, _) in enumerate(known)
        if view.raw or opcode not in QUIET or ip == state.step.ip
    ]
    lines = {ip: steps.line(code, ip, *known[ip]) for ip in shown}
    make = partial(_row, view, state, steps, code, known, shown, lines, width)
    file = frame.file
    row_refs = [refs.source(file, lines[ip]) if lines[ip] else "" for ip in shown]
    right = ((f"ip {state.step.ip} of {len(known)}", "dim"),)
    if view.raw:
        right = (("raw  ", "dim"), *right)
    rows = Rows(len(shown), make, [""] * len(row_refs))
    start = f"ip:{state.step.ip}"
    return Content("bytecode", plain(frame.function), right, rows, start, tracks=True)


def _row(
    view: View,
    state: StepState,
    steps: StepBook,
    code: Bytecode,
    known: tuple[tuple[str, str], ...],
    shown: list[int],
    lines: dict[int, int],
    width: int,
    index: int,
) -> Row:
    ip = shown[index]
    opcode, argument = known[ip]
    here = ip == state.step.ip
    line = lines[ip]
    first = line and (index == 0 or lines[shown[index - 1]] != line)
    words = opcode if view.raw else opcode.lower()
    argument = argument if view.raw else argument_words(opcode, argument)
    quiet: Role = "strong" if here else "text" if ip > state.step.ip else "dim"
    spans: list[Span] = [text(pad(cut(words, 22), NAME) + " ", quiet)]
    tone: Role = "text" if here else "dim"
    spans.append(text(argument, tone))
    called = steps.inlined(code, ip, line)
    if called:
        spans.append(text(f"  → {called}", "accent"))
    return Row(
        gutter=(
            (f"{line if first else '':>5}", "faint"),
            (" ▸" if here else "  ", "accent"),
            (f"{ip:>4} ", "accent" if here else "faint"),
        ),
        body=tuple(spans),
        key=f"ip:{ip}",
        selects=refs.source(state.frame.file, line) if line else "",
        copies=f"{ip} {opcode} {known[ip][1]}".rstrip(),
    )
