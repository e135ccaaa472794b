"""Runs from the same state: losses, gradients, random numbers, twins."""

from __future__ import annotations

import random
import threading

import numpy
import pytest
import torch
from torch import nn

from tcw.compiler.control.user_error import UserError
from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.runs import RandomState, Twin, loss_of, original_of, prepare
from tcw.workbench.worker.backends import is_compiled


class Counting(nn.Module):
    """A model with state of every kind: a parameter, a buffer, and plain Python."""

    def __init__(self, lock: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("seen", torch.zeros(()))
        self.calls = 0
        self.lock = threading.Lock() if lock else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += 1
        self.calls += 1
        return x * self.weight * self.seen


def test_a_twin_keeps_a_history_of_its_own() -> None:
    model = Counting()
    twin = Twin(model)
    assert not twin.shared
    model(torch.ones(3))
    twin.remember()
    twin.rewind()
    assert twin.model is not model
    assert twin.model.calls == 0
    assert twin.model.seen == 0


def test_a_model_that_cannot_be_copied_is_put_back() -> None:
    model = Counting(lock=True)
    twin = Twin(model)
    assert "TypeError" in twin.shared
    assert twin.model is model
    for _ in range(2):
        twin.remember()
        first = model(torch.ones(3))
        twin.rewind()
        assert torch.equal(twin.model(torch.ones(3)), first)


def test_training_leaves_gradients_of_this_run_only() -> None:
    model = Counting()
    inputs = InputSet((torch.ones(3, requires_grad=True),))
    for calls in (1.0, 2.0):
        run = prepare(model, inputs, "train")
        result = run.result(run())
        assert [path for path, _ in result.gradients] == ["grad weight", "grad inputs[0][0]"]
        for _, gradient in result.gradients:
            assert torch.allclose(gradient, torch.full((3,), calls / 3))
    assert inputs.positional[0].grad is None


def test_losses() -> None:
    w = torch.ones(2, requires_grad=True)

    class Output:
        loss = (w * 3).sum()
        logits = w * 5

    assert loss_of(Output()) == 6
    assert loss_of({"loss": (w * 3).sum(), "logits": w}) == 6
    assert loss_of((w * 2, {"a": w * 4, "n": torch.ones(2)}, 7)) == 6
    assert loss_of(torch.complex(w * 3, w * 4)) == 5
    with pytest.raises(UserError, match="none"):
        loss_of((torch.ones(2), torch.ones(2, dtype=torch.int64)))


def test_random_state() -> None:
    before = RandomState.now()
    assert not before.drawn_since()
    drawn = torch.rand(3), random.random()
    assert before.drawn_since() == {"torch", "random"}
    before.restore()
    numpy.random.rand(700)
    assert before.drawn_since() == {"NumPy"}
    before.restore()
    assert not before.drawn_since()
    assert torch.equal(torch.rand(3), drawn[0])
    assert random.random() == drawn[1]


def test_what_the_file_compiled_itself() -> None:
    model = Counting()
    compiled = torch.compile(model, backend="eager")
    assert is_compiled(compiled)
    assert original_of(compiled) is model

    def function(x: torch.Tensor) -> torch.Tensor:
        return x

    wrapped = torch.compile(function, backend="eager")
    assert is_compiled(wrapped)
    assert original_of(wrapped) is function
    assert not is_compiled(model)
    model.compile(backend="eager")
    assert is_compiled(model)
    assert Twin(model).model._compiled_call_impl is None
