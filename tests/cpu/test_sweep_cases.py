"""The sweep's cases are bounded by what they compute, and its summary tells torch's cost apart."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache

import pytest
import torch

from benchmarks.engine_sweep import behind, described, skipped, slower_kernel, summary
from benchmarks.growing import LARGEST, NoCase
from benchmarks.sweep_cases import SIZES, SweepCase, called, operations
from benchmarks.sweep_workers import in_workers, measure, without_eager


@cache
def database() -> dict[str, object]:
    """torch's, which takes seconds to import."""
    return dict(operations())


def case(name: str, **given: object) -> SweepCase:
    return SweepCase(name, operation=database()[name], **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["cartesian_prod", "outer", "kron", "broadcast_tensors"])
def test_what_a_case_computes_is_bounded(name: str) -> None:
    function, tensors = case(name, size="medium").make()
    results = function(*tensors)
    results = [results] if isinstance(results, torch.Tensor) else results
    assert max(result.numel() for result in results) <= LARGEST * SIZES["medium"]
    assert max(tensor.numel() for tensor in tensors) > 16


@pytest.mark.parametrize("name", ["nn.functional.conv2d", "view", "nn.functional.unfold"])
def test_sizes_that_arguments_fix_do_not_grow(name: str) -> None:
    _, tensors = case(name, size="small").make()
    assert max(tensor.numel() for tensor in tensors) >= SIZES["small"] // 2


@pytest.mark.parametrize("name", ["nn.functional.batch_norm", "zero_"])
def test_gradients_of_what_is_differentiable(name: str) -> None:
    """Running statistics have none, and an operation that writes its input gets a copy."""
    function, tensors = case(name, size="small", backward=True).make()
    gradients = called(function, tensors, backward=True)
    assert any(gradient is not None for gradient in gradients)


def test_a_reason_is_the_part_before_the_colon() -> None:
    with pytest.raises(NoCase, match="no tensor has this layout"):
        case("abs", layout="channels-last").make()
    rows = [
        {"skipped": "illegal when it is large: one"},
        {"skipped": "illegal when it is large: 2"},
    ]
    assert skipped([*rows, {"tcw": 1.0}]) == [("illegal when it is large", 2)]


def test_the_summary_tells_the_cost_of_a_call_apart() -> None:
    call = {"eager": 60e-6, "inductor": 130e-6, "tcw": 120e-6, "torch": 80e-6}
    kernel = {"eager": 60e-6, "inductor": 130e-6, "tcw": 160e-6, "torch": 80e-6}
    assert not slower_kernel(call)
    assert slower_kernel(kernel)
    assert not behind(call, 0.9)
    assert behind(kernel | {"inductor": 200e-6}, 0.9)
    assert not behind(kernel | {"inductor": 200e-6, "eager": 40e-6}, 0.9)
    text = "\n".join(summary({"a": call, "b": kernel}))
    assert "below 0.95 2 (100.0%)" in text
    assert "takes by itself: 1 (50.0%)" in text


def test_a_run_says_what_its_times_depend_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCW_ISA", "avx2")
    monkeypatch.setattr(sys, "argv", ["engine_sweep.py", "--only", "cat add"])
    run = described(2)
    assert run["run"] == "TCW_ISA=avx2 engine_sweep.py --only 'cat add'"
    assert run["threads"] == 2
    assert "cores" in run["machine"]
    assert torch.__version__ in run["versions"]


def test_torch_is_called_in_the_caches_that_eager_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its side calls eager too; its time is what remains without eager's."""
    assert without_eager({"eager": 3.0, "torch": 5.0}) == {"eager": 3.0, "torch": 2.0}
    assert without_eager({"eager": 3.0, "torch": 2.5})["torch"] == 0.0
    calls: list[str] = []

    def timed(sides: dict[str, Callable[[], object]], *_: object) -> dict[str, list[float]]:
        """Which of eager's function and compiled code each side calls."""
        found = {}
        for side, call in sides.items():
            calls.clear()
            call()
            found[side] = [float(calls.count("eager"))] * 2
        return found

    class Case:
        backward = False

        def make(self) -> tuple[Callable[[torch.Tensor], torch.Tensor], list[torch.Tensor]]:
            def function(tensor: torch.Tensor) -> torch.Tensor:
                if not torch.compiler.is_compiling():
                    calls.append("eager")
                return tensor + 1

            return function, [torch.ones(3)]

    monkeypatch.setattr("benchmarks.timing.interleaved", timed)
    row = measure(Case(), 0.0, 1, lambda row: None)
    assert row == {"eager": 1.0, "torch": 0.0, "inductor": 0.0, "tcw": 0.0}


DIES = """
import os
import sys

for key in sys.stdin:
    print('{"side": "torch"}', flush=True)
    print('{"side": "inductor"}', flush=True)
    if key == "bad\\n":
        os._exit(3)
    print('{"tcw": 1.0}', flush=True)
"""


def test_a_crash_has_the_side_that_was_running() -> None:
    rows = {}
    in_workers(
        ["good", "bad", "good again"],
        [sys.executable, "-c", DIES],
        jobs=1,
        threads=1,
        until=float("inf"),
        found=lambda key, row: rows.update({key: row}) or True,
    )
    assert rows == {
        "good": {"tcw": 1.0},
        "bad": {"crashed": 3, "side": "inductor"},
        "good again": {"tcw": 1.0},
    }
