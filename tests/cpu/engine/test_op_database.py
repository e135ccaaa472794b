"""torch's op database through the engine: a slice of it in every run, all of it behind `long`."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator

import pytest
import torch

from tests.cpu.engine.op_cases import BAD, DTYPES, Case, Outcome, called, compare, operations
from tests.cpu.engine.op_database import line_of, swept


def cases(
    dtype: str, first: int = 0, step: int = 1, *, gradients: bool = False, all_samples: bool = False
) -> list[Case]:
    chosen = operations()[first::step]
    made = [Case(op, dtype, gradients=gradients, all_samples=all_samples) for op in chosen]
    return [case for case in made if case.exists()]


def bad(found: list[Case]) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [line_of(one) for one in swept(found) if one.verdict in BAD]


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)  # the sweep's children are forked
    monkeypatch.setenv("TCW_STRICT", "1")


class Crashing(Case):
    def run(self) -> Iterator[Outcome]:
        os.kill(os.getpid(), signal.SIGKILL)
        yield from ()


@pytest.mark.parametrize("together", [1, 2])
def test_a_crash_is_the_verdict_of_its_case_alone(together: int) -> None:
    add = next(op for op in operations() if op.name == "add")
    mixed = [Case(add, "float32"), Crashing(add, "float32"), Case(add, "int64")]
    if together > 1:
        mixed[1]._function = lambda sample: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
    assert [one.verdict for one in swept(mixed, together)] == ["equal", "crash", "equal"]


def test_verdicts() -> None:
    def third(x: torch.Tensor) -> torch.Tensor:
        return x / 3

    def verdict(x: torch.Tensor, found: torch.Tensor) -> str:
        return compare(third, [x], False, called(third, [x], False), [found, x])[0]

    x = torch.linspace(1, 2, 8)
    assert verdict(x, x / 3) == "equal"
    assert verdict(x, x / 3 + 1e-4) == "wrong"
    assert verdict(x, (x / 3).double()) == "wrong"
    assert verdict(x.double(), x.double() / 3 + 1e-5) == "wrong"
    low = x.half()
    assert verdict(low, low / 3 * 1.01) == "wrong"
    assert verdict(low, torch.full_like(low, torch.nan)) == "wrong"


def test_float32_is_closer_only_where_eager_is_the_inexact_one() -> None:
    one = torch.eye(8)[0]

    def coarse(x: torch.Tensor) -> torch.Tensor:
        return x / 3 + (1e-3 * one if x.dtype is torch.float32 else 0)

    x = torch.linspace(1, 2, 8)
    wanted = called(coarse, [x], False)
    worse_on_average = x / 3 + 9e-4
    worse_in_one = x / 3 + 2e-3 * one
    for found, verdict in ((x / 3, "closer"), (worse_on_average, "wrong"), (worse_in_one, "wrong")):
        assert compare(coarse, [x], False, wanted, [found, x])[0] == verdict


@pytest.mark.parametrize(
    ("dtype", "first", "step"), [("float32", 0, 40), ("bfloat16", 7, 80), ("int64", 11, 90)]
)
def test_a_slice_of_the_database(dtype: str, first: int, step: int) -> None:
    assert bad(cases(dtype, first, step)) == []


def test_gradients_of_a_slice_of_the_database() -> None:
    assert bad(cases("float32", 13, 100, gradients=True)) == []


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_whole_database(dtype: str) -> None:
    assert bad(cases(dtype, all_samples=dtype == "float32")) == []


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_gradients_of_the_whole_database(dtype: str) -> None:
    assert bad(cases(dtype, gradients=True, all_samples=dtype == "float32")) == []
