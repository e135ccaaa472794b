"""The record of a memory plan: each buffer's lifetime, and the memory that it reuses."""

from __future__ import annotations

from msgspec.structs import replace

from tcw.compiler.engine.records.compiled import GraphState
from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.loops.graph import Call, Graph, Input, Operand, Result
from tcw.compiler.loops.nest import Nest, Program
from tcw.compiler.loops.sizes import Size, product
from tcw.compiler.memory.plan import InArena, Plan, Segment, TakesOver
from tcw.compiler.trace.records import Buffer, MemoryPlan


def plan_record(compiled: GraphState, program: Program, plan: Plan) -> MemoryPlan:
    """Each value in memory with its lifetime, in steps of the program."""
    steps = steps_of(plan)
    lives = lives_of(program, steps, compiled.user_outputs)
    taken = arena_takers(plan, lives)
    return MemoryPlan(
        graph=compiled.id,
        steps=tuple(compiled.kernels.get(step.name, step.name) for step in steps),
        buffers=tuple(_placed(compiled, plan, life, taken) for life in lives.values()),
        peak_bytes=plan.peak_bytes,
        without_reuse_bytes=plan.without_reuse_bytes,
    )


def steps_of(plan: Plan) -> list[Nest | Call]:
    """All nests and calls, in execution order."""
    return [step for whole in plan.steps for step in _inside(whole.run)]


def _inside(run: Segment | Call) -> tuple[Nest | Call, ...]:
    return (run,) if isinstance(run, Call) else run.nests


def lives_of(program: Program, steps: list[Nest | Call], user_outputs: int) -> dict[str, Buffer]:
    """All values in memory, from the step that writes one to the last that reads it, ordered by
    their starts."""
    lives = {
        node.name: Buffer(node.name, byte_count(product(node.shape), node.dtype), 0, 0, "input")
        for node in program.graph.nodes
        if isinstance(node, Input)
    }
    results = {
        result.name: result
        for step in steps
        if isinstance(step, Call)
        for result in step.results
        if result is not None
    }
    for number, step in enumerate(steps):
        reads, writes = touched(step)
        for name in (*reads, *writes):
            life = lives.get(name)
            if life is not None:
                lives[name] = replace(life, last=number)
            elif name in writes:
                lives[name] = Buffer(name, _size(program, results, name), number, number)
    last = max(0, len(steps) - 1)
    for place, name in enumerate(_outputs(program.graph)):
        life = lives.get(name)
        if life is not None:
            saved = place >= user_outputs
            kind = life.kind if life.kind == "input" else "saved" if saved else "output"
            lives[name] = replace(life, last=last, kind=kind)
    return lives


def touched(step: Nest | Call) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(values that a step reads, values that it writes)."""
    if isinstance(step, Nest):
        return step.reads(), step.writes()
    made = [result.name for result in step.results if result is not None]
    reads = dict.fromkeys(operand.value for operand in step.operands())
    return tuple(reads), (*made, *step.mutates)


def _outputs(graph: Graph) -> list[str]:
    """The value of each output, "" if it is not a tensor."""
    return [output.value if isinstance(output, Operand) else "" for output in graph.outputs]


def _size(program: Program, results: dict[str, Result], name: str) -> int | None:
    memory = program.memories.get(name)
    if memory is not None:
        return byte_count(memory.size, memory.dtype)
    result = results.get(name)
    return byte_count(product(result.shape), result.dtype) if result is not None else None


def byte_count(size: Size, dtype: str) -> int | None:
    """The size in bytes; None if it is symbolic, or if loops do not support the dtype."""
    return size * BYTES[dtype] if isinstance(size, int) and dtype in BYTES else None


def arena_takers(plan: Plan, lives: dict[str, Buffer]) -> dict[str, str]:
    """Values that reuse bytes of an arena -> the previous user of these bytes."""
    found: dict[str, str] = {}
    before: list[tuple[int, int, Buffer]] = []
    for name, life in lives.items():
        place = plan.placements.get(name)
        if not isinstance(place, InArena) or not isinstance(place.offset, int) or not life.bytes:
            continue
        start, end = place.offset, place.offset + life.bytes
        for other_start, other_end, other in reversed(before):
            if other_start < end and start < other_end and other.last <= life.first:
                found[name] = other.name
                break
        before.append((start, end, life))
    return found


def _placed(compiled: GraphState, plan: Plan, life: Buffer, taken: dict[str, str]) -> Buffer:
    place = plan.placements.get(life.name)
    over = place.value if isinstance(place, TakesOver) else taken.get(life.name, "")
    name = compiled.numbers.get(life.name, "")
    operation = compiled.operations.get(name)
    return replace(
        life,
        reuses=over,
        inplace=isinstance(place, TakesOver) and place.in_place,
        label=compiled.label(operation.origins) if operation is not None else "",
    )
