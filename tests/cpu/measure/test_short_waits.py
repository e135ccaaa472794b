"""A second set of threads, there only for as long as it is asked for."""

from __future__ import annotations

import threading

import pytest
import torch

from compiler.measure.short_waits import short_waits


def sleeping() -> int:
    return sum(thread.name == "tcw-short-waits" for thread in threading.enumerate())


def test_calls_run_as_they_do_otherwise() -> None:
    values = torch.randn(1 << 18)
    expected = torch.sin(values)
    with short_waits():
        assert sleeping() == 1
        torch.testing.assert_close(torch.sin(values), expected)
    assert sleeping() == 0


def test_it_ends_where_the_block_raises() -> None:
    with pytest.raises(ValueError, match="mine"), short_waits():
        raise ValueError("mine")
    assert sleeping() == 0


def test_gradients_are_recorded_as_before() -> None:
    value = torch.ones(4, requires_grad=True)
    with short_waits():
        value.square().sum().backward()
    assert value.grad is not None
    assert value.grad.tolist() == [2.0] * 4
