"""Layouts: the only index object. A view is a function from a flat index to a flat index.

A layout splits a flat index into digits, most significant first, and maps it to
`offset + sum(digit * stride)`. Reshapes are the identity; permute, expand (stride 0), slice,
select, flip and split are one layout each; a chain of views is a composition. If a digit would be
split unevenly, or a sum of digits would carry, composition returns None and the chain remains a
chain, evaluated with division and remainder (`View`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tcw.compiler.loops.sizes import Size, add, at_least, divide, multiply, product, subtract

Shape = tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """flat index -> offset + sum(digit * stride). `shape` holds the size of each digit."""

    shape: Shape
    strides: tuple[Size, ...]
    offset: Size = 0

    def __str__(self) -> str:
        sizes, strides = (",".join(map(str, items)) for items in (self.shape, self.strides))
        offset = f"+{self.offset}" if self.offset != 0 else ""
        return f"({sizes}):({strides}){offset}"

    @property
    def size(self) -> Size:
        """The number of flat indices in its domain."""
        return product(self.shape)

    def at(self, index: int) -> int:
        """The image of one flat index. All sizes must be numbers."""
        assert isinstance(self.offset, int)
        image = self.offset
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            assert isinstance(size, int)
            assert isinstance(stride, int)
            image += index % size * stride
            index //= size
        return image

    def is_identity(self) -> bool:
        normal = normalize(self)
        return normal.offset == 0 and normal.strides in ((), (1,))


View = tuple[Layout, ...]
"""Layouts, applied last to first: index -> view[0](view[1](...)). Empty means the identity."""


@lru_cache(maxsize=1 << 14)
def row_major(shape: Shape) -> Layout:
    """The identity on a flat space of this shape, with one digit per dimension."""
    strides: list[Size] = []
    width: Size = 1
    for size in reversed(shape):
        strides.append(width)
        width = multiply(width, size)
    return Layout(shape, tuple(reversed(strides)))


@lru_cache(maxsize=1 << 14)
def normalize(layout: Layout) -> Layout:
    """The same function with the fewest digits: size-1 digits dropped, contiguous digits merged."""
    shape: list[Size] = []
    strides: list[Size] = []
    for size, stride in zip(layout.shape, layout.strides, strict=True):
        if size == 1:
            continue
        runs_on = shape and (
            strides[-1] == multiply(size, stride) if stride != 0 else strides[-1] == 0
        )
        if runs_on:
            shape[-1], strides[-1] = multiply(shape[-1], size), stride
        else:
            shape.append(size)
            strides.append(stride)
    return Layout(tuple(shape), tuple(strides), layout.offset)


@lru_cache(maxsize=1 << 14)
def compose(outer: Layout, inner: Layout) -> Layout | None:
    """index -> outer(inner(index)) as one layout, or None if that requires division."""
    if inner.is_identity() and inner.size == outer.size:
        return normalize(outer)
    if outer.is_identity():
        return normalize(inner)
    outer, inner = normalize(outer), normalize(inner)
    if not outer.shape:  # a one-element space
        return normalize(Layout(inner.shape, (0,) * len(inner.shape), outer.offset))
    if any(_is_negative(stride) for stride in inner.strides):
        return _compose_flipped(outer, inner)
    base = _place_offset(outer, inner.offset)
    if base is None:
        return None
    offset, top = base
    shape: list[Size] = []
    strides: list[Size] = []
    for size, stride in zip(inner.shape, inner.strides, strict=True):
        pieces = [(size, 0)] if stride == 0 else _place_digit(outer, size, stride, top)
        if pieces is None:
            return None
        for piece, step in pieces:
            shape.append(piece)
            strides.append(step)
    for size, reach in zip(outer.shape[1:], top[1:], strict=True):
        if reach is not None and not _below(reach, size):
            return None  # a carry: the sum of the digits overflows its digit
    return normalize(Layout(tuple(shape), tuple(strides), offset))


def _is_negative(stride: Size) -> bool:
    return at_least(0, stride) and stride != 0


def _below(reach: Size, size: Size) -> bool:
    return at_least(subtract(size, 1), reach)


def _place_offset(outer: Layout, start: Size) -> tuple[Size, list[Size]] | None:
    """Where a constant start lands: its offset, and how much of each digit it already uses."""
    digits = list(zip(outer.shape, outer.strides, strict=True))
    top: list[Size] = [0] * len(digits)
    offset = outer.offset
    for i in range(len(digits) - 1, -1, -1):
        if start == 0:
            break
        size, stride = digits[i]
        if i == 0:
            digit, start = start, 0
        elif isinstance(start, int) and isinstance(size, int):
            digit, start = start % size, start // size
        else:
            whole = divide(start, size)
            if whole is not None:
                start = whole
                continue
            if not _below(start, size):
                return None
            digit, start = start, 0
        top[i] = digit
        offset = add(offset, multiply(digit, stride))
    return offset, top


def _place_digit(
    outer: Layout, size: Size, stride: Size, top: list[Size]
) -> list[tuple[Size, Size]] | None:
    """The pieces, most significant first, that one digit of the inner layout becomes."""
    pieces: list[tuple[Size, Size]] = []
    for i in range(len(outer.shape) - 1, -1, -1):
        if size == 1:
            break
        width, step = outer.shape[i], outer.strides[i]
        count: Size = size
        left: Size = 1
        if i > 0:
            whole = divide(stride, width)
            if whole is not None:
                stride = whole
                continue
            steps = divide(width, stride)
            reach = multiply(subtract(size, 1), stride)
            if _below(reach, width):
                count, left = size, 1
            elif steps is None:
                return None
            else:
                rest = divide(size, steps)
                if rest is None:
                    return None
                count, left = steps, rest
        pieces.append((count, multiply(step, stride)))
        top[i] = add(top[i], multiply(subtract(count, 1), stride))
        size, stride = left, 1
    return list(reversed(pieces)) if size == 1 else None


def _compose_flipped(outer: Layout, inner: Layout) -> Layout | None:
    """Compose with all strides made positive, digit by digit, then restore their signs."""
    forward_offset = inner.offset
    for size, stride in zip(inner.shape, inner.strides, strict=True):
        if _is_negative(stride):
            forward_offset = add(forward_offset, multiply(subtract(size, 1), stride))
    strides = tuple(multiply(s, -1) if _is_negative(s) else s for s in inner.strides)
    whole = compose(outer, Layout(inner.shape, strides, forward_offset))
    if whole is None:
        return None
    shape: list[Size] = []
    steps: list[Size] = []
    offset = whole.offset
    for size, stride in zip(inner.shape, inner.strides, strict=True):
        negative = _is_negative(stride)
        forward = multiply(stride, -1) if negative else stride
        top: list[Size] = [0] * len(outer.shape)
        pieces = [(size, 0)] if stride == 0 else _place_digit(outer, size, forward, top)
        if pieces is None:
            return None
        for piece, step in pieces:
            shape.append(piece)
            steps.append(multiply(step, -1) if negative else step)
            if negative:
                offset = add(offset, multiply(subtract(piece, 1), step))
    return normalize(Layout(tuple(shape), tuple(steps), offset))


def compose_views(outer: View, inner: View) -> View:
    """index -> outer(inner(index)), merging adjacent layouts that compose."""
    chain = list(outer)
    for layout in inner:
        merged = compose(chain[-1], layout) if chain else normalize(layout)
        if merged is None:
            chain.append(normalize(layout))
        elif chain:
            chain[-1] = merged
        else:
            chain.append(merged)
    if len(chain) == 1 and chain[0].is_identity():
        return ()
    return tuple(chain)


def permute(shape: Shape, order: Sequence[int]) -> Layout:
    """Flat index of the permuted shape -> flat index of `shape`."""
    strides = row_major(shape).strides
    return Layout(tuple(shape[d] for d in order), tuple(strides[d] for d in order))


def expand(shape: Shape, wanted: Shape) -> Layout:
    """Broadcast `shape`, right-aligned, to `wanted`."""
    lead = len(wanted) - len(shape)
    strides = tuple(
        0 if size == 1 and target != 1 else stride
        for size, target, stride in zip(shape, wanted[lead:], row_major(shape).strides, strict=True)
    )
    return Layout(wanted, (0,) * lead + strides)


def slice_dimension(shape: Shape, dim: int, start: Size, count: Size, step: Size = 1) -> Layout:
    """`count` elements of one dimension, beginning at `start`, `step` apart."""
    whole = row_major(shape)
    sizes, strides = list(whole.shape), list(whole.strides)
    offset = multiply(start, strides[dim])
    sizes[dim], strides[dim] = count, multiply(strides[dim], step)
    return Layout(tuple(sizes), tuple(strides), offset)


def flip(shape: Shape, dims: Sequence[int]) -> Layout:
    whole = row_major(shape)
    strides = tuple(multiply(s, -1) if d in dims else s for d, s in enumerate(whole.strides))
    offset: Size = 0
    for d in dims:
        offset = add(offset, multiply(subtract(shape[d], 1), whole.strides[d]))
    return Layout(whole.shape, strides, offset)


def same_strides(shape: Sequence[Size], some: Sequence[Size], others: Sequence[Size]) -> bool:
    """Whether the strides agree in every dimension of more than one element."""
    return all(a == b for size, a, b in zip(shape, some, others, strict=True) if size != 1)


def span(shape: Sequence[Size], strides: Sequence[Size]) -> Size:
    """The number of elements from the first to the last of a strided tensor."""
    total: Size = 1
    for size, stride in zip(shape, strides, strict=True):
        total = add(total, multiply(subtract(size, 1), stride))
    return total


def dense_order(shape: Shape, strides: tuple[Size, ...]) -> list[int] | None:
    """The dimensions from the widest stride to the narrowest, without those of size 1, if a strided
    tensor fills its memory without gaps; None if it does not."""
    left = [d for d, size in enumerate(shape) if size != 1]
    order: list[int] = []
    width: Size = 1
    while left:
        dim = next((d for d in reversed(left) if strides[d] == width), None)
        if dim is None:
            return None
        left.remove(dim)
        order.append(dim)
        width = multiply(width, shape[dim])
    return order[::-1]


def cuts(shape: Shape) -> Iterator[Size]:
    """The divisors at which a domain splits into digits, including 1 and the total size."""
    width: Size = 1
    yield width
    for size in reversed(shape):
        width = multiply(width, size)
        yield width


def refine(*shapes: Shape) -> Shape | None:
    """The coarsest digits that refine all these shapes of equal size, or None if there are none.

    (512, 256) and (4, 128, 256) give (4, 128, 256); (2, 3) and (3, 2) have no common refinement.
    """
    points = {cut for shape in shapes for cut in cuts(shape)}
    digits: list[Size] = []
    current: Size = 1
    points.discard(current)
    while points:
        following = next(
            (
                point
                for point in points
                if divide(point, current) is not None
                and all(divide(other, point) is not None for other in points)
            ),
            None,
        )
        if following is None:
            return None
        step = divide(following, current)
        assert step is not None
        digits.append(step)
        current = following
        points.discard(current)
    return tuple(reversed(digits))


def strides_over(layout: Layout, digits: Shape) -> tuple[Size, ...] | None:
    """The layout's stride along each digit of a domain that refines it, or None.

    layout(flat index of the digits) == layout.offset + sum(digit * stride).
    """
    sizes: list[Size] = []
    normal = normalize(layout)
    i, left = len(normal.shape) - 1, normal.shape[-1] if normal.shape else 1
    step: Size = normal.strides[-1] if normal.strides else 0
    for digit in reversed(digits):
        if digit == 1:
            sizes.append(0)
            continue
        while left == 1 and i > 0:
            i -= 1
            left, step = normal.shape[i], normal.strides[i]
        if not normal.shape:
            return None
        rest = divide(left, digit)
        if rest is None:
            return None
        sizes.append(step)
        left, step = rest, multiply(step, digit)
    return tuple(reversed(sizes)) if left == 1 and i <= 0 else None


def view_strides(view: View, digits: Shape) -> tuple[Size, ...] | None:
    """The stride of a view along each digit of a domain; None if one has no stride."""
    if not view:
        return row_major(digits).strides
    return strides_over(view[0], digits) if len(view) == 1 else None
