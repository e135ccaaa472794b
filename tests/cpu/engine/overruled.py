"""Small programs with every decision open to overrides, and the results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import tcw.compiler.engine.compile as stages
import tcw.compiler.engine.targets as targets
from tcw.compiler.control.gate import Gate
from tcw.compiler.engine.backend import backend
from tcw.compiler.engine.recording import listening
from tcw.compiler.protocol.decision import APART, FUSE, split_id

Inputs = tuple[torch.Tensor, ...]


def normalised(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> Any:
    """Rows, row scalars, a product, column sums, and a quotient that has to wait for them."""
    h = F.gelu(F.layer_norm(x, (x.shape[-1],), w[0], b) @ w)
    p = torch.softmax(h, -1)
    return (p / p.sum(0)).square().sum() + h.mean()


def loss(x: torch.Tensor, t: torch.Tensor, w: torch.Tensor) -> Any:
    """An index that picks from rows, a cat that is read in pieces, the same value twice."""
    first, second = x.chunk(2, -1)
    turned = torch.cat((-second, first), -1)
    rotated = x * w.cos() + turned * w.sin()
    return F.cross_entropy(rotated, t) + (x.tanh() * x.tanh()).mean()


def mutated(x: torch.Tensor, i: torch.Tensor, w: torch.Tensor) -> Any:
    """Views, mutation, scans, scatters, an index of the largest, other dtypes."""
    x = x.clone()
    x.add_(1)
    x[2:5] = w[2:5].exp()
    x.index_put_((i,), w[: len(i)], accumulate=True)
    y = x.t().reshape(-1).view(x.shape) + torch.arange(x.shape[1])
    return y.cumsum(1), x.argmax(0), (x > 0).to(torch.bfloat16) * y.flip(0), y.amax(1)


def steps(*values: torch.Tensor) -> Any:
    """Small loops over domains of the same size, one after the other."""
    return [value * 0.9 + value.square().sqrt() * 0.1 for value in values]


def tensors(*shapes: tuple[int, ...]) -> Inputs:
    return tuple(torch.randn(shape) for shape in shapes)


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], Inputs], bool]] = {
    "normalised": (normalised, lambda: tensors((24, 40), (40, 40), (40,)), True),
    "loss": (
        loss,
        lambda: (torch.randn(16, 24), torch.randint(0, 24, (16,)), torch.randn(16, 24)),
        True,
    ),
    "mutated": (
        mutated,
        lambda: (torch.randn(9, 21), torch.randperm(9)[:4], torch.randn(9, 21)),
        False,
    ),
    "steps": (steps, lambda: tensors((33,), (33,), (33,), (17,)), False),
}
"""Name -> function, its inputs, whether its gradients are taken too."""


REFUSALS = (
    "rule ", "keeps two of their nodes", "after the other overrides", "torch's partitioner fails",
)  # fmt: skip
"""The permitted reasons for not following an override: it is illegal, or conflicts with another."""


@dataclass
class Ran:
    """One compile and one run."""

    gate: Gate
    answers: list[torch.Tensor]
    expected: list[torch.Tensor]
    units: list[str] = field(default_factory=list)
    fusions: list[Any] = field(default_factory=list)

    def check(self) -> None:
        """The results equal eager's, and every veto holds."""
        torch.testing.assert_close(self.answers, self.expected, rtol=2e-4, atol=2e-4)
        groups = {fusion.program.graph.name: fusion.groups for fusion in self.fusions}
        refused = {one.decision.id for one in self.gate.refused()}
        for id, choice in self.gate.overrides.items():
            graph, kind, names = split_id(id)
            if kind == FUSE and choice == APART and id not in refused:
                for group in groups.get(graph, ()):
                    assert not set(names) <= set(group.names), id
        for one in self.gate.refused():
            assert any(words in one.refused for words in REFUSALS), one


def run(name: str, gate: Gate) -> Ran:
    """Compile and run a program under a gate, forward and backward."""
    function, make, trains = PROGRAMS[name]
    expected = _answers(function, make, trains)
    torch._dynamo.reset()
    with products() as (units, fusions), listening(None, gate):
        answers = _answers(torch.compile(function, backend=backend), make, trains)
    return Ran(gate, answers, expected, units, fusions)


def _answers(function: Any, make: Callable[[], Inputs], trains: bool) -> list[torch.Tensor]:
    torch.manual_seed(0)
    inputs = make()
    if not trains:
        with torch.no_grad():
            found = function(*inputs)
        return [*(found if isinstance(found, (list, tuple)) else [found]), *inputs]
    for value in inputs:
        value.requires_grad_(value.is_floating_point())
    answer = function(*inputs)
    answer.backward()
    return [answer.detach(), *(v.grad for v in inputs if v.grad is not None)]


@contextmanager
def products() -> Iterator[tuple[list[str], list[Any]]]:
    """The units and the fusions of all graphs compiled inside."""
    units: list[str] = []
    fusions: list[Any] = []
    patched = pytest.MonkeyPatch()
    unit, fuse = targets.cpp_unit, stages.fuse

    def kept_unit(*args: Any) -> Any:
        made = unit(*args)
        units.append(made.code)
        return made

    def kept_fuse(*args: Any) -> Any:
        fusions.append(fuse(*args))
        return fusions[-1]

    patched.setattr(targets, "cpp_unit", kept_unit)
    patched.setattr(stages, "fuse", kept_fuse)
    try:
        yield units, fusions
    finally:
        patched.undo()
