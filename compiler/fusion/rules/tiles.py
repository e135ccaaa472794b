"""`digits`, `tiles`: whether the accesses of both groups remain sums of stride times axis, and one
loop can transpose all that it reads and writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tcw.compiler.fusion.groups import Group, Space
from tcw.compiler.fusion.leaves import leaves
from tcw.compiler.fusion.rows import Mask, common, row_view
from tcw.compiler.fusion.rules import Refusal
from tcw.compiler.fusion.weights import Weights
from tcw.compiler.loops.graph import Compute, Store
from tcw.compiler.loops.layouts import Shape, View, compose, row_major, view_strides
from tcw.compiler.loops.sizes import Size, multiply

AXES = 2
"""Axes of a square tile: the lanes, and those along which it is loaded and transposed."""
LEAST = 1 << 12
"""Number of elements from which strided access to each costs more than starting another loop."""
MOST_AXES = 8


def tiles_have_two_axes(
    groups: Iterable[tuple[Group, Shape]], digits: Shape, space: Space, weights: Weights
) -> Refusal | None:
    """Accesses that are contiguous along different digits are transposed in tiles of two digits.

    A common loop over one flat domain, which both groups walk in another order, may need more: it
    would access the rest element by element. Each group comes with its digits; `digits` refine
    them. Legal in any case.
    """
    if not weights.machine.runs or weights.number(space.size) < LEAST:
        return None
    both = list(groups)
    if any(own == digits or group.size != space.size for group, own in both):
        return None
    each = [_contiguous(group.members, own) for group, own in both]
    together = _contiguous([node for group, _ in both for node in group.members], digits)
    if len(together) <= AXES or any(len(axes) > AXES for axes in each):
        return None
    return Refusal(
        "tiles",
        f"accesses are contiguous along {len(together)} axes of {'×'.join(map(str, digits))}",
        legal=True,
        numbers={"contiguous_axes": len(together), "most_contiguous_axes": AXES},
    )


def _contiguous(members: Iterable[Compute], digits: Shape) -> set[int]:
    """The digits along which accesses to each element of a domain have unit stride."""
    found: set[int] = set()
    for view in _views(members):
        strides = view_strides(view, digits)
        wide = [axis for axis, size in enumerate(digits) if size != 1]
        if strides is not None and all(strides[axis] != 0 for axis in wide):
            found.update(axis for axis in wide if strides[axis] == 1)
    return found


def _views(members: Iterable[Compute]) -> Iterator[View]:
    for node in members:
        if isinstance(node, Store):
            yield node.view
        for leaf in leaves(node):
            yield leaf.view


def common_digits(
    one: Group, two: Group, space: Space, digits: dict[int, Shape]
) -> Shape | Refusal:
    """Digits that refine those of both groups, or why there are none."""
    shapes = [lifted(digits[group.id], group.size, space) for group in (one, two)]
    if space.mask is not None:
        shapes.append(tuple(size for size, _ in space.mask))
    found = common(*shapes)
    text = " and ".join("×".join(map(str, shape)) for shape in shapes[:2])
    if found is None:
        return Refusal("digits", f"{text} have no common digits")
    if len(found) > MOST_AXES:
        return Refusal("digits", f"{text} together make {len(found)} axes")
    return found


def lifted(shape: Shape, size: Size, space: Space) -> Shape:
    """Digits of the rows as digits of the whole domain."""
    if size == space.size or not shape:
        return shape if size == space.size else (space.size,)
    mask: Mask | None = space.mask
    assert mask is not None
    layout = compose(row_major(shape), row_view(mask))
    return _cut(shape, mask) if layout is not None else (space.size,)


def _cut(shape: Shape, mask: Mask) -> Shape:
    """The mask's digits, with its kept digits refined by the shape's."""
    kept = tuple(size for size, away in mask if not away)
    fine = common(shape, kept)
    if fine is None:
        return tuple(size for size, _ in mask)
    sizes: list[Size] = []
    rest = list(fine)
    for size, away in mask:
        if away:
            sizes.append(size)
            continue
        piece: Size = 1
        while piece != size:
            piece = multiply(piece, rest[0])
            sizes.append(rest.pop(0))
    return tuple(sizes)
