"""Random numbers of compiled graphs: eager's, drawn by the engine where that is faster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from tcw.compiler.control.gate import Gate
from tcw.compiler.engine.backend import backend
from tcw.compiler.engine.recording import listening
from tcw.compiler.lowering import random as lowering
from tcw.compiler.protocol.decision import Ruling

DRAWN, CALLED = "loops", "aten"


def decided(
    function: Callable[..., Any],
    *inputs: Any,
    overrides: dict[str, str] | None = None,
    dynamic: bool = False,
    within: float = 0.0,
) -> dict[str, Ruling]:
    """Compare two calls with eager's, what eager draws after them too; returns the decisions."""
    seen: dict[str, Ruling] = {}
    gate = Gate(overrides or {}, watch=lambda one: seen.update({one.decision.id: one}))
    torch.manual_seed(11)
    expected = [*(function(*inputs) for _ in range(2)), torch.rand(3), torch.randn(3)]
    torch.manual_seed(11)
    compiled = torch.compile(function, backend=backend, dynamic=dynamic)
    with listening(None, gate):
        found = [*(compiled(*inputs) for _ in range(2)), torch.rand(3), torch.randn(3)]
    torch.testing.assert_close(found, expected, rtol=within, atol=within)
    return {
        id.rpartition("/")[2]: one for id, one in seen.items() if one.decision.kind == "lowering"
    }


def choice(function: Callable[..., Any], *inputs: Any, **keywords: Any) -> set[str]:
    """The choices for what the function draws."""
    made = decided(function, *inputs, **keywords)
    words = (*lowering.NANOSECONDS, "rand", "rrelu", "dropout")
    return {one.choice for name, one in made.items() if any(word in name for word in words)}


FUNCTIONS: dict[str, Callable[[], Any]] = {
    "rand": lambda: torch.rand(60, 70) * 2,
    "rand_like": lambda: torch.rand_like(torch.ones(60, 70)) * 2,
    "randn": lambda: torch.randn(60, 70) + 1,
    "randn, 16 bits": lambda: torch.randn(60, 70, dtype=torch.bfloat16),
    "randn_like": lambda: torch.randn_like(torch.ones(60, 70)) + 1,
    "normal": lambda: torch.normal(1.0, 2.0, (60, 70)),
    "normal_": lambda: torch.empty(60, 70).normal_(1.0, 2.0),
    "uniform_": lambda: torch.empty(60, 70).uniform_(-1, 3),
    "bernoulli_": lambda: torch.empty(60, 70).bernoulli_(0.3),
    "bernoulli": lambda: torch.bernoulli(torch.ones(60, 70), 0.3),
    "exponential_": lambda: torch.empty(60, 70).exponential_(1.5),
    "geometric_": lambda: torch.empty(60, 70, dtype=torch.int16).geometric_(0.2),
    "cauchy_": lambda: torch.empty(60, 70).cauchy_(),
    "log_normal_": lambda: torch.empty(61, 71).log_normal_(),
    "transposed": lambda: torch.empty(60, 70).t().exponential_(),
    "normal_, transposed": lambda: torch.empty(61, 71).t().normal_(0.5, 2.0),
    "normal_, transposed, 16 bits": lambda: torch.empty(61, 71).bfloat16().t().normal_(),
    "randn_like, channels-last": lambda: torch.randn_like(
        torch.ones(2, 3, 31, 33, dtype=torch.float16).to(memory_format=torch.channels_last)
    ),
    "randint": lambda: torch.randint(3, 90, (60, 70)),
    "randint of bytes": lambda: torch.randint(0, 256, (60, 70), dtype=torch.uint8),
    "randint_like": lambda: torch.randint_like(torch.ones(60, 70), 9),
    "dropout": lambda: F.dropout(torch.ones(60, 70), 0.2, True),
    "alpha_dropout": lambda: F.alpha_dropout(torch.ones(60, 70), 0.2, True),
    "rrelu": lambda: F.rrelu(torch.ones(60, 70).cumsum(0) - 30, training=True),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_are_eagers_and_drawn_by_us(name: str) -> None:
    assert choice(FUNCTIONS[name]) == {DRAWN}


def spread(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Numbers from 0 to 1."""
    return (torch.arange(4200).reshape(60, 70) % 101 / 128).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_parameters_of_each_number(dtype: torch.dtype) -> None:
    """Probabilities, means and deviations in tensors, also broadcast and transposed."""

    def function(p: torch.Tensor, mean: torch.Tensor) -> Any:
        return (
            torch.bernoulli(p),
            torch.bernoulli(p.t()),
            torch.empty(60, 70, dtype=dtype).bernoulli_(p[:, :1]),
            torch.normal(mean, p),
            torch.normal(mean[0], p),
            torch.normal(0.3, p),
            torch.normal(mean, 1.5),
            torch.normal(mean.t(), p.t()),
            torch.normal(0.3, p.t()),
            torch.normal(mean.t(), 1.5),
        )

    within = 1e-14 if dtype == torch.float64 else 0.0
    assert choice(function, spread(dtype), spread(dtype) - 0.5, within=within) == {DRAWN}


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (torch.bernoulli, "p_in >= 0 && p_in <= 1"),
        (lambda p: torch.normal(0.5, 1 - p), "all elements of std >= 0.0"),
    ],
)
def test_parameters_out_of_range_raise_what_eager_raises(function: Any, words: str) -> None:
    compiled = torch.compile(function, backend=backend)
    compiled(spread())
    for wrong in (1.5, float("nan")):
        p = spread()
        p[3, 4] = wrong
        for called in (function, compiled):
            with pytest.raises(RuntimeError, match=words):
                called(p)


def test_log_normal_numbers_in_float64() -> None:
    function = lambda: torch.empty(4200, dtype=torch.float64).log_normal_()  # noqa: E731
    assert choice(function, within=1e-14) == {DRAWN}


def test_rrelu_in_16_bits() -> None:
    function = lambda x: F.rrelu(x, 0.1, 0.3, training=True)  # noqa: E731
    assert choice(function, spread(torch.bfloat16) - 0.5) == {DRAWN}


LEFT: dict[str, Callable[[], Any]] = {
    "few": lambda: torch.rand(20),
    "few normal ones": lambda: (torch.randn(15), torch.randn(3, 5)),
    "64 bits for each": lambda: torch.randint(0, 1 << 40, (4200,)),
    "beyond a mantissa": lambda: torch.randint(0, 5000, (4200,), dtype=torch.float16),
    "permutations": lambda: torch.randperm(4200),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_aten_draws_otherwise_or_faster_is_left_to_it(name: str) -> None:
    assert choice(LEFT[name]) <= {CALLED}


def test_a_generator_of_ones_own_runs_on_aten() -> None:
    own = torch.Generator().manual_seed(4)

    def function(x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand(4200, generator=own)

    x = torch.ones(4200)
    expected = function(x)
    own.manual_seed(4)
    assert torch.equal(torch.compile(function, backend=backend)(x), expected)


def test_the_choice_has_figures_and_can_be_overridden() -> None:
    function = lambda: torch.rand(5000) * 2  # noqa: E731
    (made,) = (one for name, one in decided(function).items() if name.startswith("rand"))
    numbers = made.decision.numbers
    assert made.choice == DRAWN
    assert numbers["loops_ns"] < numbers["aten_ns"]
    torch._dynamo.reset()
    kept = decided(function, overrides={made.decision.id: CALLED})
    assert [one.choice for name, one in kept.items() if name.startswith("rand")] == [CALLED]


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)
        self.drop = nn.Dropout(0.25)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.drop(self.down(self.drop(F.gelu(self.up(x)))))


class Checkpointed(Block):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(super().forward, x, use_reentrant=False)


@pytest.mark.parametrize("kind", [Block, Checkpointed])
def test_training_with_dropout_follows_eager(kind: type[nn.Module]) -> None:
    """The same masks forward and, where a checkpoint draws them again, backward; a seed between
    two steps; numbers that eager draws between them."""
    torch.manual_seed(1)
    model, x = kind(), torch.randn(48, 32)

    def steps(called: Callable[..., torch.Tensor]) -> list[torch.Tensor]:
        rows = []
        for seed in (2, 3, None):
            if seed:
                torch.manual_seed(seed)
            model.zero_grad()
            loss = called(x).square().mean()
            loss.backward()
            rows += [loss.detach(), torch.rand(2)]
            rows += [p.grad.clone() for p in model.parameters() if p.grad is not None]
        return rows

    expected = steps(model)
    found = steps(torch.compile(model, backend=backend))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    for one, other in zip(found, expected, strict=True):
        if one.shape == (2,):
            assert torch.equal(one, other)


def test_sizes_that_are_not_known() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, 0.3, True) + torch.randn(x.shape[0]).sum() * 0

    compiled = torch.compile(function, backend=backend, dynamic=True)
    for rows in (64, 5, 100):
        x = torch.randn(rows, 40)
        torch.manual_seed(rows)
        expected, after = function(x), torch.rand(2)
        torch.manual_seed(rows)
        assert torch.equal(compiled(x), expected)
        assert torch.equal(torch.rand(2), after)


def test_a_mask_is_part_of_the_loop_that_reads_it() -> None:
    """One draw and one nest: the mask as bytes, the product beside what comes before it."""
    from torch.fx.experimental.proxy_tensor import make_fx

    from tcw.compiler.fusion.fuse import fuse
    from tcw.compiler.loops.graph import Call
    from tcw.compiler.lowering.driver import lower

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.native_dropout(x * 2, 0.2, True)[0] + 1

    module = make_fx(function, tracing_mode="fake")(torch.randn(100, 100))
    steps = fuse(lower(module, "0/0/inference")).program.steps
    assert [type(step).__name__ for step in steps] == ["Call", "Nest"]
    assert isinstance(steps[0], Call)
    assert (steps[0].target, steps[0].effect) == ("tcw.bernoulli.default", True)
