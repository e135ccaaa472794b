"""Frames left to Python: the user's frames with the reason, without the library's noise."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch

from tcw.compiler.graphs.lines import is_users_own
from tcw.compiler.trace.records import FrameSkipped
from tests.cpu.capture import breaking
from tests.cpu.capture.compiled import compiled

pytestmark = pytest.mark.filterwarnings("ignore")

X = torch.ones(2, 2)


def skipped(function: Any, *calls: Any, **options: Any) -> list[FrameSkipped]:
    return compiled(function, *calls, **options).recording.all(FrameSkipped)


def without_tensors(number: int) -> int:
    return number + 1


def test_a_break_in_a_loop() -> None:
    (record,) = skipped(breaking.prints_in_loop, (X,))
    assert record.function == "prints_in_loop"
    assert record.compile_id == "0/0"
    assert record.reason == "graph break in loop: Failed to trace builtin operator"
    assert record.location.line == breaking.prints_in_loop.__code__.co_firstlineno


def test_a_frame_without_operations() -> None:
    (record,) = skipped(lambda x: 3, (X,))
    assert record.reason.startswith("No ops traced for the FX graph")


def test_a_frame_without_tensors_has_no_compile_id() -> None:
    def function(x: Any) -> Any:
        for _ in range(2):
            x = x + 1
            print(without_tensors(3))
        return x

    _, record = skipped(function, (X,))
    assert record.function == "without_tensors"
    assert record.compile_id == ""
    assert record.reason == "no tensor-related objects found in frame"


def test_a_generator() -> None:
    def generator(x: Any) -> Any:
        yield x + 1

    records = skipped(lambda: list(torch.compile(generator, backend="eager")(X)), (), compile=False)
    assert [(r.function, r.reason) for r in records] == [
        ("generator", "Attempt to trace generator")
    ]


def test_an_error_that_is_suppressed() -> None:
    def backend(module: Any, inputs: Any) -> Any:
        raise ValueError("no such kernel")

    with torch._dynamo.config.patch(suppress_errors=True):
        (record,) = skipped(lambda x: x + 1, (X,), backend=backend)
    assert record.reason == "backend='backend' raised: ValueError: no such kernel"


def test_what_compiles_is_not_skipped() -> None:
    assert skipped(breaking.inlines, (X,)) == []


def test_the_library_is_no_noise() -> None:
    """A module runs through torch's own Python: Dynamo sees it, but the user need not."""
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5))

    def function(x: Any) -> Any:
        y = module(x)
        print("between")
        return torch.save(module(y), os.devnull)

    assert skipped(function, (X,)) == []


def test_whose_file_it_is() -> None:
    assert is_users_own("/home/me/model.py", "")
    assert is_users_own("/home/me/model.py", "/home/me")
    assert not is_users_own("/home/you/model.py", "/home/me")
    assert not is_users_own("/home/meteor/model.py", "/home/me")
    assert not is_users_own("/home/me/env/lib/python3.12/site-packages/lib.py", "/home/me")
    assert not is_users_own(os.__file__, "")
    assert not is_users_own(torch.__file__, os.path.dirname(os.path.dirname(torch.__file__)))
    assert not is_users_own("<string>", "")
