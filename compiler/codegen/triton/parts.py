"""The kernels of a split nest as nests of their own, and the workspace that connects them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tcw.compiler.codegen.nests.facts import Facts
from tcw.compiler.codegen.nests.moments import partner
from tcw.compiler.codegen.nests.simplify import behind_a_leading_axis, regroup
from tcw.compiler.codegen.nests.workspace import Workspace
from tcw.compiler.loops.dtypes import compute_dtype
from tcw.compiler.loops.expressions import Address, Const, Expression, Local, Op, Read, convert
from tcw.compiler.loops.nest import (
    Axis,
    Let,
    Nest,
    Reduction,
    ScanAlong,
    Statement,
    Write,
    rewritten,
)
from tcw.compiler.loops.sizes import Size, multiply

PartForm = Literal["pointwise", "rows", "partial", "riding", "totals"]
LINE = 128
"""Alignment in the workspace, in bytes."""


@dataclass(frozen=True, slots=True)
class Partial:
    """Where each program of a kernel leaves its part of a reduction: `count` arrays over `axes`."""

    buffer: str
    count: int
    address: Address
    """Of an element of a program's array, along the axes of the kernel's nest."""
    width: Size
    """Elements of one array."""
    counts: str = ""
    """Of sums of squared distances: where each program leaves how many elements it saw."""


@dataclass(frozen=True, slots=True)
class Part:
    """One kernel: its nest, whose reduced axes are the row."""

    form: PartForm
    nest: Nest
    partials: dict[str, Partial] = field(default_factory=dict)
    programs: int = 0
    """Of a partial kernel for each block of rows, and of a riding one altogether."""
    backwards: bool = False
    """The last of its elements come first: an earlier kernel has just read them."""


@dataclass(slots=True)
class Planned:
    """A kernel as it fills: what it computes, before it has a nest."""

    row: frozenset[int]
    kept: frozenset[int]
    form: PartForm
    programs: int = 0
    members: list[Reduction | ScanAlong] = field(default_factory=list)
    riders: list[Reduction] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    of: Planned | None = None
    """Of a totals kernel: whose parts it adds up."""


class Placed:
    """Which kernel computes which part of a nest."""

    def __init__(self, nest: Nest, facts: Facts, means: Mapping[str, Expression]) -> None:
        self.nest, self.facts, self.means = nest, facts, means
        self.kernels: list[Planned] = []
        self.home: dict[str, Planned] = {}
        """Reductions and scans -> the kernel in which they are complete."""
        self.lifted: dict[str, Planned] = {}
        """Values of a row or column that its kernel computes for others: a reciprocal deviation."""

    def home_of(self, name: str) -> Planned | None:
        """The kernel that computes a value for all others; None if each computes it again."""
        return self.lifted.get(name) or self.home.get(name)

    def effects(self, kernel: Planned) -> list[Statement]:
        return [*kernel.members, *kernel.riders, *kernel.writes]

    def needed(self, kernel: Planned) -> list[Statement]:
        """The statements of a kernel in the nest's order, with the `Let`s that they read."""
        effects = self.effects(kernel)
        effects += [self.facts.named[name] for name, home in self.lifted.items() if home is kernel]
        behind = self.facts.behind(
            effects, lambda s: isinstance(s, Let) and self.lifted.get(s.name, kernel) is kernel
        )
        wanted = {id(statement) for statement in (*effects, *behind)}
        return [s for s in self.nest.statements if id(s) in wanted]


class Parts:
    """Writes the nests of the kernels."""

    def __init__(self, placed: Placed) -> None:
        self.placed = placed
        self.nest, self.facts = placed.nest, placed.facts
        self.workspace = Workspace(LINE)
        self._stored: dict[str, tuple[str, tuple[Size, ...]]] = {}
        """Results in the workspace -> buffer and strides along the nest's axes."""
        self._partials: dict[str, Partial] = {}

    def made(self) -> list[Part]:
        """The kernels in order."""
        crossing = self._crossing()
        made = [self._part(kernel, crossing) for kernel in self.placed.kernels]
        read: set[str] = set()
        for number, part in enumerate(made):
            if part.form == "pointwise" and read & set(part.nest.reads()):
                made[number] = replace(part, backwards=True)
            elif part.form == "partial":
                read.update(part.nest.reads())
        return [part for part in made if part.nest.statements]

    def _crossing(self) -> dict[str, set[int]]:
        """Results that kernels other than their own read -> those kernels."""
        found: dict[str, set[int]] = {}
        for number, kernel in enumerate(self.placed.kernels):
            for statement in self.placed.needed(kernel):
                for name in self.facts.locals_in(statement):
                    home = self.placed.home_of(name)
                    if home is not None and home is not kernel:
                        found.setdefault(name, set()).add(number)
        return found

    def _strides(self, axes: Iterable[int]) -> tuple[tuple[Size, ...], Size]:
        """Row-major strides along the nest's axes of an array over some of them, and its size."""
        strides: list[Size] = [0] * len(self.nest.axes)
        total: Size = 1
        for axis in sorted(axes, reverse=True):
            strides[axis] = total
            total = multiply(total, self.nest.axes[axis].size)
        return tuple(strides), total

    def _part(self, kernel: Planned, crossing: dict[str, set[int]]) -> Part:
        statements: list[Statement] = []
        partials: dict[str, Partial] = {}
        if kernel.of is not None:
            return self._totals_part(kernel, crossing)
        own = {s.name for s in kernel.members}
        for statement in self.placed.needed(kernel):
            statements.append(self._with_reads(statement, kernel))
            if (
                not isinstance(statement, Write)
                and statement.name in crossing
                and self.placed.home_of(statement.name) is kernel
            ):
                statements.append(self._stored_in_workspace(statement))
        for statement in (*kernel.members, *kernel.riders):
            if kernel.form == "rows" or (kernel.form == "riding" and statement.name in own):
                continue
            assert isinstance(statement, Reduction)
            dtype = compute_dtype(statement.expression.dtype)
            strides, width = self._strides(statement.axes)
            buffer = self.workspace.reserve(statement.name, dtype, multiply(width, kernel.programs))
            counts = ""
            if statement.op == "deviations":
                size = multiply(width, kernel.programs)
                counts = self.workspace.reserve(f"{statement.name}_count", dtype, size)
            partials[statement.name] = Partial(
                buffer, kernel.programs, Address(strides), width, counts
            )
        axes = sorted(kernel.row | kernel.kept)
        flags = tuple(Axis(a.size, i in kernel.row) for i, a in enumerate(self.nest.axes))
        whole = replace(self.nest, axes=flags, statements=tuple(statements))
        self._partials.update(partials)
        groups = [[axis] for axis in axes]
        small = regroup(whole, groups) if len(groups) < len(flags) else whole
        placed = {
            name: replace(p, address=Address(tuple(p.address.strides[a] for a in axes)))
            for name, p in partials.items()
        }
        return Part(kernel.form, small, placed, kernel.programs)

    def _totals_part(self, kernel: Planned, crossing: dict[str, set[int]]) -> Part:
        """The nest that adds up the parts, in order, with what follows from the totals alone."""
        assert kernel.of is not None
        results = [
            s
            for s in (*kernel.of.members, *kernel.of.riders)
            if self.placed.home[s.name] is kernel and isinstance(s, Reduction)
        ]
        axes = tuple(sorted(kernel.kept))
        count = kernel.of.programs
        statements: list[Statement] = []
        for result in results:
            partial = self._partials[result.name]
            dtype = compute_dtype(result.expression.dtype)
            strides = (partial.width, *(partial.address.strides[axis] for axis in axes))
            read: Expression = Read(partial.buffer, Address(strides), dtype)
            if result.op == "deviations":
                read = self._together(result, results, read, Address(strides))
                result = replace(result, op="sum")
            left = tuple(range(1, 1 + len(axes)))
            statements.append(replace(result, expression=read, over=(0,), axes=left))
        later: list[Statement] = []
        for statement in (*results, *self.placed.needed(kernel)):
            if isinstance(statement, (Let, Write)):
                later.append(self._with_reads(statement, kernel))
            if not isinstance(statement, Write) and statement.name in crossing:
                if isinstance(statement, Let) and statement.name not in self.placed.lifted:
                    continue
                later.append(self._stored_in_workspace(statement))
        statements += behind_a_leading_axis(later, self.nest, axes)
        sizes = (Axis(count, True), *(Axis(self.nest.axes[axis].size) for axis in axes))
        return Part("rows", Nest(self.nest.name, sizes, tuple(statements), self.nest.label))

    def _together(
        self, result: Reduction, results: list[Reduction], squares: Expression, address: Address
    ) -> Expression:
        """What a part adds to the squared distances from the mean of all: its own, and its number
        of elements times the squared distance of its own mean from that one."""
        total = partner(result, results)
        assert total is not None, f"{result.name} without its sum"
        dtype = result.dtype
        count = Read(self._partials[result.name].counts, address, dtype)
        part = Read(self._partials[total.name].buffer, address, dtype)
        own = Op("div", (part, count), dtype)
        away = Op("sub", (own, self.placed.means[result.name]), dtype)
        more = Op("mul", (count, Op("mul", (away, away), dtype)), dtype)
        some = Op("gt", (count, Const(0.0, dtype)), "bool")
        return Op("where", (some, Op("add", (squares, more), dtype), Const(0.0, dtype)), dtype)

    def _stored_in_workspace(self, statement: Let | Reduction | ScanAlong) -> Write:
        dtype = compute_dtype(statement.dtype)
        strides, size = self._strides(statement.axes)
        buffer = self.workspace.reserve(statement.name, dtype, size)
        self._stored[statement.name] = buffer, strides
        local = Local(statement.name, statement.dtype)
        return Write(buffer, dtype, Address(strides), _held(local), tuple(sorted(statement.axes)))

    def _with_reads(self, statement: Statement, kernel: Planned) -> Statement:
        """The statement, with results of other kernels read from the workspace."""

        def leaf(part: Expression) -> Expression:
            if not isinstance(part, Local):
                return part
            home = self.placed.home_of(part.name)
            if home is None or home is kernel:
                return part
            buffer, strides = self._stored[part.name]
            return Read(buffer, Address(strides), compute_dtype(part.dtype))

        return rewritten(statement, leaf)


def _held(local: Local) -> Expression:
    """A value as its register holds it: 16-bit floats in float32."""
    held = compute_dtype(local.dtype)
    return local if held == local.dtype else convert(local, held)
