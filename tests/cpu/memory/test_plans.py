"""Plans carried out on real memory return what the program returns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, assume, given, settings

from tcw.compiler.codegen.cpp.cpp_unit import unit
from tcw.compiler.codegen.cpp.isa import detect
from tcw.compiler.codegen.cpp.vocabulary import Vocabulary
from tcw.compiler.loops.graph import Call, Input
from tcw.compiler.loops.interpreter import run_program
from tcw.compiler.loops.interpreter.run_programs import run_nest
from tcw.compiler.loops.interpreter.state import State
from tcw.compiler.loops.nest import Program
from tcw.compiler.memory.plan import InArena, New, Plan, TakesOver
from tcw.compiler.memory.planner import plan
from tcw.compiler.runtime.assemble import assemble
from tcw.compiler.runtime.compiled import load
from tcw.compiler.runtime.store import FileStore
from tests.no_torch.memory.programs import COLUMNS, programs


def run_plan(program: Program, made: Plan, arguments: list[Any]) -> list[Any]:
    """Every value where the plan puts it; values that died are forgotten."""
    with torch.no_grad():
        state = State(program.graph, arguments, None)
        for step in made.steps:
            if isinstance(step.run, Call):
                state.call(step.run)
            else:
                arena = torch.full((state.size(step.run.arena_bytes),), 255, dtype=torch.uint8)
                for nest in step.run.nests:
                    for name in nest.writes():
                        if name not in state.memory:
                            _place(state, program, made, name, arena)
                    run_nest(state, nest)
            for name in step.dies:
                del state.memory[name]
        return state.outputs()


def _place(state: State, program: Program, made: Plan, name: str, arena: Any) -> None:
    memory, placement = program.memories[name], made.placements[name]
    if isinstance(placement, New):
        state.allocate(name, memory.dtype, memory.size)
    elif isinstance(placement, InArena):
        start, count = state.size(placement.offset), state.size(memory.size)
        kind = getattr(torch, memory.dtype)
        state.memory[name] = arena[start : start + count * kind.itemsize].view(kind)
    else:
        assert isinstance(placement, TakesOver)
        state.memory[name] = state.memory[placement.value]
        if placement.in_place:  # the interpreter runs a nest statement by statement, not in loops
            state.memory[placement.value] = state.memory[placement.value].clone()


def compiled(program: Program, folder: Path) -> Callable[[list[Any]], list[Any]]:
    """The plan, carried out by generated code."""
    made = plan(program)
    isa = detect()
    code = unit(made, program, Vocabulary(isa))
    return load(assemble(made, program, code, isa), FileStore(folder)).call


def arguments_of(program: Program) -> tuple[list[Any], list[Any]]:
    """Two equal lists of arguments."""
    rows = program.graph.hints["s0"]
    assume(rows)  # the programs' calls multiply by a row
    inputs = [node for node in program.graph.nodes if isinstance(node, Input)]
    shapes = [(3 if node.shape[0] == 3 else rows, COLUMNS) for node in inputs]
    given = [torch.randint(-4, 4, shape).float() for shape in shapes]
    return [rows, *given], [rows, *(tensor.clone() for tensor in given)]


def assert_equal(found: list[Any], wanted: list[Any]) -> None:
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)


@settings(max_examples=40)
@given(programs())
def test_random_programs(program: Program) -> None:
    one, other = arguments_of(program)
    expected = run_program(program, other)
    assert_equal(run_plan(program, plan(program), one), expected)
    assert_equal(one, other)


@settings(max_examples=12, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(program=programs())
def test_random_programs_compiled(program: Program, folder: Path) -> None:
    one, other = arguments_of(program)
    expected = run_program(program, other)
    call, tensors = compiled(program, folder), list(one)
    assert_equal(call(one), expected)
    assert_equal(tensors, other)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("units")
