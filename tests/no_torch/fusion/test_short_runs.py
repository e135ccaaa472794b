"""Groups of a few elements side by side become lanes of whole rows of groups."""

from __future__ import annotations

import pytest

from tcw.compiler.fusion.fuse import Fusion, fuse
from tcw.compiler.fusion.weights import CPU, GPU, Machine
from tcw.compiler.loops.layouts import Layout
from tcw.compiler.loops.nest import Nest
from tests.no_torch.fusion.build import Builder, load, op


def axes(fusion: Fusion) -> dict[str, list[tuple[object, bool]]]:
    """The axes of each nest, and whether they are reduced, by the nest's label."""
    steps = (step for step in fusion.program.steps if isinstance(step, Nest))
    return {nest.label: [(axis.size, axis.reduced) for axis in nest.axes] for nest in steps}


def group_norm(pixels: int, groups: int, run: int) -> Builder:
    """Squared distances from the mean of each group of channels, in channels-last memory."""
    b = Builder()
    shape = (2, pixels, groups, run)
    b.input("x", *shape)
    b.reduce("mean", shape, "krkr", load("x"))
    of_group = load("mean", Layout(shape, (groups, 0, 1, 0)))
    b.map("sub", shape, op("sub", load("x"), of_group))
    b.output("sub", *shape)
    return b


def test_a_reduction_of_short_runs_sums_each_element_of_a_run_first() -> None:
    found = axes(fuse(group_norm(1024, 8, 4).graph))
    assert [(2, False), (1024, True), (32, False)] in found.values()
    assert [(2, False), (1024, False), (32, False)] in found.values(), "lanes are not cut by runs"


@pytest.mark.parametrize(
    ("machine", "pixels", "groups", "run"),
    [(GPU, 1024, 8, 4), (CPU, 1024, 8, 16), (CPU, 1024, 2, 4), (CPU, 4, 8, 4)],
    ids=["GPU", "runs as long as a vector", "rows shorter than one", "few rows"],
)
def test_other_runs_stay(machine: Machine, pixels: int, groups: int, run: int) -> None:
    fusion = fuse(group_norm(pixels, groups, run).graph, machine=machine)
    assert {name for group in fusion.groups for name in group.names} == {"mean", "sub"}


def test_a_value_that_the_graph_overwrites_is_not_spread() -> None:
    b = Builder()
    shape = (2, 1024, 8, 4)
    b.input("x", *shape)
    b.input("mean", 2, 8)
    of_group = load("mean", Layout(shape, (8, 0, 1, 0)))
    b.map("sub", shape, op("sub", load("x"), of_group))
    b.store("fill", "mean", (2, 8), load("x", Layout((16,), (1,))))
    b.output("sub", *shape)
    fusion = fuse(b.graph)
    assert "mean_spread" not in {name for group in fusion.groups for name in group.names}
