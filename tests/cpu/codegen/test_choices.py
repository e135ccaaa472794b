"""Every choice of the code generator that is offered can be carried out, with the same results."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from tcw.compiler.codegen.choices import Ask, Chooser
from tcw.compiler.codegen.cpp.isa import AVX512
from tcw.compiler.codegen.cpp.nests import emit
from tcw.compiler.codegen.cpp.vocabulary import Vocabulary
from tcw.compiler.codegen.unit import buffer_dtypes
from tcw.compiler.loops.nest import Nest
from tcw.compiler.protocol.decision import Decision
from tests.cpu.codegen.nest_cases import Case, floats, mixed
from tests.cpu.codegen.nests import programs
from tests.cpu.codegen.test_nests import check
from tests.long import mostly_long

SEEDS = int(os.environ.get("TCW_CHOICES", "2"))


def by_chance(seed: int, taken: Counter[str]) -> Ask:
    chance = random.Random(seed)

    def ask(decision: Decision) -> str:
        assert decision.default in decision.legal(), decision
        choice = chance.choice(decision.legal())
        taken[decision.kind] += choice != decision.default
        return choice

    return ask


def cases(dtype: torch.dtype) -> dict[str, Case]:
    torch.manual_seed(0)
    return {**floats(dtype), **{f"{name}'": case for name, case in mixed().items()}}


HALF = (1, 2)


@pytest.mark.parametrize(
    ("seed", "every"), mostly_long([HALF, *((seed, 1) for seed in range(SEEDS))], [HALF])
)
def test_whatever_is_chosen_computes_the_same(seed: int, every: int) -> None:
    taken: Counter[str] = Counter()
    dtype = (torch.float32, torch.float64, torch.bfloat16)[seed % 3]
    some = dict(list(cases(dtype).items())[::every])
    check(some, dynamic=seed % 2 == 1, ask=by_chance(seed, taken))
    assert {"lanes", "vector", "block", "units", "threads", "reduction"} <= set(taken)
    assert {"partials", "unroll"} <= set(taken)


def emitted(ask: Ask | None, fn: Callable[..., object], *inputs: torch.Tensor) -> list[str]:
    (program,) = programs(fn, *inputs)
    chooser = None if ask is None else Chooser(ask, program.graph.name)
    return [
        emit(step, buffer_dtypes(program), Vocabulary(AVX512), chooser=chooser).body
        for step in program.steps
        if isinstance(step, Nest)
    ]


def overruled(kind: str, choice: str) -> Ask:
    return lambda decision: choice if decision.kind == kind else decision.default


def test_the_defaults_change_nothing() -> None:
    for fn, inputs in floats(torch.float32).values():
        plain = emitted(None, fn, *inputs)
        assert emitted(lambda decision: decision.default, fn, *inputs) == plain


def test_every_name_is_asked_about_once() -> None:
    seen: Counter[tuple[str, tuple[str, ...]]] = Counter()

    def ask(decision: Decision) -> str:
        seen[decision.kind, decision.names] += 1
        return decision.default

    inputs = torch.randn(64, 512), torch.randn(512)
    emitted(ask, lambda x, w: F.layer_norm(x, (512,), w, w).softmax(-1).sum(0), *inputs)
    assert {kind for kind, _ in seen} >= {"lanes", "vector", "units", "threads", "unroll"}
    assert set(seen.values()) == {1}, seen


def norm_inputs() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(512, 64), torch.randn(64)


@pytest.mark.parametrize(
    ("kind", "choice", "gone"),
    [
        ("vector", "8", "f32x16"),
        ("vector", "1", "f32x"),
        ("unroll", "1", "step("),
        ("threads", "one", "parallel("),
    ],
)
def test_a_choice_is_carried_out(kind: str, choice: str, gone: str) -> None:
    x = torch.randn(2048, 512)
    (plain,) = emitted(None, lambda x: torch.softmax(x, -1), x)
    (other,) = emitted(overruled(kind, choice), lambda x: torch.softmax(x, -1), x)
    assert gone in plain
    assert gone not in other


def test_what_is_illegal_is_said_with_its_rule() -> None:
    rules: dict[str, set[str]] = {}

    def ask(decision: Decision) -> str:
        for rule, reason in decision.forbidden.values():
            assert reason
            rules.setdefault(decision.kind, set()).add(rule)
        return decision.default

    torch.manual_seed(0)
    for fn, inputs in (*floats(torch.float64).values(), *mixed().values()):
        emitted(ask, fn, *inputs)
    assert rules["vector"] == {"registers"}
    assert rules["lanes"] == {"order"}
    assert rules["unroll"] == {"order"}
    assert rules["rider"] == {"rows"}


@pytest.mark.parametrize(
    ("fn", "shapes"),
    [
        (lambda x, target: F.cross_entropy(x, target), ((26, 39, 1024), (26, 1024))),
        (
            lambda x, y: (F.cross_entropy(x, y, reduction="none"), x.amax(1), x.logsumexp(1)),
            ((26, 39, 1024), (26, 1024)),
        ),
        (lambda x: torch.min(x, 1), ((26, 39, 1024),)),
        (
            lambda x: torch.where(torch.eye(64, dtype=torch.bool), x.t()[:, None], 0.0),
            ((64, 64),),
        ),
    ],
    ids=[
        "a load for each row",
        "operations for each row",
        "a store for each row",
        "stores that evict each other",
    ],
)
def test_vectors_lie_along_memory(
    fn: Callable[..., object], shapes: tuple[tuple[int, ...], ...]
) -> None:
    inputs = [torch.randn(shapes[0]), *(torch.randint(0, 39, shape) for shape in shapes[1:])]
    lanes: list[str] = []

    def ask(decision: Decision) -> str:
        if decision.kind == "lanes" and " k " in decision.reason:
            lanes.append(decision.default)
        return decision.default

    emitted(ask, fn, *inputs)
    assert set(lanes) == {"k"}
