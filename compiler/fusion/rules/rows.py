"""`strided rows`, `recomputed`: whether a nest over such rows can be fast."""

from __future__ import annotations

from tcw.compiler.fusion.counts import elements
from tcw.compiler.fusion.groups import Space
from tcw.compiler.fusion.leaves import reads
from tcw.compiler.fusion.rows import Mask, mask_text
from tcw.compiler.fusion.rules import Refusal
from tcw.compiler.fusion.short_runs import is_spread
from tcw.compiler.fusion.weights import L2, LANES, Weights
from tcw.compiler.loops.graph import Compute
from tcw.compiler.loops.layouts import View, normalize
from tcw.compiler.loops.sizes import product
from tcw.compiler.trace.byte_counts import bytes_text

SINGLE_ROW = 16 << 10
"""Maximum elements of a domain that is a single row, which runs on one thread."""


def rows_are_plain(space: Space, reduces: bool, weights: Weights) -> Refusal | None:
    """Rows must have the innermost digits reduced, or be wide and fit in the cache."""
    mask = space.mask
    if mask is None:
        return None
    if not mask[0][1] and len(mask) == 2:
        return None
    if reduces and weights.machine.columns:
        return None
    if not reduces:
        return Refusal(
            "recomputed",
            f"row scalars of {mask_text(mask)} would be recomputed for each row",
            legal=True,
        )
    return strided_rows(mask, weights)


def runs_are_whole(space: Space, members: list[Compute], weights: Weights) -> Refusal | None:
    """A value that was spread over short runs is read from memory, along rows of such runs; and no
    operand in another order cuts columns into runs shorter than a vector."""
    if not weights.machine.runs or space.mask is None or space.mask[-1][1]:
        return None
    for node in members:
        if elements(node.domain) == space.size:
            for leaf in reads(node):
                width = _run_of(leaf.view)
                if width is not None and width < LANES:
                    return Refusal(
                        "strided rows",
                        f"{leaf.value} is read in runs of {width} elements",
                        legal=True,
                        numbers={"run_elements": width, "least_run_elements": LANES},
                    )
        if elements(node.domain) != space.size and is_spread(node):
            run = node.domain[-1]
            return Refusal(
                "strided rows", f"{node.name} would leave runs of {run} elements", legal=True
            )
    return None


def _run_of(view: View) -> int | None:
    """How many elements a view reads before it goes elsewhere; None if that is unknown."""
    shape = normalize(view[0]).shape if len(view) == 1 else ()
    return shape[-1] if len(shape) > 1 and isinstance(shape[-1], int) else None


def strided_rows(mask: Mask, weights: Weights) -> Refusal | None:
    """A row in pieces: each piece must be as wide as a vector, and the row must fit in L2."""
    length = weights.number(product(size for size, away in mask if away))
    if len(mask) == 1:
        if length <= SINGLE_ROW:
            return None
        return Refusal(
            "strided rows",
            f"one row of {length} elements leaves all but one core idle",
            legal=True,
            numbers={"row_elements": length, "most_row_elements": SINGLE_ROW},
        )
    inner, reduced = mask[-1]
    width = weights.number(inner)
    footprint = length * 4 * (1 if reduced else LANES)
    if width < LANES:
        return Refusal(
            "strided rows",
            f"rows of {mask_text(mask)} lie in runs of {width} elements",
            legal=True,
            numbers={"run_elements": width, "least_run_elements": LANES},
        )
    if footprint > L2:
        return Refusal(
            "strided rows",
            f"a row of {mask_text(mask)} takes {bytes_text(footprint)}",
            legal=True,
            numbers={"row_bytes": footprint, "most_row_bytes": L2},
        )
    return None
