"""Translates the members of a group to statements: views to addresses, values to locals.

Each expression, or part of one, is computed in the loop of the axes that it varies over. This alone
hoists invariants and creates row scalars; nothing here is specific to softmax or other patterns.
"""

from __future__ import annotations

from dataclasses import replace

from tcw.compiler.fusion.axes import Axes, kept_view, reduced_view, scan_view
from tcw.compiler.fusion.groups import Group
from tcw.compiler.fusion.leaves import unused_name
from tcw.compiler.loops.expressions import (
    Address,
    Expression,
    Gather,
    Iota,
    Load,
    Local,
    Op,
    Position,
    Read,
    ReadIndexed,
    rewrite,
)
from tcw.compiler.loops.graph import Compute, Map, Reduce, Scan, Store
from tcw.compiler.loops.layouts import Layout, View, compose_views, normalize
from tcw.compiler.loops.nest import Let, Reduction, ScanAlong, Statement, Write
from tcw.compiler.loops.sizes import Size, at_least, multiply, subtract


class Statements:
    """Collects the statements of one group."""

    def __init__(self, group: Group, axes: Axes, stored: frozenset[str], reduced: int) -> None:
        self.group = group
        self.axes = axes
        self.stored = stored
        """Values that must be in memory."""
        self.reduced = reduced
        """Bitmask of the reduced axes."""
        self.done: list[Statement] = []
        self.last: list[Statement] = []
        self.held: dict[str, int] = {}
        """Local -> bitmask of the axes that it varies over."""
        self._hoisted: dict[Expression, Local] = {}
        self._taken = {node.name for node in group.members}

    def add(self, node: Compute) -> None:
        level = self.group.level(node)
        expression = self.hoist(self.translate(node.expression, level), node)
        if isinstance(node, Map):
            self._let(node, expression, level)
        elif isinstance(node, Reduce):
            self._reduce(node, expression)
        elif isinstance(node, Scan):
            self._scan(node, expression, level)
        else:
            self._store(node, expression, level)

    def all(self) -> tuple[Statement, ...]:
        return (*self.done, *self.last)

    def _let(self, node: Map, expression: Expression, level: View) -> None:
        varies = self.bits(expression)
        self.done.append(Let(node.name, node.dtype, expression, members(varies), node.origins))
        self.held[node.name] = varies
        self._write(node, level, members(self._level_bits(level)), self.done)

    def _reduce(self, node: Reduce, expression: Expression) -> None:
        over = self.axes.along(reduced_view(self.group, node))
        level = self._level_bits(self.group.level(node))
        left = members(level & ~mask_bits(over))
        self.done.append(
            Reduction(node.name, node.dtype, node.op, expression, over, left, node.origins)
        )
        self.held[node.name] = mask_bits(left)
        complete = mask_bits(over) == self.reduced
        view = (kept_view(self.group, node),)
        self._write(node, view, left, self.done if complete else self.last)

    def _scan(self, node: Scan, expression: Expression, level: View) -> None:
        along = self.axes.along(scan_view(self.group, node))
        axes = members(self._level_bits(level))
        axis = along[0] if along else 0
        self.done.append(
            ScanAlong(
                node.name, node.dtype, node.op, expression, axis, node.reverse, axes, node.origins
            )
        )
        self.held[node.name] = mask_bits(axes)
        self._write(node, level, axes, self.done)

    def _store(self, node: Store, expression: Expression, level: View) -> None:
        terms = tuple(replace(term, index=self.translate(term.index, level)) for term in node.terms)
        axes = members(self._level_bits(level))
        address = self.axes.address(compose_views(node.view, level))
        self.done.append(
            Write(
                node.buffer,
                node.dtype,
                address,
                expression,
                axes,
                terms,
                node.mode,
                bool(terms) or not injective(node.view),
                node.origins,
            )
        )

    def _write(
        self, node: Map | Reduce | Scan, view: View, axes: tuple[int, ...], where: list[Statement]
    ) -> None:
        if node.name in self.stored:
            value = Local(node.name, node.dtype)
            address = self.axes.address(view)
            where.append(Write(node.name, node.dtype, address, value, axes, origins=node.origins))

    def _level_bits(self, level: View) -> int:
        """Bitmask of the axes at a level: all axes, or those of the rows."""
        if not level:
            return (1 << len(self.axes.sizes)) - 1
        return mask_bits(self.axes.along(level[0]))

    def translate(self, expression: Expression, level: View) -> Expression:
        """The expression with views replaced by addresses and locals."""

        def leaf(part: Expression) -> Expression:
            if isinstance(part, Load):
                if part.value in self.held:
                    return Local(part.value, part.dtype)
                return Read(part.value, self._address(part.view, level), part.dtype)
            if isinstance(part, Gather):
                address = self._address(part.view, level)
                return ReadIndexed(part.value, address, part.terms, part.dtype, part.otherwise)
            if isinstance(part, Iota):
                return Position(self._address(part.view, level))
            return part

        return rewrite(expression, leaf)

    def _address(self, view: View, level: View) -> Address:
        return self.axes.address(compose_views(view, level))

    def hoist(self, expression: Expression, node: Compute) -> Expression:
        """The expression, with parts that vary over fewer loops extracted as statements."""
        whole = self.bits(expression)

        def outer(varies: int) -> bool:
            away = whole & ~varies
            return bool(away & self.reduced) or away.bit_length() == whole.bit_length() != 0

        def visit(part: Expression) -> Expression:
            if not isinstance(part, Op):
                return part
            varies = self.bits(part)
            if varies != whole and outer(varies):
                return self._hoist(part, varies, node)
            args = tuple(visit(argument) for argument in part.args)
            return part if args == part.args else replace(part, args=args)

        return visit(expression)

    def _hoist(self, part: Op, varies: int, node: Compute) -> Local:
        local = self._hoisted.get(part)
        if local is None:
            name = unused_name(f"{node.name}_part", self._taken)
            self._taken.add(name)
            local = self._hoisted[part] = Local(name, part.dtype)
            self.done.append(Let(name, part.dtype, part, members(varies), node.origins))
            self.held[name] = varies
        return local

    def bits(self, expression: Expression) -> int:
        """Bitmask of the axes that an expression varies over."""
        if isinstance(expression, Op):
            bits = 0
            for argument in expression.args:
                bits |= self.bits(argument)
            return bits
        if isinstance(expression, Local):
            return self.held[expression.name]
        if not isinstance(expression, (Read, ReadIndexed, Position)):
            return 0
        bits = mask_bits(self.axes.moves(expression.address))
        if isinstance(expression, ReadIndexed):
            for term in expression.terms:
                bits |= self.bits(term.index)
        return bits


def mask_bits(axes: tuple[int, ...]) -> int:
    return sum(1 << axis for axis in axes)


def members(bits: int) -> tuple[int, ...]:
    return tuple(axis for axis in range(bits.bit_length()) if bits >> axis & 1)


def injective(view: View) -> bool:
    """Whether a view certainly maps no two indices to the same element."""
    if not view:
        return True
    if len(view) > 1:
        return all(injective((layout,)) for layout in view)
    normal: Layout = normalize(view[0])
    digits = sorted(
        (
            (size, stride if not at_least(0, stride) else multiply(stride, -1))
            for size, stride in zip(normal.shape, normal.strides, strict=True)
        ),
        key=lambda digit: digit[1] if isinstance(digit[1], int) else 1 << 62,
    )
    reach: Size = 0
    for size, stride in digits:
        if stride == 0 or not at_least(subtract(stride, 1), reach):
            return False
        reach = add_reach(reach, size, stride)
    return True


def add_reach(reach: Size, size: Size, stride: Size) -> Size:
    return subtract(multiply(size, stride), subtract(stride, reach))
