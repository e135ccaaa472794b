"""Sizes that a guard makes multiples of 16: threads load several elements of such rows at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

import tcw.compiler.engine.compile as engine
from tcw.compiler.codegen.triton.limits import Limits
from tcw.compiler.codegen.triton.triton_unit import unit
from tcw.compiler.engine.backend import backend
from tcw.compiler.fusion.fuse import fuse
from tcw.compiler.fusion.weights import GPU
from tcw.compiler.gpu.architectures import ARCHITECTURES
from tcw.compiler.loops.nest import Program
from tcw.compiler.lowering.driver import lower
from tcw.compiler.runtime.gpu.triton_stages import compiled, load_module

pytest.importorskip("triton")

VECTOR = re.compile(r"ld\.global\S*\.v4\.b32")


def softmax_of_tiles(x: torch.Tensor) -> torch.Tensor:
    assert x.shape[1] % 16 == 0
    return x.softmax(-1)


def softmax(x: torch.Tensor) -> torch.Tensor:
    return x.softmax(-1)


def program_of(model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Program:
    """What a GPU would run of a model whose rows have any length."""
    programs: list[Program] = []

    def keep(module: Any, graph: str, *rest: Any) -> Any:
        programs.append(fuse(lower(module, graph), machine=GPU).program)
        return lower(module, graph, *rest)

    monkeypatch.setattr(engine, "lower", keep)
    torch._dynamo.reset()
    x = torch.randn(6, 64)
    torch._dynamo.mark_dynamic(x, 1)
    with torch.no_grad():
        output = torch.compile(model, backend=backend)(x)
    torch.testing.assert_close(output, x.softmax(-1))
    return programs[0]


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("TCW_CACHE_DIR", str(tmp_path))


def ptx(program: Program) -> tuple[tuple[tuple[int, int], ...], str]:
    """The parameters that are marked, and what becomes of the kernel."""
    graph = program.graph
    limits = Limits(ARCHITECTURES["sm_90"], graph.hints, graph.divisible)
    device = unit(None, program, limits).device
    assert device is not None
    (kernel,) = device.kernels
    made = compiled(load_module(device.text), kernel, "sm_90", texts=True)
    return kernel.divisible, str(made.asm["ptx"])


def test_a_size_that_the_model_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    marked, code = ptx(program_of(softmax_of_tiles, monkeypatch))
    assert marked == ((2, 16),)
    assert VECTOR.search(code)


def test_any_other_size(monkeypatch: pytest.MonkeyPatch) -> None:
    marked, code = ptx(program_of(softmax, monkeypatch))
    assert marked == ()
    assert not VECTOR.search(code)
