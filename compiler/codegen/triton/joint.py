"""Pairs of reductions that one pass over a long row computes together, from one state.

maximum and sum of exponentials   the greatest so far and the sum relative to it, one per row
sum and squared distances         a mean and its squared distances for each lane of the tile
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tcw.compiler.codegen.nests.moments import partner
from tcw.compiler.codegen.nests.names import base_name
from tcw.compiler.codegen.triton.code import Scope
from tcw.compiler.codegen.triton.vocabulary import TYPES
from tcw.compiler.loops.expressions import Expression
from tcw.compiler.loops.nest import Reduction, Statement

if TYPE_CHECKING:
    from tcw.compiler.codegen.triton.kernel import Writer

PAIRS = {"exp_sum": "max", "deviations": "sum"}


class Joint:
    """The pairs of one pass. Their states start before the loop and change in it."""

    def __init__(self, writer: Writer, effects: Sequence[Statement], loop: Scope) -> None:
        self.writer = writer
        self.loop = loop
        reductions = [effect for effect in effects if isinstance(effect, Reduction)]
        self._pairs = {one.expression: one for one in reductions if one.op in PAIRS}
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
