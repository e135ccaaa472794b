"""What a listener is told, and what a person who is asked sees of a pair."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tcw.compiler.control.gate import Gate
from tcw.compiler.fusion.fuse import fuse
from tcw.compiler.fusion.pairs import Pair
from tcw.compiler.fusion.weights import CPU, GPU, Machine
from tcw.compiler.loops.nest import Nest
from tcw.compiler.loops.printer import nest_text
from tcw.compiler.protocol.decision import FUSE, Decision, Detail, Ruling
from tcw.compiler.trace.records import FusionPair
from tests.no_torch.fusion.build import (
    Builder,
    load,
    normalisation,
    op,
    rows,
)


class Told:
    """A listener that keeps what it is told."""

    def __init__(self) -> None:
        self.pairs: list[Pair] = []
        self.rounds: list[int] = []

    def tested(self, pair: Pair) -> FusionPair:
        self.pairs.append(pair)
        return FusionPair(
            graph="g", first=pair.first, second=pair.second, round=pair.round, phase="commit"
        )

    def round(self, number: int, groups: int, fused: list[Pair]) -> None:
        self.rounds.append(groups)
        assert number == len(self.rounds)
        told = [pair.id for pair in self.pairs if pair.fused and pair.round == number]
        assert not self.pairs or [pair.id for pair in fused] == told

    def known_as(self, nodes: Iterable[str]) -> tuple[str, ...]:
        return tuple(name.upper() for name in nodes)


def test_a_listener_is_told_as_decisions_fall() -> None:
    told, seen = Told(), list[tuple[str, str]]()

    def watch(answer: Ruling) -> None:
        if answer.pair is not None:
            pair = answer.pair()
            seen.append((pair.first, pair.second))
            assert answer.decision.names == seen[-1]
            assert told.pairs[-1].fused == (answer.choice == FUSE)

    gate = Gate(watch=watch)
    fusion = fuse(normalisation().graph, gate, told)
    assert seen == [(pair.first, pair.second) for pair in told.pairs]
    assert told.rounds == fusion.rounds
    assert {pair.id: pair for pair in told.pairs} == {pair.id: pair for pair in fusion.pairs}
    assert all(answer.pair is None for answer in gate.decided)


def test_who_is_asked_sees_both_sides_and_the_nest_that_they_would_become() -> None:
    details: dict[str, Detail] = {}

    def ask(decision: Decision) -> str:
        if decision.detail is not None:
            details[decision.id] = decision.detail()
        return ""

    gate = Gate(ask=ask)
    fusion = fuse(normalisation().graph, gate, Told())
    assert all(one.decision.detail is None for one in gate.decided)
    (text,) = (nest_text(step) for step in fusion.program.steps if isinstance(step, Nest))
    last = [pair for pair in fusion.pairs if pair.fused][-1]
    detail = details[last.id]
    assert detail.first == tuple(name.upper() for name in last.first_group)
    assert detail.second == tuple(name.upper() for name in last.second_group)
    assert detail.if_fused.partition("\n")[2] == text.partition("\n")[2]
    assert "two loop nests" in detail.means


@pytest.mark.parametrize(("machine", "own"), [(CPU, "C++ function"), (GPU, "kernels")])
def test_what_keeping_apart_means_on_each_machine(machine: Machine, own: str) -> None:
    texts: list[str] = []

    def ask(decision: Decision) -> str:
        if decision.detail is not None and decision.kind == FUSE:
            texts.append(decision.detail().means)
        return ""

    fuse(normalisation().graph, Gate(ask=ask), machine=machine)
    assert texts
    assert all(f"{own} of its own;" in text for text in texts)


def sketches(builder: Builder) -> dict[str, Detail]:
    """Id -> the detail of each pair that a rule forbids to fuse, as a person would see it first."""
    details: dict[str, Detail] = {}

    def ask(decision: Decision) -> str:
        if FUSE in decision.forbidden and decision.detail is not None:
            details.setdefault(decision.id, decision.detail())
        return ""

    fuse(builder.graph, Gate(ask=ask))
    return details


def test_a_rejected_pair_shows_the_nest_it_would_be_with_the_read_that_forbids_it() -> None:
    detail = sketches(normalisation())["tcw/0/0/forward/fuse/add+mul"]
    assert detail.sketched
    name, *loops = (line.partition("  # ")[0].rstrip() for line in detail.if_fused.splitlines())
    assert name == "if_fused: add + squares + mul"
    assert loops == [
        "    for i < 64:",
        "        for j < 256:",
        "            add = x[256*i + j] + y[256*i + j]",
        "            add[256*i + j] = add",
        "            squares += add * add",
        "        squares[i] = squares",
        "        for j < 256:",
        "            mul = add[256*i + j] * rsqrt[i]",
        "            ✗ cycle: reads rsqrt",
        "            mul[256*i + j] = mul",
    ]


def test_a_sum_read_in_the_loop_that_makes_it_is_marked() -> None:
    b = Builder()
    b.input("x", 64, 256)
    b.map("exp", (64, 256), op("exp", load("x")))
    b.reduce("columns", (64, 256), "rk", load("exp"))
    b.reduce("sum", (64, 256), "kr", load("exp"))
    b.map("mul", (64, 256), op("mul", load("exp"), load("sum", rows(64, 256))))
    b.map("root", (256,), op("sqrt", load("columns")))
    b.output("mul", 64, 256)
    b.output("root", 256)
    lines = sketches(b)["tcw/0/0/forward/fuse/columns+root"].if_fused.splitlines()
    (mark,) = (place for place, line in enumerate(lines) if "✗" in line)
    assert "sqrt(columns[i])" in lines[mark - 1]
    assert lines[mark].strip() == "✗ finish: reads columns"


def test_where_no_read_is_forbidden_the_loop_that_is_not_shared_is_marked() -> None:
    b = Builder()
    b.input("x", 64, 64)
    b.reduce("sum", (64, 64), "kr", load("x"))
    b.output("sum", 64)
    b.map("exp", (2048,), op("exp", load("x")))
    b.output("exp", 2048)
    lines = sketches(b)["tcw/0/0/forward/fuse/sum+exp"].if_fused.splitlines()
    (mark,) = (place for place, line in enumerate(lines) if "✗" in line)
    assert lines[mark - 1].strip() == "for i < 2048:"
    assert lines[mark].strip() == "✗ domain: 4096 and 2048 elements, rows of 64 kept × 64 reduced"


def test_a_read_of_memory_that_the_other_writes_is_marked() -> None:
    b = Builder()
    b.input("x", 8, 8)
    b.input("y", 8, 8)
    b.store("copy", "x", (8, 8), op("sin", load("y")))
    b.map("after", (8, 8), op("exp", op("add", load("x"), load("y"))))
    b.output("after", 8, 8)
    lines = sketches(b)["tcw/0/0/forward/fuse/copy+after"].if_fused.splitlines()
    (mark,) = (place for place, line in enumerate(lines) if "✗" in line)
    assert "x[" in lines[mark - 1]
    assert lines[mark].strip() == "✗ barrier: reads x"
