"""A nest as kernels that run one after another.

A kernel has one kind of row: the axes that its reductions and scans run over, or none. What another
kernel needs of a reduction or scan goes through the workspace; other values are computed again.

    rows       each program computes whole rows
    partial    few rows with many elements: each program reduces a part of a row
    riding     whole rows, and sums over the rows (weight gradients of a norm beside its input's)
    totals     adds up what the programs of a partial or riding kernel have left in the workspace
    pointwise  no reductions
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from compiler.codegen.nests.facts import Facts
from compiler.codegen.nests.moments import partner, with_moments
from compiler.codegen.nests.simplify import regroup, remade, simplify
from compiler.codegen.nests.workspace import Workspace
from compiler.codegen.triton.limits import Limits
from compiler.loops.dtypes import BYTES, compute_dtype
from compiler.loops.expressions import (
    Address,
    Const,
    Expression,
    Local,
    Op,
    Read,
    convert,
    rewrite,
)
from compiler.loops.nest import (
    Axis,
    Let,
    Nest,
    Reduction,
    ScanAlong,
    Statement,
    Write,
    buffers_read,
    expressions,
)
from compiler.loops.sizes import Size, multiply, product

Form = Literal["pointwise", "rows", "partial", "riding", "totals"]
ARG = ("argmax", "argmin")
LINE = 128
"""Bytes: what starts in the workspace starts at a multiple of it."""


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

    form: Form
    nest: Nest
    partials: dict[str, Partial] = field(default_factory=dict)
    programs: int = 0
    """Of a partial kernel for each block of rows, and of a riding one altogether."""


@dataclass(slots=True)
class _Kernel:
    """A kernel as it fills."""

    row: frozenset[int]
    kept: frozenset[int]
    form: Form
    programs: int = 0
    members: list[Reduction | ScanAlong] = field(default_factory=list)
    riders: list[Reduction] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    of: _Kernel | None = None
    """Of a totals kernel: whose parts it adds up."""


class Split:
    """The kernels of one nest and the workspace that connects them."""

    def __init__(self, nest: Nest, limits: Limits, shared: frozenset[str] = frozenset()) -> None:
        self.limits = limits
        self.nest = simplify(nest)
        self.nest, self.means = with_moments(Facts(self.nest), self._streams)
        self.facts = Facts(self.nest)
        self._paired = {
            s.expression
            for s in self.nest.statements
            if isinstance(s, Reduction) and s.op == "deviations"
        }
        self.shared = shared
        self.workspace = Workspace(LINE)
        self._kernels: list[_Kernel] = []
        self._home: dict[str, _Kernel] = {}
        """Reductions and scans -> the kernel in which they are complete."""
        self._behind: dict[str, frozenset[str]] = {}
        """Values -> the reductions and scans that they are computed from, through `Let`s."""
        self._stored: dict[str, tuple[str, tuple[Size, ...]]] = {}
        """Results in the workspace -> buffer and strides along the nest's axes."""
        self._partials: dict[str, Partial] = {}
        self._lifted: dict[str, _Kernel] = {}
        """Values of a row or column that its kernel computes for others: a reciprocal deviation."""

    def parts(self) -> list[Part]:
        """The kernels in order."""
        # a write joins rows wherever they stand: what it writes is read once, then
        for statement in sorted(self._riders_last(), key=lambda s: isinstance(s, Write)):
            self._place(statement)
        self._after_reads()
        self._lift()
        crossing = self._crossing()
        made = [self._part(kernel, crossing) for kernel in self._kernels]
        return [part for part in made if part.nest.statements]

    # Which kernel computes what

    def _riders_last(self) -> list[Statement]:
        """The statements in an order in which they can run, sums over rows behind the rows that
        they can ride in."""
        statements = list(self.nest.statements)
        for rider in self.nest.statements:
            if not isinstance(rider, Reduction):
                continue
            place = statements.index(rider)
            fed = {rider.name}
            for later in range(place + 1, len(statements)):
                other = statements[later]
                if fed & set(self.facts.locals_in(other)):
                    break
                if (
                    isinstance(other, Reduction)
                    and set(other.over) == set(rider.axes)
                    and set(other.axes) == set(rider.over)
                    and not self._across(frozenset(other.over), frozenset(other.axes))
                ):
                    statements.insert(later, statements.pop(place))
                    break
        return statements

    def _place(self, statement: Statement) -> None:
        behind = self._roots(statement)
        if isinstance(statement, Let):
            self._behind[statement.name] = behind
            return
        first = max((self._number(self._home[name]) for name in behind), default=0)
        if isinstance(statement, Write):
            self._kernel_for(statement, first).writes.append(statement)
            return
        self._behind[statement.name] = frozenset((statement.name,))
        over = statement.over if isinstance(statement, Reduction) else (statement.axis,)
        row, kept = frozenset(over), frozenset(statement.axes) - frozenset(over)
        if isinstance(statement, Reduction) and self._ride(statement, first):
            return
        kernel = self._rows(statement, row, kept, first)
        kernel.members.append(statement)
        home = kernel
        if kernel.form == "partial":
            home = self._totals(kernel, kept)
        self._home[statement.name] = home

    def _roots(self, statement: Statement) -> frozenset[str]:
        found: set[str] = set()
        for name in self.facts.locals_in(statement):
            found |= self._behind[name]
        return frozenset(found)

    def _number(self, kernel: _Kernel) -> int:
        return next(n for n, other in enumerate(self._kernels) if other is kernel)

    def _rows(
        self,
        statement: Reduction | ScanAlong,
        row: frozenset[int],
        kept: frozenset[int],
        first: int,
    ) -> _Kernel:
        alone = isinstance(statement, ScanAlong) or statement.op in ARG
        for kernel in self._kernels[first:]:
            same = kernel.row == row and kernel.kept == kept and kernel.of is None
            if same and row and not (alone and kernel.form == "partial"):
                return kernel
        programs = 1 if alone else self._programs(row, kept)
        form: Form = "partial" if programs > 1 else "rows"
        made = _Kernel(row, kept, form, programs)
        self._kernels.append(made)
        return made

    def _programs(self, row: frozenset[int], kept: frozenset[int]) -> int:
        length = self.limits.number(product(self.nest.axes[a].size for a in row))
        rows = self.limits.number(product(self.nest.axes[a].size for a in kept))
        across = self._across(row, kept)
        return self.limits.parts_of_row(rows, length, across)

    def _streams(self, statement: Reduction) -> bool:
        """Whether programs read the rows of a reduction step by step, forwards."""
        if any(isinstance(s, ScanAlong) and s.reverse for s in self.nest.statements):
            return False
        row, kept = frozenset(statement.over), frozenset(statement.axes)
        size = product(self.nest.axes[a].size for a in row)
        whole = self.limits.holds(size, self._across(row, kept))
        return self._programs(row, kept) > 1 or not whole

    def _across(self, row: frozenset[int], kept: frozenset[int]) -> bool:
        """Whether a row lies across memory: its elements are not neighbours, but those of
        neighbouring rows are."""
        return bool(kept and row) and max(kept) > max(row)

    def _totals(self, of: _Kernel, kept: frozenset[int]) -> _Kernel:
        for kernel in self._kernels:
            if kernel.of is of and kernel.kept == kept:
                return kernel
        made = _Kernel(frozenset(), kept, "totals", of=of)
        self._kernels.append(made)
        return made

    def _ride(self, rider: Reduction, first: int) -> bool:
        """Put a sum over rows into the kernel of these rows, if its programs can hold it."""
        over, axes = frozenset(rider.over), frozenset(rider.axes)
        for kernel in self._kernels[first:]:
            if (
                kernel.form not in ("rows", "riding")
                or over != kernel.kept
                or axes != kernel.row
                or rider.op in ARG
                or rider.expression in self._paired
                or self._across(kernel.row, kernel.kept)
            ):
                continue
            length = product(self.nest.axes[a].size for a in kernel.row)
            if not isinstance(length, int):  # a program has to hold the row, whatever its length
                continue
            rows = self.limits.number(product(self.nest.axes[a].size for a in kernel.kept))
            programs = self.limits.riding_programs(
                rows, length, len(kernel.riders) + 1, self._bytes_read(kernel)
            )
            if not programs:
                continue
            kernel.form, kernel.programs = "riding", programs
            kernel.riders.append(rider)
            self._behind[rider.name] = frozenset((rider.name,))
            self._home[rider.name] = self._totals(kernel, axes)
            return True
        return False

    def _bytes_read(self, kernel: _Kernel) -> int:
        """Bytes that each element of the rows reads."""
        found: dict[str, int] = {}
        for statement in self.nest.statements:
            for part in expressions(statement):
                if isinstance(part, Read):
                    axes = self.facts.moves(part.address)
                    if axes & kernel.row and axes & kernel.kept:
                        found[part.buffer] = BYTES[part.dtype]
        return sum(found.values()) or 4

    def _kernel_for(self, write: Write, first: int) -> _Kernel:
        """The first kernel whose programs visit each position of a write exactly once."""
        domain = frozenset(write.axes)
        for kernel in self._kernels[first:]:
            rest = domain - kernel.kept
            if domain >= kernel.kept and (rest == kernel.row or not rest):
                whole = not kernel.row or rest or kernel.form in ("rows", "riding")
                if whole and not (kernel.form == "riding" and write.mode == "add"):
                    return kernel
        made = _Kernel(frozenset(), domain, "pointwise")
        self._kernels.append(made)
        return made

    def _after_reads(self) -> None:
        """Move each write behind the last kernel that reads what it overwrites."""
        moved = True
        while moved:
            moved = False
            for number, kernel in enumerate(self._kernels):
                for write in list(kernel.writes):
                    changed = {write.buffer} | (
                        self.shared if write.buffer in self.shared else set()
                    )
                    later = [
                        n
                        for n, other in enumerate(self._kernels)
                        if n > number and changed & self._read_by(other, without=write)
                    ]
                    if later:
                        kernel.writes.remove(write)
                        self._kernel_for(write, later[-1]).writes.append(write)
                        moved = True

    def _read_by(self, kernel: _Kernel, without: Write) -> set[str]:
        found: set[str] = set()
        for statement in self._needed(kernel):
            if statement is not without:
                found.update(buffers_read(statement))
        return found

    def _lift(self) -> None:
        """Values that depend on results of other kernels alone, and vary over fewer axes than what
        reads them, are computed where these results are: once, and not for each element."""
        for kernel in self._kernels:
            pending: list[Statement] = list(self._effects(kernel))
            seen: set[str] = set()
            while pending:
                statement = pending.pop()
                for name in self.facts.locals_in(statement):
                    value = self.facts.named[name]
                    if not isinstance(value, Let) or name in seen or name in self._lifted:
                        continue
                    seen.add(name)
                    home = self._may_move(value, kernel, self.facts.domain(statement))
                    if home is None:
                        pending.append(value)
                    else:
                        self._lifted[name] = home

    def _may_move(self, value: Let, kernel: _Kernel, domain: frozenset[int]) -> _Kernel | None:
        """The kernel that can compute a value for another one; None if there is none."""
        homes = [self._home[name] for name in self._behind[value.name]]
        axes = self.facts.axes(value.expression)
        if not homes or not axes < domain or kernel in homes:
            return None
        last = max(homes, key=self._number)
        plain = last.form in ("rows", "totals") and last.kept == axes
        return last if plain and self._number(last) < self._number(kernel) else None

    # What each kernel computes

    def _effects(self, kernel: _Kernel) -> list[Statement]:
        return [*kernel.members, *kernel.riders, *kernel.writes]

    def _needed(self, kernel: _Kernel) -> list[Statement]:
        """The statements of a kernel in the nest's order, with the `Let`s that they read."""
        effects = self._effects(kernel)
        effects += [self.facts.named[name] for name, home in self._lifted.items() if home is kernel]
        wanted = {id(statement) for statement in effects}
        pending = list(effects)
        while pending:
            for name in self.facts.locals_in(pending.pop()):
                other = self.facts.named[name]
                if self._lifted.get(name, kernel) is not kernel:
                    continue
                if isinstance(other, Let) and id(other) not in wanted:
                    wanted.add(id(other))
                    pending.append(other)
        return [s for s in self.nest.statements if id(s) in wanted]

    def _crossing(self) -> dict[str, set[int]]:
        """Results that other kernels than their own read -> those kernels."""
        found: dict[str, set[int]] = {}
        for number, kernel in enumerate(self._kernels):
            for statement in self._needed(kernel):
                for name in self.facts.locals_in(statement):
                    home = self._lifted.get(name) or self._home.get(name)
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

    def _part(self, kernel: _Kernel, crossing: dict[str, set[int]]) -> Part:
        statements: list[Statement] = []
        partials: dict[str, Partial] = {}
        if kernel.of is not None:
            return self._totals_part(kernel, crossing)
        own = {s.name for s in kernel.members}
        for statement in self._needed(kernel):
            statements.append(self._with_reads(statement, kernel))
            if (
                not isinstance(statement, Write)
                and statement.name in crossing
                and (self._lifted.get(statement.name) or self._home.get(statement.name)) is kernel
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

    def _totals_part(self, kernel: _Kernel, crossing: dict[str, set[int]]) -> Part:
        """The nest that adds up the parts, in order, with what follows from the totals alone."""
        assert kernel.of is not None
        results = [
            s
            for s in (*kernel.of.members, *kernel.of.riders)
            if self._home[s.name] is kernel and isinstance(s, Reduction)
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
        for statement in (*results, *self._needed(kernel)):
            if isinstance(statement, (Let, Write)):
                later.append(self._with_reads(statement, kernel))
            if not isinstance(statement, Write) and statement.name in crossing:
                if isinstance(statement, Let) and statement.name not in self._lifted:
                    continue
                later.append(self._stored_in_workspace(statement))
        statements += _behind_a_leading_axis(later, self.nest, axes)
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
        away = Op("sub", (own, self.means[result.name]), dtype)
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

    def _with_reads(self, statement: Statement, kernel: _Kernel) -> Statement:
        """The statement, with results of other kernels read from the workspace."""

        def leaf(part: Expression) -> Expression:
            if not isinstance(part, Local):
                return part
            home = self._lifted.get(part.name) or self._home.get(part.name)
            if home is None or home is kernel:
                return part
            buffer, strides = self._stored[part.name]
            return Read(buffer, Address(strides), compute_dtype(part.dtype))

        changed = replace(statement, expression=rewrite(statement.expression, leaf))
        if isinstance(changed, Write):
            terms = tuple(replace(t, index=rewrite(t.index, leaf)) for t in changed.terms)
            return replace(changed, terms=terms)
        return changed


def _held(local: Local) -> Expression:
    """A value as its register holds it: 16-bit floats in float32."""
    held = compute_dtype(local.dtype)
    return local if held == local.dtype else convert(local, held)


def _behind_a_leading_axis(
    statements: list[Statement], nest: Nest, axes: tuple[int, ...]
) -> list[Statement]:
    """Statements over some of a nest's axes, in a nest with another axis in front of these."""
    if not axes:
        part: tuple[Statement, ...] = tuple(
            remade(s, lambda a: replace(a, strides=()), lambda _: ()) for s in statements
        )
    else:
        whole = replace(nest, statements=tuple(statements))
        part = regroup(whole, [[axis] for axis in axes]).statements
    return [
        remade(
            statement,
            lambda address: replace(address, strides=(0, *address.strides)),
            lambda old: tuple(axis + 1 for axis in old),
        )
        for statement in part
    ]
