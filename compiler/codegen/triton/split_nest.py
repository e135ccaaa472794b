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

from tcw.compiler.codegen.nests.facts import Facts, overwrites
from tcw.compiler.codegen.nests.moments import with_moments
from tcw.compiler.codegen.nests.simplify import simplify
from tcw.compiler.codegen.triton.limits import Limits
from tcw.compiler.codegen.triton.parts import Part, PartForm, Parts, Placed, Planned
from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.loops.expressions import Read
from tcw.compiler.loops.graph import ARG
from tcw.compiler.loops.nest import (
    Let,
    Nest,
    Reduction,
    ScanAlong,
    Statement,
    Write,
    expressions,
    reads_in,
)


class Split:
    """The kernels of one nest and the workspace that connects them."""

    def __init__(self, nest: Nest, limits: Limits, shared: frozenset[str] = frozenset()) -> None:
        self.limits = limits
        self.nest = simplify(nest)
        facts = Facts(self.nest)
        self.nest, means = with_moments(facts, self._streams)
        self.facts = facts.of(self.nest)
        self._paired = {
            s.expression
            for s in self.nest.statements
            if isinstance(s, Reduction) and s.op == "deviations"
        }
        self.shared = shared
        self.placed = Placed(self.nest, self.facts, means)
        self._parts = Parts(self.placed)
        self.workspace = self._parts.workspace
        self._behind: dict[str, frozenset[str]] = {}
        """Values -> the reductions and scans that they are computed from, through `Let`s."""

    def parts(self) -> list[Part]:
        """The kernels in order."""
        # a write joins rows wherever they stand: what it writes is read once, then
        for statement in sorted(self._riders_last(), key=lambda s: isinstance(s, Write)):
            self._place(statement)
        self._after_reads()
        self._lift()
        return self._parts.made()

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
        first = max((self._number(self.placed.home[name]) for name in behind), default=0)
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
        self.placed.home[statement.name] = home

    def _roots(self, statement: Statement) -> frozenset[str]:
        found: set[str] = set()
        for name in self.facts.locals_in(statement):
            found |= self._behind[name]
        return frozenset(found)

    def _number(self, kernel: Planned) -> int:
        return next(n for n, other in enumerate(self.placed.kernels) if other is kernel)

    def _rows(
        self,
        statement: Reduction | ScanAlong,
        row: frozenset[int],
        kept: frozenset[int],
        first: int,
    ) -> Planned:
        alone = isinstance(statement, ScanAlong) or statement.op in ARG
        for kernel in self.placed.kernels[first:]:
            same = kernel.row == row and kernel.kept == kept and kernel.of is None
            if same and row and not (alone and kernel.form == "partial"):
                return kernel
        programs = 1 if alone else self._programs(row, kept)
        form: PartForm = "partial" if programs > 1 else "rows"
        made = Planned(row, kept, form, programs)
        self.placed.kernels.append(made)
        return made

    def _programs(self, row: frozenset[int], kept: frozenset[int]) -> int:
        length = self.limits.number(self.nest.size(row))
        rows = self.limits.number(self.nest.size(kept))
        across = self._across(row, kept)
        return self.limits.parts_of_row(rows, length, across)

    def _streams(self, statement: Reduction) -> bool:
        """Whether programs read the rows of a reduction step by step, forwards."""
        if any(isinstance(s, ScanAlong) and s.reverse for s in self.nest.statements):
            return False
        row, kept = frozenset(statement.over), frozenset(statement.axes)
        size = self.nest.size(row)
        whole = self.limits.holds(size, self._across(row, kept))
        return self._programs(row, kept) > 1 or not whole

    def _across(self, row: frozenset[int], kept: frozenset[int]) -> bool:
        """Whether a row lies across memory: its elements are not neighbours, but those of
        neighbouring rows are."""
        return bool(kept and row) and max(kept) > max(row)

    def _totals(self, of: Planned, kept: frozenset[int]) -> Planned:
        for kernel in self.placed.kernels:
            if kernel.of is of and kernel.kept == kept:
                return kernel
        made = Planned(frozenset(), kept, "totals", of=of)
        self.placed.kernels.append(made)
        return made

    def _ride(self, rider: Reduction, first: int) -> bool:
        """Put a sum over rows into the kernel of these rows, if its programs can hold it."""
        over, axes = frozenset(rider.over), frozenset(rider.axes)
        for kernel in self.placed.kernels[first:]:
            if (
                kernel.form not in ("rows", "riding")
                or over != kernel.kept
                or axes != kernel.row
                or rider.op in ARG
                or rider.expression in self._paired
                or self._across(kernel.row, kernel.kept)
            ):
                continue
            length = self.nest.size(kernel.row)
            if not isinstance(length, int):  # a program has to hold the row, whatever its length
                continue
            rows = self.limits.number(self.nest.size(kernel.kept))
            programs = self.limits.riding_programs(
                rows, length, len(kernel.riders) + 1, self._bytes_read(kernel)
            )
            if not programs:
                continue
            kernel.form, kernel.programs = "riding", programs
            kernel.riders.append(rider)
            self._behind[rider.name] = frozenset((rider.name,))
            self.placed.home[rider.name] = self._totals(kernel, axes)
            return True
        return False

    def _bytes_read(self, kernel: Planned) -> int:
        """Bytes that each element of the rows reads."""
        found: dict[str, int] = {}
        for statement in self.nest.statements:
            for part in expressions(statement):
                if isinstance(part, Read):
                    axes = self.facts.moves(part.address)
                    if axes & kernel.row and axes & kernel.kept:
                        found[part.buffer] = BYTES[part.dtype]
        return sum(found.values()) or 4

    def _kernel_for(self, write: Write, first: int) -> Planned:
        """The first kernel whose programs visit each position of a write exactly once."""
        domain = frozenset(write.axes)
        for kernel in self.placed.kernels[first:]:
            rest = domain - kernel.kept
            if domain >= kernel.kept and (rest == kernel.row or not rest):
                whole = not kernel.row or rest or kernel.form in ("rows", "riding")
                if whole and not (kernel.form == "riding" and write.mode != "set"):
                    return kernel
        made = Planned(frozenset(), domain, "pointwise")
        self.placed.kernels.append(made)
        return made

    def _after_reads(self) -> None:
        """Move each write behind the last kernel that reads what it overwrites."""
        moved = True
        while moved:
            moved = False
            for number, kernel in enumerate(self.placed.kernels):
                for write in list(kernel.writes):
                    changed = overwrites(write, self.shared)
                    later = [
                        n
                        for n, other in enumerate(self.placed.kernels)
                        if n > number and changed & self._read_by(other, without=write)
                    ]
                    if later:
                        kernel.writes.remove(write)
                        self._kernel_for(write, later[-1]).writes.append(write)
                        moved = True

    def _read_by(self, kernel: Planned, without: Write) -> set[str]:
        others = (s for s in self.placed.needed(kernel) if s is not without)
        return {read.buffer for read in reads_in(others)}

    def _lift(self) -> None:
        """Values that depend on results of other kernels alone are computed where these results
        are, if they vary over fewer axes than what reads them: once, and not for each element. So
        are those that a few programs would read: the mean of a cross entropy is one program, which
        takes 18 µs for 8,192 losses, and 4 if each row's program has computed its own (H100)."""
        for kernel in self.placed.kernels:
            pending: list[Statement] = list(self.placed.effects(kernel))
            seen: set[str] = set()
            while pending:
                statement = pending.pop()
                for name in self.facts.locals_in(statement):
                    value = self.facts.named[name]
                    if not isinstance(value, Let) or name in seen or name in self.placed.lifted:
                        continue
                    seen.add(name)
                    home = self._may_move(value, kernel, self.facts.domain(statement))
                    if home is None:
                        pending.append(value)
                    else:
                        self.placed.lifted[name] = home

    def _may_move(self, value: Let, kernel: Planned, domain: frozenset[int]) -> Planned | None:
        """The kernel that can compute a value for another one; None if there is none."""
        homes = [self.placed.home[name] for name in self._behind[value.name]]
        axes = self.facts.axes(value.expression)
        if not homes or not axes <= domain or kernel in homes:
            return None
        last = max(homes, key=self._number)
        plain = last.form in ("rows", "totals") and last.kept == axes
        if not plain or self._number(last) >= self._number(kernel):
            return None
        return last if axes < domain or self._is_narrow(kernel, last) else None

    def _is_narrow(self, kernel: Planned, other: Planned) -> bool:
        """Whether a kernel has fewer rows than there are processors, and than another one has."""
        rows, others = (
            self.limits.number(self.nest.size(planned.kept)) for planned in (kernel, other)
        )
        return rows * max(kernel.programs, 1) < min(self.limits.processors, others)

    # What each kernel computes
