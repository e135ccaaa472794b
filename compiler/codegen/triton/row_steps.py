"""Rows in steps: passes over a row that a program does not hold as a whole.

A pair of reductions that one pass computes together has one state:

maximum and sum of exponentials   the greatest so far and the sum relative to it, one per row
sum and squared distances         a mean and its squared distances for each lane of the tile
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tcw.compiler.codegen.nests.facts import Value, overwrites
from tcw.compiler.codegen.nests.moments import partner
from tcw.compiler.codegen.nests.names import base_name
from tcw.compiler.codegen.triton import tile_indices
from tcw.compiler.codegen.triton.scopes import Scope
from tcw.compiler.codegen.triton.tile_indices import FAR
from tcw.compiler.codegen.triton.vocabulary import TYPES
from tcw.compiler.loops.dtypes import compute_dtype
from tcw.compiler.loops.expressions import Expression
from tcw.compiler.loops.graph import ARG
from tcw.compiler.loops.nest import Let, Reduction, ScanAlong, Statement, Write, reads_in

if TYPE_CHECKING:
    from tcw.compiler.codegen.triton.kernel import Writer

PAIRS = {"exp_sum": "max", "deviations": "sum"}


class Passes:
    """The passes of one kernel."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.part, self.tile, self.nest, self.facts = (
            writer.part, writer.tile, writer.nest, writer.facts
        )  # fmt: skip
        self.names, self.root, self.values = writer.names, writer.root, writer.values
        self.x, self.r, self.shared = writer.x, writer.r, writer.shared
        self.step = self.r.block
        """Elements from the start of one step of a pass to that of the next."""

    def _stages(self) -> list[list[Statement]]:
        """The effects of each pass over a row: a value that needs a whole row is in a later one."""
        stage: dict[str, int] = {}
        effects: dict[int, list[Statement]] = {}
        rows = set(self.tile.r)
        for statement in self.nest.statements:
            first = 0
            for name in self.facts.locals_in(statement):
                other = self.facts.named[name]
                first = max(first, stage[name] + isinstance(other, Reduction))
            if not isinstance(statement, Write):
                stage[statement.name] = first
            if not isinstance(statement, Let):
                effects.setdefault(first, []).append(statement)
        self._delay(effects)
        count = max(effects, default=-1) + 1
        order = [effects.get(number, []) for number in range(count)]
        # what does not run along the row is written between passes, in the first one possible
        return [sorted(each, key=lambda s: not (self._runs(s) & rows)) for each in order]

    def _runs(self, statement: Statement) -> frozenset[int]:
        return self.facts.domain(statement)

    def _delay(self, effects: dict[int, list[Statement]]) -> None:
        """Move writes that may overwrite what a later pass reads into the last such pass."""
        for number in sorted(effects):
            for write in list(effects[number]):
                if not isinstance(write, Write):
                    continue
                changed = overwrites(write, self.shared)
                later = [n for n in effects if n > number and changed & self._reads(effects[n])]
                if later:
                    effects[number].remove(write)
                    effects[max(later)].append(write)

    def _reads(self, effects: Sequence[Statement]) -> set[str]:
        return {read.buffer for read in reads_in([*effects, *self._behind(effects)])}

    def _behind(self, effects: Sequence[Statement]) -> list[Value]:
        """The values that a pass computes for these effects."""
        return self.facts.behind(effects, lambda s: not isinstance(s, Reduction))

    def _scans_behind(self, effects: Sequence[Statement]) -> list[Statement]:
        """Scans of earlier passes whose values these effects need once more."""
        wanted = {id(s) for s in self._behind(effects)} - {id(s) for s in effects}
        return [s for s in self.nest.statements if isinstance(s, ScanAlong) and id(s) in wanted]

    def write(self) -> None:
        """Write the kernel's body."""
        program = self.writer.program()
        start, end = "0", tile_indices.text(self.r.size)
        if self.part.form == "partial":
            count = self.part.programs
            self.root.add(f"program = {program}")
            self.root.add(f"part = program % {count}")
            program = f"(program // {count})"
            if self._takes_turns():
                start, self.step = f"part * {self.r.block}", count * self.r.block
            else:
                self.writer.chunk(self.r, count)
                start, end = "part * chunk", f"tl.minimum(part * chunk + chunk, {end})"
        self.writer.positions(program)
        stages = self._stages()
        rows = set(self.tile.r)
        reads = [self._reads([s for s in each if self._runs(s) & rows]) for each in stages]
        for number, effects in enumerate(stages):
            self.values.again = frozenset().union(*reads[number + 1 :])
            self.values.before = frozenset().union(*reads[:number])
            along = [s for s in effects if self._runs(s) & rows]
            if along:
                self._pass([*self._scans_behind(along), *along], start, end)
            for statement in effects:
                if statement not in along:
                    self.writer.statement(statement, self.root)
        for name, partial in self.part.partials.items():
            text = self.values.defined[name][1]
            at = tile_indices.offset(self.nest, partial.address, (self.x,))
            where = f"part * {tile_indices.text(partial.width)} + {at} + tl.zeros([1, 1], tl.int32)"
            self.values.put(partial.buffer, where, text, self.x.mask, self.root)
            if partial.counts:
                self.values.put(
                    partial.counts, where, self.writer.counts[name], self.x.mask, self.root
                )

    def _takes_turns(self) -> bool:
        """Whether parts of a row take turns at its blocks, so that all programs read near each
        other: column sums of 65536 x 1024 bfloat16 take 55 µs, and 59 with a chunk for each part
        (H100). The lanes of squared distances count what a mask leaves out of a chunk."""
        size, block = self.r.size, self.r.block
        whole = isinstance(size, int) and size % block == 0
        return whole or not any(partial.counts for partial in self.part.partials.values())

    def _pass(self, effects: Sequence[Statement], start: str, end: str) -> None:
        """One pass over a row. Accumulators are tiles, combined after the loop."""
        loop = self.values.begin_loop(self.tile.r)
        backwards = any(isinstance(s, ScanAlong) and s.reverse for s in effects)
        shape = f"[{self.x.block}, {self.r.block}]"
        carries: dict[str, str] = {}
        for effect in effects:
            if isinstance(effect, ScanAlong):
                dtype = compute_dtype(effect.expression.dtype)
                carry = carries[effect.name] = self.names.new(f"{base_name(effect.name)}_carry")
                self.writer.fill(carry, f"[{self.x.block}, 1]", effect.op, dtype)
        at = "start" if not backwards else f"({end} - 1) // {self.r.block} * {self.r.block} - start"
        self.r.define(at, "[None, :]", loop)
        self.writer.mask(self.r)  # parts of rows begin at multiples of a block, too
        after: list[tuple[Reduction, str]] = []
        joint = Joint(self.writer, effects, loop)
        for effect in effects:
            if isinstance(effect, ScanAlong):
                self.writer.scan(effect, loop, carries[effect.name])
            elif isinstance(effect, Reduction):
                if joint.has(effect):
                    joint.step(effect)
                    continue
                after.append((effect, self._accumulate(effect, loop, shape)))
            else:
                self.writer.statement(effect, loop)
        self.root.enclose(self.writer.steps(start, end, self.step), loop)
        for effect, name in after:
            if effect.op in ARG:
                self.writer.complete_arg(effect, name, f"{name}_at", self.root)
                continue
            dtype = compute_dtype(effect.expression.dtype)
            text = f"{self.writer.combined(effect.op, name, dtype)}[:, None]"
            self.values.complete(effect, text, self.root)
        joint.finish(start, end)

    def _accumulate(self, effect: Reduction, loop: Scope, shape: str) -> str:
        name = self.names.new(f"{base_name(effect.name)}_parts")
        if effect.op not in ARG:
            return self.writer.accumulate(effect, name, self.r.mask, loop)
        dtype = compute_dtype(effect.expression.dtype)
        self.writer.fill(name, shape, effect.op, dtype)
        text = self.writer.masked(effect, loop, self.r.mask)
        position = "tl.int64" if self.writer.far else "tl.int32"
        self.root.add(f"{name}_at = tl.full({shape}, {FAR}, {position})")
        function = f"{effect.op}_of"
        self.values.needs.add(function)
        place = f"tl.broadcast_to({self.r.name}, {shape})"
        if self.r.mask:
            place = f"tl.where({self.r.mask}, {place}, {FAR})"
        pair = f"{function}({name}, {name}_at, {text}, {place})"
        loop.add(f"{name}, {name}_at = {pair}", effect.origins)
        return name


class Joint:
    """The pairs of one pass. Their states start before the loop and change in it."""

    def __init__(self, writer: Writer, effects: Sequence[Statement], loop: Scope) -> None:
        self.writer = writer
        self.loop = loop
        reductions = [effect for effect in effects if isinstance(effect, Reduction)]
        self._pairs = {
            reduction.expression: reduction for reduction in reductions if reduction.op in PAIRS
        }
        self._members = [effect for effect in reductions if self.has(effect)]
        self._online: dict[Expression, tuple[str, str]] = {}
        self._moments: dict[Expression, tuple[str, str, str, str]] = {}

    def has(self, effect: Reduction) -> bool:
        """Whether a pair computes it."""
        pair = self._pairs.get(effect.expression)
        return pair is not None and effect.op in (pair.op, PAIRS[pair.op])

    def step(self, effect: Reduction) -> None:
        """Write what a step of the loop adds to the pair of this reduction, once for both."""
        pair = self._pairs[effect.expression]
        if pair.op == "exp_sum":
            if pair.expression not in self._online:
                self._online[pair.expression] = self._greatest(pair, self.loop)
        elif pair.expression not in self._moments:
            assert partner(pair, self._members), f"{pair.name} without its sum"
            self._moments[pair.expression] = self._means(pair, self.loop)

    def finish(self, start: str, end: str) -> None:
        """Behind the loop from `start` to `end`: the results."""
        values, root = self.writer.values, self.writer.root
        found: dict[Expression, tuple[str, str, str]] = {}
        for expression, state in self._moments.items():
            found[expression] = self._of_lanes(state, start, end)
        for effect in self._members:
            if effect.expression in self._online:
                top, total = self._online[effect.expression]
                values.complete(effect, top if effect.op == "max" else total, root)
                continue
            total, squares, count = found[effect.expression]
            values.complete(effect, total if effect.op == "sum" else squares, root)
            if effect.op == "deviations":
                self.writer.counts[effect.name] = count

    def _greatest(self, effect: Reduction, loop: Scope) -> tuple[str, str]:
        """The greatest element so far and the sum of exponentials relative to it, one per row.
        Either is NaN if an element is."""
        writer, base = self.writer, base_name(effect.name)
        new, rows = writer.names.new, f"[{writer.x.block}, 1]"
        top, total, value = new(f"{base}_top"), new(f"{base}_sum"), new(f"{base}_value")
        writer.fill(top, rows, "max", "float32")
        writer.fill(total, rows, "sum", "float32")
        text = writer.full(effect, loop)
        if writer.r.mask:
            text = f'tl.where({writer.r.mask}, {text}, float("-inf"))'
        loop.add(f"{value} = {text}", effect.origins)
        above, least = new(f"{base}_above"), new(f"{base}_least")
        writer.values.needs.add("max_of")
        loop.add(f"{above} = max_of({top}, tl.reduce({value}, 1, max_of)[:, None])")
        loop.add(f'{least} = tl.where({above} == float("-inf"), 0.0, {above})')
        loop.add(
            f"{total} = {total} * tl.exp({top} - {least}) + "
            f"tl.sum(tl.exp({value} - {least}), 1)[:, None]"
        )
        loop.add(f"{top} = {above}")
        return top, total

    def _means(self, effect: Reduction, loop: Scope) -> tuple[str, str, str, str]:
        """The mean of each lane and the squared distances from it: (mean, squares, steps, dtype).

        A lane that a step leaves out is left out by all later ones, so that one number of steps
        serves all lanes.
        """
        writer, base, dtype = self.writer, base_name(effect.name), effect.expression.dtype
        new, tile = writer.names.new, f"[{writer.x.block}, {writer.r.block}]"
        mean, squares, steps = new(f"{base}_mean"), new(base), new("steps")
        writer.fill(mean, tile, "sum", dtype)
        writer.fill(squares, tile, "sum", dtype)
        writer.root.add(f"{steps} = tl.full([1, 1], 0, {TYPES[dtype]})")
        value = writer.names.new(f"{base}_value")
        loop.add(f"{value} = {writer.full(effect, loop)}", effect.origins)
        away, moved = new("away"), new("moved")
        loop.add(f"{steps} += 1")
        loop.add(f"{away} = {value} - {mean}")
        loop.add(f"{moved} = {mean} + {away} * (1.0 / {steps})")
        more = f"{away} * ({value} - {moved})"
        if writer.r.mask:
            more = f"tl.where({writer.r.mask}, {more}, 0.0)"
            moved = f"tl.where({writer.r.mask}, {moved}, {mean})"
        loop.add(f"{squares} += {more}")
        loop.add(f"{mean} = {moved}")
        return mean, squares, steps, dtype

    def _of_lanes(
        self, state: tuple[str, str, str, str], start: str, end: str
    ) -> tuple[str, str, str]:
        """Sum, squared distances and number of elements of a row, from those of its lanes."""
        mean, squares, steps, dtype = state
        writer, root = self.writer, self.writer.root
        new, block = writer.names.new, writer.r.block
        seen, total, count = new("seen"), new(f"{squares}_total"), new("count")
        text = f"{steps} + tl.zeros([1, {block}], {TYPES[dtype]})"
        all_seen = f"{steps} * {block}"
        if writer.r.mask:
            left = f"{end} - {start}" if start != "0" else end
            lane = f"tl.arange(0, {block})[None, :]"
            text = f"tl.cdiv(tl.maximum({left} - {lane}, 0), {block}).to({TYPES[dtype]})"
            all_seen = f"tl.full([], tl.maximum({left}, 0), {TYPES[dtype]})"
        root.add(f"{seen} = {text}")
        # not the sum of `seen`, which Triton would compute in every thread for all lanes
        root.add(f"{count} = {all_seen}")
        root.add(f"{total} = tl.sum({seen} * {mean}, 1)[:, None]")
        apart = new("apart")
        root.add(f"{apart} = {mean} - {total} / tl.maximum({count}, 1)")
        result = new(f"{squares}_all")
        root.add(f"{result} = tl.sum({squares} + {seen} * {apart} * {apart}, 1)[:, None]")
        return total, result, count
