"""`strided rows`, `recomputed`: whether a nest over such rows can be fast. `rider`, `working set`:
reductions over other digits than those of the rows."""

from __future__ import annotations

from collections.abc import Mapping

from tcw.compiler.fusion.edges import Edges
from tcw.compiler.fusion.groups import Space
from tcw.compiler.fusion.leaves import reads
from tcw.compiler.fusion.rows import Mask, elements, kept_size, mask_of, mask_text, row_length
from tcw.compiler.fusion.rules import Refusal
from tcw.compiler.fusion.rules.domain import SMALL, comes_back
from tcw.compiler.fusion.short_runs import is_spread
from tcw.compiler.fusion.weights import L2, LANES, Weights
from tcw.compiler.loops.graph import Compute, Reduce
from tcw.compiler.loops.layouts import View, normalize
from tcw.compiler.loops.sizes import product
from tcw.compiler.trace.byte_counts import bytes_text

SINGLE_ROW = 16 << 10
"""Maximum elements of a domain that is a single row, which runs on one thread."""
MANY_ROWS = 64
"""Minimum number of rows that threads share in blocks, each with its own accumulators."""
RIDE = ("sum", "prod", "max", "min", "any", "all")


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


def riders_are_plain(space: Space, members: list[Compute], weights: Weights) -> Refusal | None:
    """Allow column sums of the nest's own rows, and full sums, if all accumulators fit in the near
    memory, or in the far one if they sum up many rows."""
    bytes_held = 0
    for node in members:
        if not isinstance(node, Reduce):
            continue
        mask = mask_of(node.domain, node.reduced)
        if mask == space.mask:
            continue
        if node.op not in RIDE:
            return Refusal("rider", f"{node.name} ({node.op}) needs a loop over its own rows")
        if elements(node.domain) == space.size:
            refusal = _rides(node, mask, space)
            if refusal is not None:
                return refusal
        elif len(mask) != 1:
            return Refusal("rider", f"{node.name} reduces part of the row scalars")
        bytes_held += 4 * weights.number(kept_size(mask))
    machine = weights.machine
    many = 4 * weights.number(space.size) >= MANY_ROWS * bytes_held
    most = machine.far if many else machine.near
    if bytes_held > most:
        return Refusal(
            "working set",
            f"accumulators take {bytes_text(bytes_held)} of {bytes_text(most)}",
            legal=True,
            numbers={"most_working_set": most},
        )
    return None


def riders_save_kernels(
    space: Space, members: list[Compute], place: Mapping[str, int], edges: Edges, weights: Weights
) -> Refusal | None:
    """On a GPU, a riding reduction of columns is finished by a kernel of its own. A small one whose
    result its own elements read back is left to the kernel that reads them again."""
    if space.mask is None or not weights.machine.columns or weights.number(space.size) > SMALL:
        return None
    for node in members:
        if not isinstance(node, Reduce) or elements(node.domain) != space.size:
            continue
        mask = mask_of(node.domain, node.reduced)
        readers = edges.of_producer[place[node.name]]
        if mask != space.mask and any(comes_back(edge, mask, edges) for edge in readers):
            return Refusal(
                "too little",
                f"{node.name} would take one more kernel, for elements that are read again anyway",
                legal=True,
                numbers={"most_elements": SMALL},
            )
    return None


def _rides(node: Reduce, mask: Mask, space: Space) -> Refusal | None:
    if len(mask) > 2:
        return Refusal("rider", f"{node.name} ({mask_text(mask)}) is not a plain column sum")
    if len(mask) == 1:
        return None
    others = [other for other in space.riders if len(other) > 1 and other != mask]
    if others:
        return Refusal("rider", f"columns of {mask_text(mask)} and of {mask_text(others[0])}")
    if space.mask is not None:
        across = mask[1][0] == row_length(space.mask) and len(space.mask) == 2
        if not across or space.mask[0][1]:
            return Refusal(
                "rider", f"columns of {mask_text(mask)} in rows of {mask_text(space.mask)}"
            )
    return None
