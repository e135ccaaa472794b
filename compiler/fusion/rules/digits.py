"""`digits`: whether the accesses of both groups remain sums of stride times axis."""

from __future__ import annotations

from tcw.compiler.fusion.counts import common
from tcw.compiler.fusion.groups import Group, Space
from tcw.compiler.fusion.rows import Mask, row_view
from tcw.compiler.fusion.rules import Refusal
from tcw.compiler.loops.layouts import Shape, compose, row_major
from tcw.compiler.loops.sizes import Size, multiply

AXES = 8


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
    if len(found) > AXES:
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
    found: list[Size] = []
    rest = list(fine)
    for size, away in mask:
        if away:
            found.append(size)
            continue
        piece: Size = 1
        while piece != size:
            piece = multiply(piece, rest[0])
            found.append(rest.pop(0))
    return tuple(found)
