"""Kernels that are launched while the one before them ends."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tcw.compiler.codegen.triton.limits import Limits
from tcw.compiler.codegen.triton.triton_unit import unit
from tcw.compiler.codegen.unit import Unit
from tcw.compiler.fusion.weights import GPU
from tcw.compiler.gpu.architectures import ARCHITECTURES
from tcw.compiler.memory.planner import plan
from tcw.compiler.protocol.decision import Decision
from tcw.compiler.runtime.gpu.triton_stages import compiled, load_module
from tests.cpu.codegen.nests import programs

pytest.importorskip("triton")

ARCHS = ["sm_90", "sm_100"]


def made(
    fn: Callable[..., Any],
    *inputs: torch.Tensor,
    arch: str = "sm_90",
    ask: Callable[[Decision], str] | None = None,
) -> Unit:
    (program,) = programs(fn, *inputs, machine=GPU)
    return unit(plan(program), program, Limits(ARCHITECTURES[arch], program.graph.hints), ask=ask)


def launches(found: Unit) -> list[str]:
    return re.findall(r" (launch\w*)\(device_kernels", found.code)


def text(found: Unit) -> str:
    assert found.device is not None
    return found.device.text


def normalised(x: torch.Tensor) -> torch.Tensor:
    """Parts of columns, their totals, and the elements."""
    return (x - x.mean(0)) * x.var(0).rsqrt()


def columns() -> torch.Tensor:
    return torch.empty(8192, 256)


def test_only_the_first_kernel_of_a_function_comes_after_what_was_before() -> None:
    found = made(normalised, columns())
    assert launches(found) == ["launch", "launch_ahead", "launch_ahead"]
    calls = re.findall(r"^    (\w+)\(\)|^    (for) |(tl\.store)", text(found), re.MULTILINE)
    flat = ["".join(call) for call in calls]
    assert flat[:2] == ["for", "next_may_start"], "behind the loop, before the stores"
    assert flat[2:5] == ["tl.store"] * 3
    assert flat[5:7] == ["previous_ended", "next_may_start"]
    assert flat[-2:] == ["previous_ended", "tl.store"], "nothing comes behind the last"


def test_a_kernel_behind_a_library_call_comes_after_it() -> None:
    x = torch.empty(2048, 2048)
    assert launches(made(lambda x: (x.exp() @ x).softmax(-1), x)) == ["launch", "launch"]
    assert launches(made(lambda x: x.softmax(-1).softmax(0), x))[0] == "launch"
    assert set(launches(made(lambda x: x.softmax(-1).softmax(0), x))[1:]) == {"launch_ahead"}


def test_older_gpus_know_no_such_launch() -> None:
    found = made(normalised, columns(), arch="sm_80")
    assert launches(found) == ["launch"] * 3
    assert "previous_ended" not in text(found)
    assert "next_may_start" not in text(found)


def test_it_is_a_decision() -> None:
    asked: list[Decision] = []

    def after(decision: Decision) -> str:
        asked.append(decision)
        return "after" if decision.kind == "launch" else decision.default

    found = made(normalised, columns(), ask=after)
    kinds = [one for one in asked if one.kind == "launch"]
    assert [kind.default for kind in kinds] == ["ahead", "ahead"]
    assert len({kind.id for kind in kinds}) == 2
    assert launches(found) == ["launch"] * 3
    assert "previous_ended" not in text(found)


def test_lines_are_those_of_the_same_values() -> None:
    def lines(arch: str) -> list[tuple[str, tuple[str, ...]]]:
        found = made(normalised, columns(), arch=arch, ask=lambda one: one.default)
        (function,) = {f.body: f for _, f in found.kernels.values()}.values()
        shown = function.shown.split("\n")
        return [(shown[line - 1].strip(), origins) for line, origins in function.lines]

    later, older = (
        [(line, origins) for line, origins in lines(arch) if "store" not in line]
        for arch in ("sm_90", "sm_80")
    )
    assert later == older
    assert len(later) > 5


@pytest.mark.parametrize("arch", ARCHS)
def test_it_touches_no_memory_before_the_others_have_ended(arch: str) -> None:
    found = made(normalised, columns(), arch=arch)
    assert found.device is not None
    module = load_module(found.device.text)
    waiting = 0
    for kernel in found.device.kernels:
        ptx = str(compiled(module, kernel, arch, texts=True).asm["ptx"])
        touched = re.search(r"\b(?:ld|st|atom|red)\.global|cp\.async", ptx)
        assert touched is not None
        wait = ptx.find("griddepcontrol.wait")
        waiting += wait >= 0
        assert wait < touched.start()
    assert waiting == 2
