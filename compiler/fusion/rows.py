"""Rows: the digits of a group's domain, marked kept or reduced, and the views of row scalars;
arithmetic of shapes, cached."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from tcw.compiler.fusion.leaves import reads
from tcw.compiler.loops.graph import Store
from tcw.compiler.loops.layouts import Layout, Shape, normalize, refine, row_major, view_strides
from tcw.compiler.loops.sizes import Size, multiply, product

Mask = tuple[tuple[Size, bool], ...]
"""Digits, most significant first; True if reduced. No digit of size 1; the marks alternate."""


def merged(digits: Iterable[tuple[Size, bool]]) -> Mask:
    """The mask with the fewest digits."""
    found: list[tuple[Size, bool]] = []
    for size, reduced in digits:
        if size == 1:
            continue
        if found and found[-1][1] == reduced:
            found[-1] = (multiply(found[-1][0], size), reduced)
        else:
            found.append((size, reduced))
    return tuple(found)


@lru_cache(maxsize=1 << 12)
def mask_of(domain: Shape, reduced: tuple[bool, ...]) -> Mask:
    """The mask of a domain, given which digits are reduced."""
    return merged(zip(domain, reduced, strict=True))


@lru_cache(maxsize=1 << 12)
def kept_size(mask: Mask) -> Size:
    """The number of rows."""
    return product(size for size, reduced in mask if not reduced)


@lru_cache(maxsize=1 << 12)
def row_length(mask: Mask) -> Size:
    return product(size for size, reduced in mask if reduced)


@lru_cache(maxsize=1 << 12)
def whole_size(mask: Mask) -> Size:
    return product(size for size, _ in mask)


@lru_cache(maxsize=1 << 12)
def row_view(mask: Mask) -> Layout:
    """Flat index of the whole domain -> flat index of the rows."""
    return part_view(mask, reduced=False)


@lru_cache(maxsize=1 << 12)
def part_view(mask: Mask, *, reduced: bool) -> Layout:
    """Flat index of the whole domain -> flat index of the kept (or of the reduced) digits."""
    marks = [away == reduced for _, away in mask]
    widths = row_major(tuple(s for (s, _), mine in zip(mask, marks, strict=True) if mine)).strides
    steps = iter(widths)
    strides = tuple(next(steps) if mine else 0 for mine in marks)
    return normalize(Layout(tuple(size for size, _ in mask), strides))


def mask_of_broadcast(layout: Layout) -> Mask | None:
    """The mask whose rows `layout` reads in order, or None if it does not read rows."""
    normal = normalize(layout)
    if normal.offset != 0:
        return None
    width: Size = 1
    for size, stride in zip(reversed(normal.shape), reversed(normal.strides), strict=True):
        if stride == 0:
            continue
        if stride != width:
            return None
        width = multiply(width, size)
    return merged((n, step == 0) for n, step in zip(normal.shape, normal.strides, strict=True))


def mask_text(mask: Mask) -> str:
    """`512 kept × 256 reduced`."""
    return " × ".join(f"{size} {'reduced' if away else 'kept'}" for size, away in mask) or "1"


def ends_of(rows: Store, ends: Store) -> bool:
    """Whether one store writes one element beside each row that another one writes in the same
    buffer: a column of the border of an image.

    Not if the rows are read across memory: then they are transposed, unless there is more to do in
    their loop.
    """
    along = rows.domain[:-1]
    if rows.buffer != ends.buffer or not along or product(along) != product(ends.domain):
        return False
    if rows.mode != "set" or ends.mode != "set" or rows.terms or ends.terms:
        return False
    whole, part = (view_strides(store.view, d) for store, d in ((rows, rows.domain), (ends, along)))
    seen = (view_strides(leaf.view, rows.domain) for leaf in reads(rows))
    if any(strides is not None and strides[-1] not in (-1, 0, 1) for strides in seen):
        return False
    return whole is not None and part is not None and whole[:-1] == part


@lru_cache(maxsize=1 << 12)
def elements(shape: Shape) -> Size:
    """The number of elements of a shape."""
    return product(shape)


@lru_cache(maxsize=1 << 12)
def common(*shapes: Shape) -> Shape | None:
    """The coarsest digits that refine all these shapes, or None if there are none."""
    return refine(*shapes)
