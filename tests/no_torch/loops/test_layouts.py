"""Layouts against brute force: a composed layout returns the same as index by index."""

from __future__ import annotations

from itertools import pairwise
from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st

from tcw.compiler.loops.layouts import (
    Layout,
    Shape,
    View,
    compose_views,
    expand,
    flip,
    normalize,
    permute,
    refine,
    row_major,
    slice_dimension,
    strides_over,
)
from tcw.compiler.loops.sizes import (
    Size,
    add,
    at_least,
    divide,
    evaluate,
    multiply,
    product,
    subtract,
    symbol,
)

SIZES = st.sampled_from([1, 1, 2, 3, 4, 5, 6, 7, 8, 12])


def at(view: View, index: int) -> int:
    for layout in reversed(view):
        index = layout.at(index)
    return index


def widths(shape: tuple[int, ...]) -> list[int]:
    """How far apart neighbours along each dimension are."""
    return [prod(shape[i + 1 :]) for i in range(len(shape))]


@st.composite
def divisors(draw: st.DrawFn, total: int) -> tuple[int, ...]:
    """A shape with this many elements."""
    sizes: list[int] = []
    while total > 1 and len(sizes) < 5:
        size = draw(st.sampled_from([d for d in range(1, total + 1) if total % d == 0]))
        sizes.append(size)
        total //= size
    return (*sizes, total) if total > 1 or not sizes else tuple(sizes)


@st.composite
def step_from(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Layout, tuple[int, ...]]:
    """One view of a tensor of this shape, and the shape of its result."""
    kind = draw(st.sampled_from(["permute", "reshape", "expand", "slice", "flip"]))
    rank = len(shape)
    if kind == "permute":
        order = draw(st.permutations(range(rank)))
        return permute(shape, order), tuple(shape[d] for d in order)
    if kind == "reshape":
        wanted = draw(divisors(prod(shape)))
        return row_major(wanted), wanted
    if kind == "expand":
        lead = draw(st.lists(SIZES, max_size=1))
        wanted = (*lead, *(draw(SIZES) if size == 1 else size for size in shape))
        return expand(shape, wanted), wanted
    dim = draw(st.integers(0, rank - 1))
    if kind == "flip":
        dims = [d for d in range(rank) if d == dim or draw(st.booleans())]
        return flip(shape, dims), shape
    start = draw(st.integers(0, shape[dim] - 1))
    step = draw(st.integers(1, 3))
    count = draw(st.integers(1, (shape[dim] - start + step - 1) // step))
    return slice_dimension(shape, dim, start, count, step), (
        *shape[:dim],
        count,
        *shape[dim + 1 :],
    )


@st.composite
def chains(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Layout], tuple[int, ...]]:
    """A shape of at most 2000 elements, views of views of it, and the last one's shape."""
    shape = tuple(draw(st.lists(SIZES, min_size=1, max_size=4)))
    while prod(shape) > 600:
        shape = shape[1:]
    views, current = [], shape
    for _ in range(draw(st.integers(1, 5))):
        layout, following = draw(step_from(current))
        if prod(following) > 2000:
            break
        views.append(layout)
        current = following
    return shape, views, current


def test_slices_of_a_flattened_view() -> None:
    """Where a slice goes on in the next row, its layout cannot have one stride."""
    turned, flat = permute((4, 3), (1, 0)), row_major((12,))
    for start in range(12):
        for step in (1, 2, 3, 5):
            for count in range(1, (12 - start + step - 1) // step + 1):
                steps = turned, flat, slice_dimension((12,), 0, start, count, step)
                view: View = ()
                for layout in steps:
                    view = compose_views(view, (layout,))
                for index in range(count):
                    assert at(view, index) == at(steps, index)


@settings(max_examples=300)
@given(chains())
def test_chains_of_views(chain: tuple[tuple[int, ...], list[Layout], tuple[int, ...]]) -> None:
    shape, views, last = chain
    view: View = ()
    for layout in views:
        view = compose_views(view, (layout,))
    count = prod(last)
    assert [at(view, i) for i in range(count)] == [at(tuple(views), i) for i in range(count)]
    assert all(0 <= at(view, i) < prod(shape) for i in range(count))


@settings(max_examples=300)
@given(chains(), st.data())
def test_strides_over(
    chain: tuple[tuple[int, ...], list[Layout], tuple[int, ...]], data: st.DataObject
) -> None:
    _, views, last = chain
    layout = views[-1] if views else row_major(last)
    digits = data.draw(divisors(prod(last)))
    strides = strides_over(layout, digits)
    steps = tuple(layout.at(w) - layout.at(0) if w < prod(last) else 0 for w in widths(digits))
    everywhere = [layout.at(i) for i in range(prod(last))]
    linear = [Layout(digits, steps, layout.offset).at(i) for i in range(prod(last))] == everywhere
    assert (strides is not None) == linear
    if strides is not None:
        spread = Layout(digits, strides, layout.offset)
        assert [spread.at(i) for i in range(prod(last))] == everywhere
    own = strides_over(layout, layout.shape)
    assert own is not None
    spread = Layout(layout.shape, own, layout.offset)
    assert [spread.at(i) for i in range(prod(last))] == [layout.at(i) for i in range(prod(last))]


@settings(max_examples=300)
@given(chains())
def test_normalize_is_the_same_function_and_has_nothing_to_merge(
    chain: tuple[tuple[int, ...], list[Layout], tuple[int, ...]],
) -> None:
    for layout in chain[1]:
        normal = normalize(layout)
        assert [normal.at(i) for i in range(prod(layout.shape))] == [  # type: ignore[arg-type]
            layout.at(i)
            for i in range(prod(layout.shape))  # type: ignore[arg-type]
        ]
        assert 1 not in normal.shape
        assert normalize(normal) == normal


@settings(max_examples=300)
@given(st.data())
def test_refine(data: st.DataObject) -> None:
    total = data.draw(st.sampled_from([1, 6, 8, 12, 24, 36, 120]))
    shapes = [data.draw(divisors(total)) for _ in range(data.draw(st.integers(1, 3)))]
    digits = refine(*shapes)

    def cuts(shape: Shape) -> set[int]:
        return {prod(shape[i:]) for i in range(len(shape) + 1)}  # type: ignore[arg-type]

    wanted = sorted(set().union(*map(cuts, shapes)))
    chain = all(b % a == 0 for a, b in pairwise(wanted))
    assert (digits is not None) == chain
    if digits is not None:
        assert sorted(cuts(digits)) == wanted


S0, S1 = symbol("s0"), symbol("s1")
SYMBOLIC = st.sampled_from([1, 2, 3, 4, 6, S0, S1, multiply(2, S0), add(S0, 1), add(S1, 2)])


@st.composite
def symbolic_step(draw: st.DrawFn, shape: Shape) -> tuple[Layout, Shape]:
    """As `step_from`, with sizes that are valid for all values of the symbols from 1 on."""
    kind = draw(st.sampled_from(["permute", "merge", "split", "expand", "slice", "flip"]))
    rank = len(shape)
    dim = draw(st.integers(0, rank - 1))
    if kind == "permute":
        order = draw(st.permutations(range(rank)))
        return permute(shape, order), tuple(shape[d] for d in order)
    if kind == "merge":
        end = draw(st.integers(dim + 1, rank))
        wanted: Shape = (*shape[:dim], product(shape[dim:end]), *shape[end:])
        return row_major(wanted), wanted
    if kind == "split":
        part = draw(st.sampled_from([2, 3, S0, S1, add(S0, 1)]))
        rest = divide(shape[dim], part)
        wanted = shape if rest is None else (*shape[:dim], rest, part, *shape[dim + 1 :])
        return row_major(wanted), wanted
    if kind == "expand":
        wanted = (draw(SYMBOLIC), *(draw(SYMBOLIC) if size == 1 else size for size in shape))
        return expand(shape, wanted), wanted
    if kind == "flip":
        return flip(shape, (dim,)), shape
    start: Size = draw(st.sampled_from([0, 1, 2, S0]))
    count = subtract(shape[dim], start)
    if not at_least(count, 1):
        start, count = 0, shape[dim]
        if not at_least(count, 1) and not isinstance(count, int):
            count = draw(st.sampled_from([count, 1]))
    return slice_dimension(shape, dim, start, count), (*shape[:dim], count, *shape[dim + 1 :])


def with_numbers(layout: Layout, values: dict[str, int]) -> Layout:
    def numbers(sizes: Shape) -> Shape:
        return tuple(evaluate(size, values) for size in sizes)

    return Layout(numbers(layout.shape), numbers(layout.strides), evaluate(layout.offset, values))


@settings(max_examples=300)
@given(st.data())
def test_symbolic_chains_are_right_for_all_numbers(data: st.DataObject) -> None:
    shape: Shape = tuple(data.draw(st.lists(SYMBOLIC, min_size=1, max_size=3)))
    view: View = ()
    plain: list[Layout] = []
    for _ in range(data.draw(st.integers(1, 4))):
        layout, shape = data.draw(symbolic_step(shape))
        view = compose_views(view, (layout,))
        plain.append(layout)
    for s0, s1 in ((1, 1), (1, 2), (2, 1), (2, 3), (3, 2), (5, 4)):
        values = {"s0": s0, "s1": s1}
        count = evaluate(product(shape), values)
        places = sorted({*range(min(count, 300)), *range(max(0, count - 300), count)})
        mine = tuple(with_numbers(layout, values) for layout in view)
        theirs = tuple(with_numbers(layout, values) for layout in plain)
        assert [at(mine, i) for i in places] == [at(theirs, i) for i in places]


@settings(max_examples=200)
@given(st.data())
def test_views_without_elements_compose(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.sampled_from([0, 1, 2, 3]), min_size=1, max_size=4)))
    view: View = ()
    for _ in range(3):
        order = data.draw(st.permutations(range(len(shape))))
        permuted = tuple(shape[d] for d in order)
        for layout in (permute(shape, order), flip(permuted, (0,)), row_major(permuted)):
            view = compose_views(view, (layout,))
        wanted = tuple(data.draw(st.sampled_from([0, 2])) if n == 1 else n for n in permuted)
        for layout in (expand(permuted, wanted), slice_dimension(wanted, 0, 0, wanted[0])):
            view = compose_views(view, (layout,))
        shape = wanted
        for layout in view:
            strides_over(layout, shape)
            assert layout.is_identity() in (True, False)
    if prod(shape):
        assert all(isinstance(at(view, i), int) for i in range(prod(shape)))
