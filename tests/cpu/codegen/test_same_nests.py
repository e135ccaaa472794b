"""Nests that differ only in names are written once, as if each had been written."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tcw.compiler.codegen.cpp import cpp_unit as cpp
from tcw.compiler.codegen.cpp.isa import AVX2
from tcw.compiler.codegen.cpp.vocabulary import Vocabulary
from tcw.compiler.codegen.nests.same import Repeated, form_of
from tcw.compiler.codegen.triton import triton_unit as module
from tcw.compiler.codegen.triton.limits import Limits
from tcw.compiler.codegen.unit import Unit, buffer_dtypes
from tcw.compiler.fusion.weights import GPU
from tcw.compiler.gpu.architectures import ARCHITECTURES
from tcw.compiler.loops.nest import Nest, Program
from tests.cpu.codegen.nests import programs

ROWS, WIDTH, LAYERS = 4096, 1536, 4


def layers(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    for _ in range(LAYERS):
        x = x + F.gelu(F.layer_norm(x @ w, (WIDTH,)))
        x = (x @ w).softmax(0) * x.sum(0)
    return x


def program_of(function: Callable[..., Any], *inputs: torch.Tensor) -> Program:
    (program,) = programs(function, *inputs, machine=GPU)
    return program


@pytest.fixture(scope="module")
def program() -> Program:
    return program_of(layers, torch.empty(ROWS, WIDTH), torch.empty(WIDTH, WIDTH))


def written(program: Program) -> Unit:
    return module.unit(None, program, Limits(ARCHITECTURES["sm_90"], program.graph.hints))


def test_one_of_each_layer_is_written(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    emit, names = module.emit, []

    def counted(nest: Nest, *rest: Any) -> Any:
        names.append(nest.name)
        return emit(nest, *rest)

    monkeypatch.setattr(module, "emit", counted)
    written(program)
    nests = [step for step in program.steps if isinstance(step, Nest)]
    assert len(nests) >= 2 * LAYERS
    assert len(names) <= len(nests) // 2


def test_the_code_is_that_of_each_by_itself(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = written(program)
    monkeypatch.setattr(Repeated, "code", lambda self, form, emitted: emitted())
    each = written(program)
    assert once.device is not None
    assert each.device is not None
    assert [kernel.key for kernel in once.device.kernels] == [
        kernel.key for kernel in each.device.kernels
    ]
    assert once.device.text == each.device.text
    assert without_comments(once.code) == without_comments(each.code)


@pytest.fixture(scope="module")
def cpu_program() -> Program:
    (program,) = programs(layers, torch.empty(64, WIDTH), torch.empty(WIDTH, WIDTH))
    return program


def test_one_function_of_each_layer_is_written(
    cpu_program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    emit, names = cpp.emit, []

    def counted(nest: Nest, *rest: Any) -> Any:
        names.append(nest.name)
        return emit(nest, *rest)

    monkeypatch.setattr(cpp, "emit", counted)
    made = cpp.unit(None, cpu_program, Vocabulary(AVX2))
    nests = [step for step in cpu_program.steps if isinstance(step, Nest)]
    assert len(nests) >= 2 * LAYERS
    assert len(names) == len(made.first_lines) <= len(nests) // 2


def test_the_unit_is_that_of_each_function_by_itself(
    cpu_program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = cpp.unit(None, cpu_program, Vocabulary(AVX2))
    monkeypatch.setattr(Repeated, "code", lambda self, form, emitted: emitted())
    each = cpp.unit(None, cpu_program, Vocabulary(AVX2))
    assert once.code == each.code
    assert once.first_lines == each.first_lines
    for name, (called, function) in each.kernels.items():
        other, found = once.kernels[name]
        assert (other, found.pointers, found.sizes) == (called, function.pointers, function.sizes)


def without_comments(code: str) -> str:
    return re.sub(r"//[^\n]*", "", code)


def forms(*functions: Callable[..., Any], inputs: tuple[torch.Tensor, ...]) -> int:
    keys = set()
    for function in functions:
        program = program_of(function, *inputs)
        nests = [step for step in program.steps if isinstance(step, Nest)]
        dtypes = buffer_dtypes(program)
        keys |= {form_of(nest, dtypes).key for nest in nests}
    return len(keys)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (lambda x, y: torch.where(x > 1, x, 0.0), lambda x, y: torch.where(x > 1, x, -0.0)),
        (lambda x, y: x - y, lambda x, y: y * x),
        (lambda x, y: x * x + y, lambda x, y: x * y + y),
        (lambda x, y: x.sum(0), lambda x, y: x.sum(1)),
        (lambda x, y: x + 1, lambda x, y: x + 2),
        (lambda x, y: x.sin(), lambda x, y: x.double().sin()),
    ],
)
def test_forms_that_differ(one: Callable[..., Any], two: Callable[..., Any]) -> None:
    inputs = torch.randn(32, 32), torch.randn(32, 32)
    assert forms(one, two, inputs=inputs) == forms(one, inputs=inputs) + forms(two, inputs=inputs)


def test_forms_that_do_not() -> None:
    inputs = torch.randn(32, 32), torch.randn(32, 32)
    assert forms(lambda x, y: x.exp() * y, lambda x, y: y.exp() * x, inputs=inputs) == 1


def test_what_code_depends_on_besides() -> None:
    program = program_of(lambda x, y: x + y, torch.randn(8, 8), torch.randn(8, 8))
    (nest,) = (step for step in program.steps if isinstance(step, Nest))
    dtypes = buffer_dtypes(program)
    first, second = nest.reads()
    keys = [form_of(nest, dtypes, some).key for some in ({first}, {second}, set())]
    keys.append(form_of(nest, {**dtypes, first: "bfloat16"}, set()).key)
    assert len(set(keys)) == 4
