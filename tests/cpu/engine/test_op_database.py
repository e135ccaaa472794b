"""torch's op database through the engine: a slice of it in every run, all of it behind `long`."""

from __future__ import annotations

import warnings

import pytest
import torch

from tests.cpu.engine.op_cases import BAD, DTYPES, Case, operations
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
def one_thread() -> None:
    torch.set_num_threads(1)  # the sweep's children are forked


@pytest.mark.parametrize(
    ("dtype", "first", "step"), [("float32", 0, 25), ("bfloat16", 7, 60), ("int64", 11, 60)]
)
def test_a_slice_of_the_database(dtype: str, first: int, step: int) -> None:
    assert bad(cases(dtype, first, step)) == []


def test_gradients_of_a_slice_of_the_database() -> None:
    assert bad(cases("float32", 13, 60, gradients=True)) == []


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
