"""Groups that read the same memory share a loop if they read it at the same time."""

from __future__ import annotations

from math import prod

import pytest

from tcw.compiler.loops.layouts import Layout
from tests.no_torch.fusion.build import Builder, load, op, together


def readers(one: Layout, two: Layout, size: int) -> Builder:
    """Two nodes that read a square tensor through these views."""
    builder = Builder()
    builder.input("x", size, size)
    count = prod(one.shape)
    for name, view in (("one", one), ("two", two)):
        builder.map(name, (count,), op("exp", load("x", view)))
        builder.output(name, count)
    return builder


@pytest.mark.parametrize(("size", "shared"), [(256, True), (1024, False)])
def test_differences_along_two_dimensions(size: int, shared: bool) -> None:
    """One leaves out rows, the other columns: in a large tensor they are never at one place."""
    layout = Layout(((size - 2) * size,), (1,), size)
    two = Layout((size, size - 2), (size, 1), 1)
    assert together(readers(layout, two, size), "one", "two") == shared


@pytest.mark.parametrize("size", [256, 1024])
def test_a_tensor_and_its_rows_from_the_second_on(size: int) -> None:
    one, two = (Layout((size - 1, size), (size, 1), offset) for offset in (0, size))
    assert together(readers(one, two, size), "one", "two")
