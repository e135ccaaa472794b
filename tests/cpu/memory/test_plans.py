"""Plans carried out on real memory answer what the program answers."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import HealthCheck, assume, given, settings

from compiler.loops.graph import Call
from compiler.loops.interpreter import run_program
from compiler.loops.interpreter.memory import State
from compiler.loops.interpreter.programs import run_nest
from compiler.loops.program import Program
from compiler.memory.plan import InArena, New, Plan, TakesOver
from compiler.memory.planner import plan
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


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_random_programs(program: Program) -> None:
    rows = program.graph.hints["s0"]
    assume(rows)  # the programs' calls multiply by a row
    inputs = [node for node in program.graph.nodes if node.name.startswith("input")]
    shapes = [(3 if node.shape[0] == 3 else rows, COLUMNS) for node in inputs]
    given = [torch.randint(-4, 4, shape).float() for shape in shapes]
    expected_arguments = [tensor.clone() for tensor in given]
    expected = run_program(program, [rows, *expected_arguments])
    answers = run_plan(program, plan(program), [rows, *given])
    for answer, wanted in zip(answers, expected, strict=True):
        assert torch.equal(answer.nan_to_num(7), wanted.nan_to_num(7))
    for argument, wanted in zip(given, expected_arguments, strict=True):
        assert torch.equal(argument.nan_to_num(7), wanted.nan_to_num(7))
