"""Loop nests in tests, from their text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tcw.compiler.inductor.loop_bodies import NodeLoops, indented
from tcw.compiler.trace.commas import split_at_commas
from tcw.compiler.trace.records import LoopLine

_LOOP = re.compile(r"(for|reduce) (\w+) in (.+):$")
_OPERATION = re.compile(r"(?:(\w+) = )?(\w+)\((.*)\)$")


def nest_in(text: str) -> tuple[LoopLine, ...]:
    """The nest that `nest_text` prints as `text`."""
    return tuple(_line(line) for line in text.splitlines())


def nest_text(nest: Iterable[LoopLine]) -> str:
    return "".join(f"{'  ' * line.depth}{line.text}\n" for line in nest)


def loops_in(text: str) -> NodeLoops:
    """The loops around a body, and the body."""
    nest = nest_in(text)
    count = sum(bool(line.variable) for line in nest)
    return NodeLoops(nest[:count], tuple(indented(nest[count:], -count)))


def _line(text: str) -> LoopLine:
    words = text.lstrip(" ")
    depth = (len(text) - len(words)) // 2
    if match := _LOOP.match(words):
        size = int(match[3]) if match[3].isdigit() else match[3]
        return LoopLine(depth=depth, variable=match[2], size=size, reduced=match[1] == "reduce")
    if match := _OPERATION.match(words):
        arguments = tuple(split_at_commas(match[3]))
        return LoopLine(depth=depth, result=match[1] or "", operation=match[2], arguments=arguments)
    if words.startswith("return "):
        return LoopLine(depth=depth, operation="return", arguments=(words.removeprefix("return "),))
    return LoopLine(depth=depth, result=words.removesuffix(":"), operation="subblock")
