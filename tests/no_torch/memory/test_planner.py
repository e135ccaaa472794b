"""The planner, proved by its checker on random programs and looked at on small ones."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.control.decisions import Gate
from compiler.loops.program import Program
from compiler.memory.check import check_plan
from compiler.memory.plan import TakesOver
from compiler.memory.planner import plan
from tests.no_torch.memory.programs import programs


@settings(max_examples=400, deadline=None)
@given(programs(), st.booleans())
def test_random_programs(program: Program, donate: bool) -> None:
    donated = tuple(p for p in program.graph.parameters if p.startswith("input")) if donate else ()
    made = plan(program, donated=donated)
    check_plan(program, made, donated)
    assert made == plan(program, Gate(), donated)
    assert made.peak_bytes is not None
    assert made.without_reuse_bytes is not None
    assert made.peak_bytes <= made.without_reuse_bytes + 64 * len(program.memories) * 8


@settings(max_examples=100, deadline=None)
@given(programs())
def test_every_reuse_can_be_refused(program: Program) -> None:
    gate = Gate()
    plan(program, gate)
    ids = [d.decision.id for d in gate.decided if d.decision.kind == "reuse"]
    refused = Gate(dict.fromkeys(ids, "own"))
    made = plan(program, refused)
    check_plan(program, made)
    assert not any(isinstance(p, TakesOver) for p in made.placements.values())
