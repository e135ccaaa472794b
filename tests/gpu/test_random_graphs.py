"""Random programs on a GPU: our engine's results equal eager's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cpu.engine import random_checks as checks
from tests.cpu.engine.random_programs import PROGRAMS, SHAPES, Step
from tests.cpu.engine.test_random_graphs import RANDOM

BOUND = 1e-4


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCW_STRICT", "1")


@RANDOM
@given(program=PROGRAMS, shape=SHAPES, seed=st.integers(0, 9))
def test_forward(program: list[Step], shape: list[int], seed: int) -> None:
    checks.forward(program, shape, seed, device="cuda", bound=BOUND)


@RANDOM
@given(program=PROGRAMS, shape=SHAPES, seed=st.integers(0, 9))
def test_backward(program: list[Step], shape: list[int], seed: int) -> None:
    checks.backward(program, shape, seed, device="cuda")


@RANDOM
@given(program=PROGRAMS, shape=SHAPES, seed=st.integers(0, 9))
def test_dynamic_shapes(program: list[Step], shape: list[int], seed: int) -> None:
    checks.dynamic_shapes(program, shape, seed, device="cuda", bound=BOUND)
