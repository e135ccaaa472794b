"""Instruction steps: the accumulated deltas equal Dynamo's states."""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import Any

import pytest
import torch
from torch._dynamo.symbolic_convert import InstructionTranslatorBase

from tcw.compiler.capture.symbolic_values import kind, unwrapped
from tcw.compiler.trace.records import Bytecode, Graph, Guards, Step
from tests.cpu.capture import breaking
from tests.cpu.capture.compiled import Compiled, compiled

pytestmark = pytest.mark.filterwarnings("ignore")

X = torch.ones(2, 2)
LOCALS = ("LOAD_FAST", "STORE_FAST")
State = tuple[str, int, list[str], set[str]]


def module_call(x: Any) -> Any:
    return torch.nn.functional.layer_norm(breaking.helper(x).relu(), (2,)) + sum([1, 2])


@functools.cache
def run(function: Any) -> tuple[Compiled, list[State]]:
    """The recording, and the state of Dynamo's own translator before each step."""
    seen: list[State] = []
    original = InstructionTranslatorBase.step

    def step(self: Any) -> Any:
        if self.instruction_pointer is not None:
            instruction = self.instructions[self.instruction_pointer]
            stack = [kind(unwrapped(item)) for item in self.stack]
            seen.append(
                (instruction.opname, self.instruction_pointer, stack, set(self.symbolic_locals))
            )
        return original(self)

    InstructionTranslatorBase.step = step
    try:
        return compiled(function, (X,), record="steps"), seen
    finally:
        InstructionTranslatorBase.step = original


def generators(x: Any) -> Any:
    def scaled(factor: int) -> Any:
        y = x * factor
        yield y
        yield y + factor

    total = x
    for a, b in zip(scaled(2), scaled(3), strict=True):
        total = total + a * b
    return total


functions = pytest.mark.parametrize(
    "function",
    [breaking.inlines, breaking.branch_assign, breaking.under_no_grad, module_call, generators],
    ids=lambda function: function.__name__,
)


@functions
def test_deltas_make_up_the_states(function: Any) -> None:
    result, seen = run(function)
    assert result.error is None
    assert result.warnings() == []
    steps = result.recording.all(Step)
    assert len(steps) == len(seen)
    stacks: dict[Any, list[str]] = {}
    names: dict[Any, set[str]] = {}
    standing: dict[Any, int] = {}
    for step, (opcode, ip, stack, symbolic_locals) in zip(steps, seen, strict=True):
        assert (step.opcode, step.ip) == (opcode, ip)
        key = (step.compile_id, step.attempt, step.depth)
        if standing.get(key) != step.frame:
            stacks[key], names[key], standing[key] = [], set(), step.frame
        if step.popped:
            del stacks[key][-step.popped :]
        stacks[key] += [value.kind for value in step.pushed]
        names[key] |= set(step.set_locals)
        names[key] -= set(step.deleted_locals)
        assert len(stacks[key]) == len(stack)
        assert names[key] == symbolic_locals


@functions
def test_nodes_of_the_last_attempt_are_those_of_the_graph(function: Any) -> None:
    result, _ = run(function)
    made: dict[tuple[str, int], list[str]] = defaultdict(list)
    for step in result.recording.all(Step):
        nodes = made[step.compile_id, step.attempt]
        nodes += step.nodes
        for old, new in step.renamed.items():
            nodes[nodes.index(old)] = new
    for graph in result.recording.all(Graph):
        attempt = max(number for name, number in made if name == graph.id)
        computed = [node.name for node in graph.nodes if node.op.startswith("call_")]
        # the last instruction's nodes would only show in a following step
        known = [name for name in made[graph.id, attempt] if name in computed]
        assert known == computed[: len(known)]
        assert len(known) >= len(computed) - 2


def test_steps_are_numbered_within_the_attempt() -> None:
    result, _ = run(breaking.inlines)
    numbers: dict[tuple[str, int], list[int]] = defaultdict(list)
    for step in result.recording.all(Step):
        numbers[step.compile_id, step.attempt].append(step.step)
    assert {("0/0", 0), ("0/0", 1), ("1/0", 0)} <= set(numbers)
    assert all(number == list(range(len(number))) for number in numbers.values())


def test_inlined_frames_are_deeper() -> None:
    result, _ = run(breaking.inlines)
    first = [s for s in result.recording.all(Step) if (s.compile_id, s.attempt) == ("0/0", 0)]
    assert {(step.function, step.depth) for step in first} == {("inlines", 0), ("helper", 1)}


def test_bytecode_is_there_once_and_holds_every_step() -> None:
    result, _ = run(breaking.inlines)
    codes: dict[tuple[str, int], list[str]] = {}
    for record in result.recording.all(Bytecode):
        codes.setdefault((record.function, record.location.line), []).append(record.text)
    texts = [result.recording.text(text) for code in codes.values() for text in code]
    assert len(texts) == len(set(texts))
    for step in result.recording.all(Step):
        wanted = f"{step.ip} {step.opcode} {step.argument}".rstrip()
        assert any(wanted in text.splitlines() for text in texts)


def test_every_use_of_a_local_names_it() -> None:
    """From Python 3.13 on, one instruction may load two, which Dynamo splits."""
    result, _ = run(generators)
    uses = [step for step in result.recording.all(Step) if step.opcode.startswith(LOCALS)]
    assert {"a", "b", "total"} <= {use.argument for use in uses}
    assert all(use.argument.isidentifier() for use in uses)


def test_columns() -> None:
    result, _ = run(breaking.inlines)
    line = breaking.inlines.__code__.co_firstlineno + 1
    adds = [s for s in result.recording.all(Step) if s.opcode == "BINARY_OP" and s.depth == 0]
    assert (adds[0].location.line, adds[0].location.column, adds[0].location.end_column) == (
        line,
        8,
        13,
    )


def test_stepping_changes_nothing_that_is_compiled() -> None:
    result, _ = run(module_call)
    plain = compiled(module_call, (X,))
    assert [graph.nodes for graph in plain.recording.all(Graph)] == [
        graph.nodes for graph in result.recording.all(Graph)
    ]
    assert torch.equal(plain.result, result.result)
    assert plain.recording.all(Step) == []
    guards = [m["guard_count"] for m in plain.metrics()]
    assert guards == [m["guard_count"] for m in result.metrics()]


class Liar:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_a_repr_that_raises_is_never_called() -> None:
    liar = Liar()

    def function(x: Any) -> Any:
        kept = liar
        y = x + 1
        print("cut", end="")
        return y, kept

    result = compiled(function, (X,), record="steps")
    assert result.error is None
    assert result.warnings() == []


@functions
def test_new_guards_add_up_to_those_that_are_installed(function: Any) -> None:
    result, _ = run(function)
    installed: dict[Any, list[str]] = defaultdict(list)
    for step in result.recording.all(Step):
        mine = installed[step.compile_id, step.attempt]
        mine += [f"{guard.kind} {guard.name}" for guard in step.new_guards]
        assert len(mine) == step.guards
    for guards in result.recording.all(Guards):
        last = max(attempt for compile_id, attempt in installed if compile_id == guards.compile_id)
        known = {f"{guard.kind} {guard.name}" for guard in guards.guards}
        assert set(installed[guards.compile_id, last]) <= known


def test_a_generator_has_the_same_number_each_time_that_it_goes_on() -> None:
    result, _ = run(generators)
    steps = [step for step in result.recording.all(Step) if step.attempt == 0]
    drawn = [step for step in steps if step.function == "scaled" and step.opcode == "YIELD_VALUE"]
    first, second = (one.frame for one in drawn[:2])
    assert [one.frame for one in drawn] == [first, second, first, second]
    assert 0 < first != second
    assert {step.frame for step in steps if step.depth == 0} == {0}
