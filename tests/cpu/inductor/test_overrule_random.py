"""With any vetoes and forces, forward and backward: the output is eager's, and every veto holds."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest
import torch
from torch.nn import functional

from tcw.compiler.protocol.decision import APART, FUSE, SAVE, split_id
from tcw.compiler.trace.records import (
    Decided,
    FusionGroups,
    Partition,
    Warned,
)
from tests.cpu.inductor.recorded import Recorded, record
from tests.decided import pairs_in

pytestmark = pytest.mark.long


def normalised(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x * w, (x.shape[-1],)).softmax(-1) + x.mean()


def gated(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (functional.gelu(x) * torch.sigmoid(x @ w.t()).sum(-1, keepdim=True)).tanh()


def reduced(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = (x * w).exp()
    return y.sum(0) + y.t().contiguous().cumsum(1).amax(1) + (x - w).square().mean(0)


GRAPHS: tuple[Callable[..., torch.Tensor], ...] = (normalised, gated, reduced)


@dataclass
class Base:
    """A graph as Inductor compiles it, to choose decisions from."""

    function: Callable[..., torch.Tensor]
    inputs: tuple[torch.Tensor, ...]
    pairs: list[str]
    saved: dict[str, str]


@pytest.fixture(scope="module")
def bases() -> Callable[[int], Base]:
    @cache
    def base(number: int) -> Base:
        function = GRAPHS[number]
        torch.manual_seed(0)
        inputs = (torch.randn(16, 16), torch.randn(16, 16))
        recorded, _ = run(function, inputs, {}, until="codegen")
        pairs = sorted({pair.id for pair in pairs_in(recorded) if not same(pair.id)})
        saved = {
            f"inductor/{partition.joint}/save/{value.node}": value.choice
            for partition in recorded.all(Partition)
            for value in partition.values
            if value.choice != "input"
        }
        return Base(function, inputs, pairs, saved)

    return base


def same(id: str) -> bool:
    left, right = split_id(id)[2]
    return left == right


def run(
    function: Callable[..., torch.Tensor],
    inputs: tuple[torch.Tensor, ...],
    overrides: dict[str, str],
    until: str = "run",
) -> tuple[Recorded, list[torch.Tensor]]:
    """The recording, the output and the gradients."""
    given = [one.clone().requires_grad_() for one in inputs]
    recorded, output = record(function, *given, until=until, grad=True, overrides=overrides)  # type: ignore[arg-type]
    return recorded, [output.detach(), *(one.grad for one in given if one.grad is not None)]


def eager(base: Base) -> list[torch.Tensor]:
    given = [one.clone().requires_grad_() for one in base.inputs]
    output = base.function(*given)
    output.sum().backward()
    return [output.detach(), *(one.grad for one in given if one.grad is not None)]


def nests_of(recorded: Recorded) -> dict[str, list[set[str]]]:
    """Graph -> the stable names in each final nest, from the names of pairs of single nodes."""
    return {
        groups.graph.removesuffix("/lowered"): [set(group.nodes) for group in groups.groups]
        for groups in recorded.all(FusionGroups)
    }


def names_of(recorded: Recorded) -> dict[tuple[str, str], str]:
    """(graph, stable name) -> scheduler node, according to pairs of two single nodes."""
    found = {}
    for pair in pairs_in(recorded):
        graph, _, names = split_id(pair.id)
        single = sorted((pair.first, pair.second), key=lambda name: int(name[2:].split("_")[0]))
        if not any("_" in node for node in single):
            found.update({(graph, name): node for name, node in zip(names, single, strict=True)})
    return found


def check(base: Base, seed: int) -> None:
    draw = random.Random(seed)
    chosen = draw.sample(base.pairs, min(len(base.pairs), draw.randint(1, 4)))
    overrides = {id: draw.choice((APART, APART, FUSE)) for id in chosen}
    recorded, results = run(base.function, base.inputs, overrides)
    for got, expected in zip(results, eager(base), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
    assert not recorded.all(Warned), (overrides, recorded.all(Warned))
    assert not list(recorded.gate.unknown()), overrides
    nests, names = nests_of(recorded), names_of(recorded)
    last = {decided.id: decided for decided in recorded.all(Decided)}
    for id, choice in overrides.items():
        graph, _, (left, right) = split_id(id)
        pair = {names.get((graph, left)), names.get((graph, right))}
        together = None not in pair and any(pair <= nest for nest in nests[graph])
        if choice == APART:
            assert not together, (id, overrides)
            assert not last[id].refused
        elif not last[id].refused:
            assert last[id].choice == FUSE


@pytest.mark.parametrize("seed", range(200))
def test_vetoes_and_forces(bases: Callable[[int], Base], seed: int) -> None:
    check(bases(seed % len(GRAPHS)), seed)


def flip(base: Base, seed: int) -> None:
    draw = random.Random(seed)
    chosen = draw.sample(sorted(base.saved), min(len(base.saved), draw.randint(1, 3)))
    overrides = {id: "save" if base.saved[id] == "recomputed" else "recompute" for id in chosen}
    recorded, results = run(base.function, base.inputs, overrides)
    for got, expected in zip(results, eager(base), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
    (partition,) = recorded.all(Partition)
    choices = {value.node: value.choice for value in partition.values}
    last = {decided.id: decided for decided in recorded.all(Decided)}
    for id, choice in overrides.items():
        if id in last and not last[id].refused:
            expected_choice = "saved" if choice == SAVE else "recomputed"
            assert choices.get(split_id(id)[2][0], "recomputed") == expected_choice


@pytest.mark.parametrize("seed", range(30))
def test_flips_of_what_is_saved(bases: Callable[[int], Base], seed: int) -> None:
    flip(bases(seed % len(GRAPHS)), seed)
