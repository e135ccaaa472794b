"""Values of short runs are computed where they are read if that makes the runs longer."""

from __future__ import annotations

import pytest

from tcw.compiler.control.gate import Gate
from tcw.compiler.fusion.fuse import fuse
from tcw.compiler.fusion.weights import CPU, GPU, Machine
from tcw.compiler.loops.layouts import Layout
from tests.no_torch.fusion.build import Builder, choices, load, op

ROWS, GROUPS = 4096, 2


def group_norm(channels: int, run: int, *, kind: str = "mul", kept: str = "") -> Builder:
    """`x * scale + shift`, both of which have a value for each channel of each row:
    `scale = rsqrt[group] * weight[channel]`, `shift = bias[channel] - mean[group] * scale`."""
    b = Builder()
    all_channels = GROUPS * channels
    b.input("x", ROWS, all_channels, run)
    for name in ("rsqrt", "mean"):
        b.input(name, ROWS, GROUPS)
    for name in ("weight", "bias"):
        b.input(name, all_channels)
    of_group = Layout((ROWS * GROUPS, channels), (1, 0))
    of_channel = Layout((ROWS, all_channels), (0, 1))
    shape = (ROWS, GROUPS, channels)
    b.map("scale", shape, op(kind, load("rsqrt", of_group), load("weight", of_channel)))
    moved = op("mul", load("mean", of_group), load("scale"))
    b.map("shift", shape, op("sub", load("bias", of_channel), moved))
    of_run = Layout((ROWS * all_channels, run), (1, 0))
    scaled = op("mul", load("x"), load("scale", of_run))
    b.map("out", (ROWS, all_channels, run), op("add", scaled, load("shift", of_run)))
    b.output("out", ROWS, all_channels, run)
    if kept:
        b.output(kept, *shape)
    return b


def moved(builder: Builder, machine: Machine = CPU) -> list[str]:
    """The values that are computed where they are read because their runs are short."""
    gate = Gate()
    fuse(builder.graph, gate, machine=machine)
    return [names[0] for names, _, rule in choices(gate, "inline") if rule == "short run"]


def test_a_chain_of_values_moves_to_its_reader() -> None:
    gate = Gate()
    builder = group_norm(channels=3, run=3)
    fuse(builder.graph, gate)
    made = [one for one in gate.decided if one.decision.rule == "short run"]
    assert [one.decision.names for one in made] == [("shift",), ("scale",)]
    assert {one.choice for one in made} == {"inline"}
    assert "runs of 3 elements are runs of 9" in made[0].decision.reason


def test_longer_runs_stay() -> None:
    assert moved(group_norm(channels=3, run=4))
    assert not moved(group_norm(channels=3, run=5))


def test_values_of_single_channels_stay() -> None:
    """Their group is the channel: the runs would be as short."""
    assert not moved(group_norm(channels=1, run=3))


def test_values_that_memory_has_in_any_case_stay() -> None:
    assert moved(group_norm(channels=3, run=3, kept="shift")) == []


def test_what_takes_long_to_compute_stays() -> None:
    assert "scale" not in moved(group_norm(channels=3, run=3, kind="pow"))


@pytest.mark.parametrize("run", [2, 3])
def test_a_gpu_has_no_runs(run: int) -> None:
    assert not moved(group_norm(channels=3, run=run), GPU)
