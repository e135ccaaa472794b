"""No correct kernel is called wrong, even if it rounds, jumps, writes in place or draws random
numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tcw.compiler.runtime.toolchain import NoCompiler, find_compiler
from tests.cpu.measure.precision.verified import verified
from tests.long import mostly_long

pytestmark = pytest.mark.skipif(
    isinstance(find_compiler(), NoCompiler), reason="there is no C++ compiler"
)
ENGINES = pytest.mark.parametrize("engine", ["inductor", "tcw"])


class Small(torch.nn.Module):
    """Convolution, statistics updated in place, pooling, a mask, attention, dropout, an index."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.embedding = torch.nn.Embedding(16, 8)
        self.last = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor, index: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2).flatten(2).transpose(1, 2)
        x = x + self.embedding(index)
        x = F.scaled_dot_product_attention(x, x, x, is_causal=True)
        half, other = x.chunk(2, -1)
        x = F.dropout(torch.cat((-other, half), -1), 0.25, self.training)
        scores = self.last(F.gelu(x)).log_softmax(-1)
        return scores, scores.argmax(-1)


@pytest.mark.parametrize("engine", [pytest.param("inductor", marks=pytest.mark.long), "tcw"])
@pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.bfloat16, marks=pytest.mark.long)], ids=str
)
def test_a_module_in_training(engine: Any, dtype: torch.dtype) -> None:
    model = Small().to(dtype)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 3, 8, 8, generator=generator).to(dtype)
    index = torch.randint(16, (2, 16), generator=generator)
    found = verified(engine, model, (x, index), train=True)
    assert found.wrong == []
    assert sum(one.within is True for one in found.all) > len(found.all) / 2
    assert {one.graph for one in found.all} == {"0/0/forward", "0/0/backward"}


@ENGINES
def test_a_kernel_that_the_call_does_not_run_is_said_not_to_be_compared(engine: Any) -> None:
    """`tcw repro` counts as many kernels as every other report."""
    calls: list[int] = []

    @torch.compiler.disable
    def first() -> bool:
        calls.append(1)
        return len(calls) == 1

    def once(x: torch.Tensor) -> torch.Tensor:
        y = x.exp()
        return y.sin().sum(-1) if first() else y

    found = verified(engine, once, (torch.ones(4, 8),))
    assert len(found.all) == len(found.kernels) == 2
    assert sum(one.within is True for one in found.all) == 1
    assert list(found.left_out.values()) == ["call 1 does not run it"]


def in_place(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.mul_(2.5)
    y[1:3] = x[1:3].sigmoid()
    return (x + y).cumsum(0)


def in_place_through_a_view(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    part = x[1:, ::2]
    part.mul_(2)
    return (x + y).cumsum(0)


def written_twice(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The second slice replaces the content of the first one's result, in its memory."""
    shifted = torch.zeros_like(x)
    shifted[:, 1:] = x[:, :-1]
    shifted[:, 0] = 2
    return shifted.sin() + y


def chosen(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    values, places = x.sort(dim=-1)
    kept = torch.where(x > y.mean(), x, y)
    return values.exp(), places, kept[kept.argmax(0)[0]], torch.round(x * 3), x.topk(3).values


def reduced(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    spread = x - x.mean(-1, keepdim=True)
    return (
        spread / spread.pow(2).mean(-1, keepdim=True).sqrt(),
        (x * y).sum(),
        x.logsumexp(0),
        y.var(0),
        torch.zeros_like(x).index_add(0, torch.tensor([0, 1, 1, 5]), y[:4]),
    )


FUNCTIONS = (in_place, in_place_through_a_view, written_twice, chosen, reduced)


@pytest.mark.parametrize(
    ("engine", "function"),
    mostly_long(
        [(engine, function) for engine in ("inductor", "tcw") for function in FUNCTIONS],
        [("inductor", chosen), *(("tcw", function) for function in FUNCTIONS)],
    ),
)
def test_a_function(engine: Any, function: Callable[..., Any]) -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(64, 48, generator=generator) for _ in range(2))
    found = verified(engine, function, (x, y))
    assert found.wrong == []
    assert any(one.within for one in found.all)


@ENGINES
def test_dynamic_sizes(engine: Any) -> None:
    found = verified(
        engine,
        lambda x: (x.softmax(-1) * x.shape[0]).sum(0),
        (torch.randn(37, 21, generator=torch.Generator().manual_seed(0)),),
        dynamic=True,
    )
    assert found.wrong == []
    assert any(one.within for one in found.all)


@ENGINES
def test_random_numbers_are_not_compared_and_what_is_made_of_them_is(engine: Any) -> None:
    found = verified(
        engine,
        lambda x: (torch.rand_like(x), F.dropout(x, 0.5).exp()),
        (torch.randn(64, 64, generator=torch.Generator().manual_seed(0)),),
    )
    assert found.wrong == []
    reasons = " ".join(one.reason for one in found.all)
    assert "draws random numbers" in reasons
