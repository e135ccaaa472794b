"""The loop nest of a node of the value graph, one operation per line.

The operations have the names of Inductor's loop bodies (`compiler/inductor/loop_bodies.py`), so
that the viewers show the nodes of both engines alike.
"""

from __future__ import annotations

from collections.abc import Iterable

from tcw.compiler.loops.expressions import (
    Const,
    Expression,
    Gather,
    IndexTerm,
    Iota,
    Load,
    Op,
    SizeOf,
)
from tcw.compiler.loops.graph import Compute, Map, Reduce, Scan, Store, reads
from tcw.compiler.loops.layouts import (
    Layout,
    Shape,
    View,
    normalize,
    refine,
    row_major,
    strides_over,
)
from tcw.compiler.loops.sizes import Size
from tcw.compiler.trace import records
from tcw.compiler.trace.records import LoopLine

_NAMES = {"div": "truediv", "remainder": "mod", "floor_divide": "floordiv", "bitwise_not": "invert"}
"""Operators with other names in Inductor's bodies, and thus in the viewers."""


def nest_lines(node: Compute) -> tuple[LoopLine, ...]:
    """The loops of one node, kept digits outermost, followed by the computation."""
    digits = _digits(node)
    away = _reduced(node, digits)
    order = [i for i, gone in enumerate(away) if not gone] + [i for i, g in enumerate(away) if g]
    variables = [""] * len(digits)
    lines: list[LoopLine] = []
    for depth, place in enumerate(order):
        variables[place] = f"p{depth}"
        lines.append(
            LoopLine(
                depth=depth,
                variable=variables[place],
                size=record_size(digits[place]),
                reduced=away[place],
            )
        )
    body = _Body(digits, variables, lines)
    value = body.value(node.expression)
    body.finish(node, value, away)
    return tuple(lines)


def record_size(size: Size) -> records.Size:
    return size if isinstance(size, int) else str(size)


def _digits(node: Compute) -> Shape:
    """Digits in which most of its accesses are plain sums, or its domain if there are none."""
    domain = tuple(size for size in node.domain if size != 1)
    views = [load.view for load in reads(node) if len(load.view) == 1]
    found = refine(domain, *(normalize(view[0]).shape for view in views))
    return domain if found is None else found


def _reduced(node: Compute, digits: Shape) -> list[bool]:
    """Which digits are reduced; the digits may be pieces of the domain's."""
    if not isinstance(node, Reduce):
        return [False] * len(digits)
    return marked(node.domain, node.reduced, digits)


def marked(domain: Shape, flags: tuple[bool, ...], digits: Shape) -> list[bool]:
    """The flags of a domain's digits, for digits that refine them."""
    marks = [False] * len(digits)
    for place, flag in enumerate(flags):
        strides = tuple(int(index == place) for index in range(len(domain)))
        found = strides_over(Layout(domain, strides), digits) if flag else None
        for index, stride in enumerate(found or ()):
            marks[index] |= stride != 0
    return marks


class _Body:
    """The lines below the loop headers."""

    def __init__(self, digits: Shape, variables: list[str], lines: list[LoopLine]) -> None:
        self.digits = digits
        self.variables = variables
        self.lines = lines
        self._known: dict[Expression, str] = {}
        self._count: dict[str, int] = {}

    def value(self, expression: Expression) -> str:
        """The name of an expression's result, after writing the lines that compute it."""
        name = self._known.get(expression)
        if name is None:
            name = self._known[expression] = self._line(*self._call(expression))
        return name

    def finish(self, node: Compute, value: str, away: list[bool]) -> None:
        """Write the last line, which stores the value."""
        if isinstance(node, Reduce):
            dtype = str(node.dtype)
            name = self._line("reduction", dtype, dtype, node.op, value, name=node.op)
            self._store(node.name, self._kept_index(away), name, operation="store_reduction")
        elif isinstance(node, Scan):
            name = self._line("scan", node.op, value)
            self._store(node.name, self._index(()), name)
        elif isinstance(node, Store):
            index = self._with_terms(self._index(node.view), node.terms)
            mode = () if node.mode == "set" else (f"atomic_{node.mode}",)
            self._store(node.buffer, index, value, "None", *mode)
        else:
            assert isinstance(node, Map)
            self._store(node.name, self._index(()), value)

    def _store(self, *arguments: str, operation: str = "store") -> None:
        depth = len(self.digits)
        self.lines.append(LoopLine(depth=depth, operation=operation, arguments=arguments))

    def _line(self, operation: str, *arguments: str, name: str = "") -> str:
        name = name or operation
        count = self._count.get(name, 0)
        self._count[name] = count + 1
        unique = f"{name}_{count}" if count else name
        self.lines.append(
            LoopLine(
                depth=len(self.digits), result=unique, operation=operation, arguments=arguments
            )
        )
        return unique

    def _call(self, expression: Expression) -> tuple[str, ...]:
        """The operation of an expression, and its arguments."""
        if isinstance(expression, Load):
            return "load", expression.value, self._index(expression.view)
        if isinstance(expression, Gather):
            index = self._with_terms(self._index(expression.view), expression.terms)
            if expression.otherwise is not None:
                return "load_or_else", expression.value, index, str(expression.otherwise)
            return "load", expression.value, index
        if isinstance(expression, Const):
            return "constant", str(expression.number), f"torch.{expression.dtype}"
        if isinstance(expression, Iota):
            return "index_expr", self._index(expression.view), "torch.int64"
        if isinstance(expression, SizeOf):
            return "index_expr", str(expression.size), "torch.int64"
        assert isinstance(expression, Op)
        arguments = [self.value(argument) for argument in expression.args]
        if expression.name == "convert":
            return "to_dtype", arguments[0], f"torch.{expression.dtype}"
        return _NAMES.get(expression.name, expression.name), *arguments

    def _with_terms(self, index: str, terms: Iterable[IndexTerm]) -> str:
        """The index plus what is read from other buffers."""
        for term in terms:
            scale = "" if term.stride == 1 else f"{term.stride}*"
            index += f" + {scale}{self.value(term.index)}"
        return index

    def _index(self, view: View) -> str:
        if not view:
            return _sum(self.variables, row_major(self.digits).strides, 0)
        if len(view) == 1 and (strides := strides_over(view[0], self.digits)) is not None:
            return _sum(self.variables, strides, view[0].offset)
        inner = _sum(self.variables, row_major(self.digits).strides, 0)
        for layout in reversed(view):
            inner = f"{layout}[{inner}]"
        return inner

    def _kept_index(self, away: list[bool]) -> str:
        kept = [place for place, gone in enumerate(away) if not gone]
        strides = row_major(tuple(self.digits[place] for place in kept)).strides
        return _sum([self.variables[place] for place in kept], strides, 0)


def _sum(variables: list[str], strides: tuple[Size, ...], offset: Size) -> str:
    """`128*p0 + p1 + 64`."""
    terms = []
    for name, stride in zip(variables, strides, strict=True):
        if stride == 0:
            continue
        factor = "" if stride == 1 else f"{stride}*" if isinstance(stride, int) else f"({stride})*"
        terms.append(f"{factor}{name}")
    if offset != 0 or not terms:
        terms.append(str(offset))
    return " + ".join(terms)
