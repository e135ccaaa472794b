"""Properties of a nest for scheduling: the axes that each value varies over, and costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from tcw.compiler.loops.dtypes import BYTES, REDUCED, compute_dtype
from tcw.compiler.loops.expressions import (
    Address,
    Const,
    Expression,
    IndexTerm,
    Local,
    Op,
    Position,
    Read,
    ReadIndexed,
    walk,
)
from tcw.compiler.loops.nest import (
    Axis,
    Let,
    Nest,
    Reduction,
    ScanAlong,
    Statement,
    Write,
    expressions,
    reads_in,
    runs_over,
)
from tcw.compiler.loops.operators import OPERATORS
from tcw.compiler.loops.sizes import Size

LOAD_WEIGHT = 1
SIXTEEN_WEIGHT = 3
"""Of widening a 16-bit float."""
GATHER_WEIGHT = 12
LINE = 64
"""Bytes of a cache line."""
L1 = 1 << 15
"""Bytes of a core's nearest cache."""
GUESS = 256
"""Assumed value of a symbolic size if a choice needs a number."""


Value = Let | Reduction | ScanAlong


def estimate(size: Size) -> int:
    """The size, or `GUESS` if it is symbolic."""
    return size if isinstance(size, int) else GUESS


def overwrites(write: Write, shared: frozenset[str]) -> set[str]:
    """Buffers whose content a write may change. `shared` buffers may occupy the same memory."""
    return {write.buffer} | (shared if write.buffer in shared else set())


class Facts:
    """Properties of one nest, each computed once."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.named: dict[str, Value] = {
            statement.name: statement
            for statement in nest.statements
            if not isinstance(statement, Write)
        }
        self.reduced = frozenset(i for i, axis in enumerate(nest.axes) if axis.reduced)
        self.backwards = any(isinstance(s, ScanAlong) and s.reverse for s in nest.statements)
        """Whether an axis may be traversed from its end."""
        self._axes: dict[Expression, frozenset[int]] = {}
        self._weights: dict[str, int] = {}
        self._locals: dict[int, tuple[Statement, tuple[str, ...]]] = {}
        """Keyed by id, since hashing a statement hashes everything in it."""
        self.uses: Counter[Expression] = Counter()
        for statement in nest.statements:
            self.uses.update(expressions(statement))
        self.levels: dict[str, int] = {}
        """Length of the longest chain of values that each `Let` depends on; 0 for loop results."""
        # In order, so that a long chain of values does not cause deep recursion.
        for statement in nest.statements:
            self.axes(statement.expression)
            if not isinstance(statement, Write):
                self.weight(statement.name)
                below = (self.levels[name] for name in self.locals_in(statement))
                is_let = isinstance(statement, Let)
                self.levels[statement.name] = 1 + max(below, default=0) if is_let else 0

    def of(self, nest: Nest) -> Facts:
        """The facts of another nest; these if it is the same nest."""
        return self if nest is self.nest else Facts(nest)

    def is_main(self, statement: Statement) -> bool:
        """Whether the statement is a reduction that each row completes."""
        return isinstance(statement, Reduction) and not (
            set(statement.axes) & self.reduced or set(statement.over) - self.reduced
        )

    def is_rider(self, statement: Statement) -> bool:
        return isinstance(statement, Reduction) and not self.is_main(statement)

    def domain(self, statement: Statement) -> frozenset[int]:
        """The axes that a statement iterates over."""
        return frozenset(runs_over(statement))

    def moves(self, address: Address) -> frozenset[int]:
        """The axes that an address varies over."""
        return frozenset(
            axis
            for axis, stride in enumerate(address.strides)
            if stride != 0 and self.nest.axes[axis].size != 1
        )

    def varies(self, address: Address, terms: tuple[IndexTerm, ...]) -> frozenset[int]:
        """The axes that an access at an address and indices varies over."""
        return self.moves(address).union(*(self.axes(term.index) for term in terms))

    def axes(self, expression: Expression) -> frozenset[int]:
        """The axes that an expression varies over."""
        known = self._axes.get(expression)
        if known is not None:
            return known
        found: frozenset[int] = frozenset()
        if isinstance(expression, Op):
            for argument in expression.args:
                found |= self.axes(argument)
        elif isinstance(expression, ReadIndexed):
            found = self.varies(expression.address, expression.terms)
        elif isinstance(expression, (Read, Position)):
            found = self.moves(expression.address)
        elif isinstance(expression, Local):
            statement = self.named[expression.name]
            if isinstance(statement, Let):
                found = self.axes(statement.expression)
            else:
                found = frozenset(statement.axes)
        self._axes[expression] = found
        return found

    def locals_in(self, statement: Statement) -> tuple[str, ...]:
        """The names of the statements that a statement reads, with repetitions."""
        known = self._locals.get(id(statement))
        if known is None:
            names = tuple(p.name for p in expressions(statement) if isinstance(p, Local))
            known = self._locals[id(statement)] = (statement, names)
        return known[1]

    def behind(
        self, statements: Iterable[Statement], follow: Callable[[Value], bool]
    ) -> list[Value]:
        """The values that these statements depend on, directly or through others, as far as
        `follow` is true."""
        found: dict[str, Value] = {}
        pending = list(statements)
        while pending:
            for name in self.locals_in(pending.pop()):
                other = self.named[name]
                if name not in found and follow(other):
                    found[name] = other
                    pending.append(other)
        return list(found.values())

    def weight(self, name: str) -> int:
        """The cost of computing a value from memory and reductions, in simple instructions."""
        known = self._weights.get(name)
        if known is None:
            statement = self.named[name]
            known = 100
            if isinstance(statement, Let):
                known = self.expression_weight(statement.expression)
            elif isinstance(statement, Reduction):
                known = 0
            self._weights[name] = known
        return known

    def widest(self) -> int:
        """Bytes of the widest element that a register holds."""
        held = [
            part.dtype
            for statement in self.nest.statements
            for part in expressions(statement)
            if isinstance(part, (Op, Read, ReadIndexed))
        ]
        held += [s.dtype for s in self.nest.statements if isinstance(s, Write)]
        return max((BYTES[compute_dtype(dtype)] for dtype in held), default=4)

    def gaps(self) -> int:
        """Bytes of cache lines that are moved beside each position's elements, because they lie
        apart. A line that is written in part is also read: it may lie in another core's cache."""
        found = 0
        for part in reads_in(self.nest.statements):
            terms = part.terms if isinstance(part, ReadIndexed) else ()
            found += self._gap(part.address, terms, part.dtype)
        for statement in self.nest.statements:
            if isinstance(statement, Write):
                found += 2 * self._gap(statement.address, statement.terms, statement.dtype)
        return found

    def _gap(self, address: Address, terms: tuple[IndexTerm, ...], dtype: str) -> int:
        """The bytes beside one element of an access."""
        if address.then:
            return 0
        indexed = {axis for term in terms for axis in self.axes(term.index)}
        steps: list[int] = []
        choices = 1
        for axis, (one, stride) in enumerate(zip(self.nest.axes, address.strides, strict=True)):
            if stride == 0 and axis in indexed:
                choices *= estimate(one.size)
            elif one.size != 1 and isinstance(stride, int):
                steps.append(abs(stride))
        if choices > 1:
            spans = (estimate(term.size) * abs(estimate(term.stride)) for term in terms)
            steps.append(_apart(max(spans), choices, dtype))
        if not steps or not all(steps):
            return 0
        return min((min(steps) - 1) * BYTES[dtype], LINE - BYTES[dtype])

    def in_range(self, term: IndexTerm) -> bool:
        """Whether an index is certainly in range."""
        return in_range(term, self.nest.axes)

    def expression_weight(self, expression: Expression) -> int:
        """The cost of computing an expression, in simple instructions."""
        total = 0
        for part in walk(expression):
            if isinstance(part, Op):
                total += OPERATORS[part.name].weight
            elif isinstance(part, Read):
                total += SIXTEEN_WEIGHT if part.dtype in REDUCED else LOAD_WEIGHT
            elif isinstance(part, ReadIndexed):
                total += GATHER_WEIGHT
            elif isinstance(part, Local):
                total += self.weight(part.name)
        return total

    def element_weight(self) -> int:
        """The cost of one element of the whole domain."""
        return sum(map(self.statement_weight, self.nest.statements))

    def statement_weight(self, statement: Statement) -> int:
        """The cost of a statement at one position."""
        parts = [part for part in expressions(statement) if not isinstance(part, Local)]
        return 1 + sum(OPERATORS[part.name].weight if isinstance(part, Op) else 1 for part in parts)


def _apart(span: int, choices: int, dtype: str) -> int:
    """How far the elements lie from each other that indices choose from a span of as many elements:
    in lines of their own, if the span leaves L1 before the next is chosen."""
    return LINE if span * BYTES[dtype] > L1 else max(span // choices, 1)


def in_range(term: IndexTerm, axes: tuple[Axis, ...]) -> bool:
    """Whether an index is certainly in range."""
    index, limits = unclamped(term.index)
    size = term.size
    if limits is not None:
        return limits[0] >= 0 and isinstance(size, int) and limits[1] < size
    position, repeat = quotient(index)
    found = None if position is None else range_of(position, axes)
    if found is None or not isinstance(size, int):
        return False
    return found[0] >= 0 and found[1] // repeat < size


def range_of(position: Position, axes: tuple[Axis, ...]) -> tuple[int, int] | None:
    """The least and the greatest value of a position; None if they are unknown."""
    low = high = position.address.offset
    if position.address.then or not isinstance(low, int) or not isinstance(high, int):
        return None
    for axis, stride in zip(axes, position.address.strides, strict=True):
        if stride == 0:
            continue
        if not isinstance(axis.size, int) or not isinstance(stride, int):
            return None
        reach = (axis.size - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high


def unclamped(index: Expression) -> tuple[Expression, tuple[int, int] | None]:
    """The index inside a clamp, and the clamp's limits."""
    if isinstance(index, Op) and index.name == "minimum":
        inner, greatest = index.args
        if isinstance(inner, Op) and inner.name == "maximum" and isinstance(greatest, Const):
            index_inside, least = inner.args
            if isinstance(least, Const):
                return index_inside, (int(least.number), int(greatest.number))
    return index, None


def quotient(index: Expression) -> tuple[Position | None, int]:
    """The position that an index divides, and by what; None if it is not such a quotient."""
    if isinstance(index, Position):
        return index, 1
    if isinstance(index, Op) and index.name == "floor_divide":
        inner, divisor = index.args
        if isinstance(inner, Position) and isinstance(divisor, Const) and divisor.number > 0:
            return inner, int(divisor.number)
    return None, 1
