"""The real compile is the same with and without the shadow: code, guards, counters, torch."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch._dynamo import device_interface
from torch._dynamo.guards import CheckFunctionManager
from torch._dynamo.utils import counters
from torch._inductor import metrics
from torch._inductor.virtualized import V
from triton.runtime.driver import driver

from tcw.compiler.gpu.architectures import ARCHITECTURES
from tcw.compiler.inductor.predicted import predicting
from tcw.compiler.inductor.shadow.device import _registry, pretending
from tests.cpu.inductor.predictions import predicted


def training_with_two_batches() -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(24, 40)
    step = torch.compile(lambda x: torch.softmax(layer(x), -1).mul(x.shape[0]).sum())
    for batch in (2, 3):
        step(torch.randn(batch, 24)).backward()


def sizes_known_only_at_run_time() -> None:
    config = torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)

    def function(x: torch.Tensor) -> torch.Tensor:
        found = x.nonzero().float()
        return found.sum(0) / (found.shape[0] + 1) + found.exp().amax()

    with config:
        torch.compile(function, dynamic=True)(torch.randn(7, 5).relu())


def constants_and_offsets() -> None:
    table = torch.arange(40.0)

    def function(x: torch.Tensor) -> torch.Tensor:
        return (
            x * torch.tensor([1.0, 2.0, 3.0]) + torch.full((3,), 2.0) + torch.arange(3) + table[3:6]
        )

    torch.compile(function)(torch.arange(10.0)[1:4])


def observed(work: Callable[[], None], shadow: bool) -> tuple[dict[str, Any], list[str]]:
    """The results of torch's compile: generated code, guards in order, counters, metrics."""
    code: list[str] = []
    guards: list[list[str]] = []
    stock = CheckFunctionManager.__init__

    def keep_guards(self: Any, *args: Any, **kwargs: Any) -> None:
        stock(self, *args, **kwargs)
        guards.append([str(line) for line in str(self.guard_manager).splitlines()])

    counters.clear()
    metrics.reset()
    with pytest.MonkeyPatch.context() as patched, predicted(("sm_90",) if shadow else ()) as run:
        patched.setattr(CheckFunctionManager, "__init__", keep_guards)
        work()
        code = run.real
    seen = {
        "code": [_without_numbers(each) for each in code],
        "guards": [[_without_addresses(line) for line in each] for each in guards],
        "counters": copy.deepcopy({name: dict(each) for name, each in counters.items() if each}),
        "kernels": metrics.generated_kernel_count,
        "nodes before fusion": metrics.ir_nodes_pre_fusion,
    }
    assert run.warnings == []
    return seen, run.wrappers


def _without_numbers(code: str) -> str:
    """torch numbers all graphs of a process."""
    return re.sub(r"# AOT ID: .*", "", code)


def _without_addresses(line: str) -> str:
    return re.sub(r"\b(0x[0-9a-f]+|\d{9,})\b", "N", line)


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(training_with_two_batches, marks=pytest.mark.long),
        sizes_known_only_at_run_time,
        pytest.param(constants_and_offsets, marks=pytest.mark.long),
    ],
    ids=lambda work: work.__name__,
)
def test_the_real_compile_is_the_same(work: Callable[[], None]) -> None:
    alone, none = observed(work, shadow=False)
    watched, wrappers = observed(work, shadow=True)
    assert none == []
    assert wrappers
    assert all("async_compile.triton" in each for each in wrappers)
    for name, value in alone.items():
        assert watched[name] == value, name


def state() -> dict[str, Any]:
    """Everything in torch and Triton that the pretended device replaces."""
    return {
        "cuda": dict(vars(torch.cuda)),
        "interfaces": dict(device_interface.device_interfaces),
        "driver": driver._active,
        "guard": _registry()[1],
        "config": torch._inductor.config.get_config_copy(),
        "choices": type(V.choices),
        "graph": type(V.graph),
        "inner": torch._inductor.compile_fx._compile_fx_inner,
        "codegen": torch._inductor.graph.GraphLowering.compile_to_module,
        "predicting": predicting.get(),
    }


def test_torch_is_as_before() -> None:
    torch.compile(lambda x: x.cos())(torch.randn(8))
    torch._dynamo.reset()
    before = state()
    with predicted() as run:
        torch.compile(lambda x: x.sin())(torch.randn(8))
    assert len(run.binaries) == 1
    after = state()
    for name, value in before.items():
        assert after[name] == value, name


def test_random_numbers_are_those_of_a_compile_without_it() -> None:
    def draw(shadow: bool) -> torch.Tensor:
        torch.manual_seed(3)
        with predicted(("sm_90",) if shadow else ()):
            torch.compile(lambda x: torch.nn.functional.dropout(x, 0.5))(torch.ones(64))
        return torch.rand(4)

    assert torch.equal(draw(shadow=False), draw(shadow=True))


def test_other_threads_see_no_gpu() -> None:
    with pretending(ARCHITECTURES["sm_90"]):
        assert torch.cuda.is_available()
        assert torch.cuda.get_device_capability() == (9, 0)
        with ThreadPoolExecutor(1) as other:
            assert not other.submit(torch.cuda.is_available).result()
    assert not torch.cuda.is_available()
