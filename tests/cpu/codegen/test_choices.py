"""Every choice of the code generator that is offered can be carried out, with the same results."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from compiler.codegen.cpp.isa import AVX512
from compiler.codegen.cpp.nests import emit
from compiler.codegen.cpp.unit import buffer_dtypes
from compiler.codegen.cpp.vocabulary import Vocabulary
from compiler.codegen.question import Ask, Chooser, Question
from compiler.loops.nest import Nest
from tests.cpu.codegen.nest_cases import Case, floats, mixed
from tests.cpu.codegen.nests import programs
from tests.cpu.codegen.test_nests import check

SEEDS = int(os.environ.get("TCW_CHOICES", "2"))


def legal(question: Question) -> list[str]:
    return [choice for choice in question.choices if choice not in question.forbidden]


def by_chance(seed: int, taken: Counter[str]) -> Ask:
    chance = random.Random(seed)

    def ask(question: Question) -> str:
        assert question.default in legal(question), question
        choice = chance.choice(legal(question))
        taken[question.kind] += choice != question.default
        return choice

    return ask


def cases(dtype: torch.dtype) -> dict[str, Case]:
    torch.manual_seed(0)
    return {**floats(dtype), **{f"{name}'": case for name, case in mixed().items()}}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_is_chosen_computes_the_same(seed: int) -> None:
    taken: Counter[str] = Counter()
    dtype = (torch.float32, torch.float64, torch.bfloat16)[seed % 3]
    check(cases(dtype), dynamic=seed % 2 == 1, ask=by_chance(seed, taken))
    assert {"lanes", "vector", "block", "units", "threads", "reduction"} <= set(taken)
    assert {"partials", "unroll"} <= set(taken)


def emitted(ask: Ask | None, fn: Callable[..., object], *inputs: torch.Tensor) -> list[str]:
    (program,) = programs(fn, *inputs)
    chooser = None if ask is None else Chooser(ask)
    return [
        emit(step, buffer_dtypes(program), Vocabulary(AVX512), chooser=chooser).body
        for step in program.steps
        if isinstance(step, Nest)
    ]


def overruled(kind: str, choice: str) -> Ask:
    return lambda question: choice if question.kind == kind else question.default


def test_the_defaults_change_nothing() -> None:
    for fn, inputs in floats(torch.float32).values():
        plain = emitted(None, fn, *inputs)
        assert emitted(lambda question: question.default, fn, *inputs) == plain


def test_every_name_is_asked_about_once() -> None:
    seen: Counter[tuple[str, tuple[str, ...]]] = Counter()

    def ask(question: Question) -> str:
        seen[question.kind, question.names] += 1
        return question.default

    emitted(ask, lambda x, w: F.layer_norm(x, (64,), w, w).softmax(-1).sum(0), *norm_inputs())
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

    def ask(question: Question) -> str:
        for rule, reason in question.forbidden.values():
            assert reason
            rules.setdefault(question.kind, set()).add(rule)
        return question.default

    torch.manual_seed(0)
    for fn, inputs in (*floats(torch.float64).values(), *mixed().values()):
        emitted(ask, fn, *inputs)
    assert rules["vector"] == {"registers"}
    assert rules["lanes"] == {"order"}
    assert rules["unroll"] == {"order"}
    assert rules["rider"] == {"rows"}
