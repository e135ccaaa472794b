"""The cases of the peak memory comparison, each forward and, if trainable, forward and backward.

They are the rows of `engine_speed.py`, the sample models, and models that we did not write.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.library_models import LIBRARY_MODELS, Inputs, Made, call, trains

SAMPLES = Path(__file__).resolve().parent.parent / "sample_models"
ENGINES = ("inductor", "tcw")
MEASURED = 20
"""Measured calls after two warm-up calls. With several threads, the buffers of MKL's products
overlap differently in each call: in a training step by 4 of 50 MB."""


@dataclass(frozen=True)
class MemoryCase:
    """A model, called with each of its sets of inputs in turn."""

    name: str
    make: Callable[[], Made]
    train: bool


def memory_cases(kernels: bool, models: bool, others: bool, only: str) -> list[MemoryCase]:
    """The cases whose name contains `only`."""
    from benchmarks.kernel_cases import KERNELS
    from benchmarks.models import MODELS

    found: list[MemoryCase] = []
    if kernels:
        for name, kernel in KERNELS.items():
            make = partial(_one_set, lambda c=kernel: (c.function, c.inputs()))
            found.append(MemoryCase(name, make, False))
    if models:
        for name, model in MODELS.items():
            found.append(MemoryCase(name, partial(_one_set, model.make), model.train))
    if others:
        for file in sorted(SAMPLES.glob("[!_]*.py")):
            found += _both(f"sample {file.stem}", partial(_sample, file.stem))
        for name, written in LIBRARY_MODELS.items():
            found += _both(name, written)
    return [case for case in found if only in case.name]


def print_peaks(cases: Iterable[MemoryCase]) -> None:
    """Print a line of JSON per case: its name, and the peak of each engine in bytes."""
    from benchmarks import allocations

    allocations.forget_environment()
    for case in cases:
        try:
            torch.manual_seed(0)
            function, sets = case.make()
        except ImportError as error:
            print(f"{case.name}: {error}", file=sys.stderr)
            continue
        if isinstance(function, nn.Module):
            function.train(case.train)
        if case.train and not trains(function):
            continue
        peaks = {engine: _peak(engine, function, sets, case.train) for engine in ENGINES}
        print(json.dumps([case.name, peaks]), flush=True)


def _peak(engine: str, function: Callable[..., Any], sets: list[Inputs], train: bool) -> int:
    """The minimum over several calls: a call may coincide with a cache being filled, or with
    several threads of a product holding their buffers at once."""
    from benchmarks import allocations
    from benchmarks.backend import backend

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend(engine))
    found: list[int] = []
    for number in range(2 + MEASURED):
        clear_gradients(function)
        if number < 2:
            call(compiled, sets, train)
        else:
            found.append(allocations.peak(partial(call, compiled, sets, train)).bytes)
    return min(found)


def _one_set(make: Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]) -> Made:
    function, inputs = make()
    return function, [(inputs, {})]


def _both(name: str, make: Callable[[], Made]) -> list[MemoryCase]:
    return [MemoryCase(name, make, False), MemoryCase(f"{name}, train", make, True)]


def clear_gradients(function: Callable[..., Any]) -> None:
    if isinstance(function, nn.Module):
        function.zero_grad(set_to_none=True)


def _sample(name: str) -> Made:
    from tcw.workbench.worker.inputs import input_sets

    module = importlib.import_module(f"sample_models.{name}")
    sets = input_sets(module.example_inputs, module.__file__ or name)
    return module.model, [(one.positional, one.keyword) for one in sets]
