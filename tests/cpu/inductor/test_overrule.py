"""Overrides of Inductor's fusion: the effect of vetoes and forces, and what is reported."""

from __future__ import annotations

import pytest
import torch
from torch._inductor.utils import run_and_get_code

from tcw.compiler.inductor.cached_code import kernels_in
from tcw.compiler.protocol.decision import APART, FUSE, Decision
from tcw.compiler.trace.records import (
    FusionGroups,
    Kernel,
    SchedulerNode,
    Warned,
)
from tests.cpu.inductor.models import Softmax
from tests.cpu.inductor.recorded import Recorded, record
from tests.decided import outcomes, pairs_in
from tests.inductor_loops import nest_text

FUSIONS = "inductor/0/0/inference/fuse/"


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def two_branches(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Two loops over equally many elements that touch nothing in common."""
    return x.exp(), y.sin()


def rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Two reductions over different axes: no single loop nest on the CPU can do both."""
    return x.sum(0), x.sum(1)


@pytest.fixture
def x() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(32, 64)


def groups(recorded: Recorded) -> list[tuple[str, ...]]:
    (fusion_groups,) = recorded.all(FusionGroups)
    return [group.nodes for group in fusion_groups.groups]


def kernels(recorded: Recorded) -> list[str]:
    return [recorded.text(kernel.text) for kernel in recorded.all(Kernel) if kernel.text]


def node_of(recorded: Recorded, origin: str) -> str:
    return next(n.name for n in recorded.all(SchedulerNode) if n.origins[-1] == origin)


def test_a_veto_splits_the_nests_of_a_softmax(x: torch.Tensor) -> None:
    whole, _ = record(softmax, x)
    recorded, output = record(softmax, x, until="run", overrides={f"{FUSIONS}amax+exp": APART})
    assert len(groups(recorded)) == len(groups(whole)) + 1
    amax, exp = node_of(recorded, "amax"), node_of(recorded, "exp")
    assert not any({amax, exp} <= set(group) for group in groups(recorded))
    torch.testing.assert_close(output, softmax(x))
    (decided,) = outcomes(recorded)
    assert (decided.default, decided.choice, decided.overridden) == (FUSE, APART, True)
    assert decided.numbers["shared_bytes"] > 0
    pairs = [p for p in pairs_in(recorded) if p.overridden]
    assert pairs
    assert all(not pair.fused and decided.id in (pair.id, pair.by) for pair in pairs)
    assert all(pair.default == FUSE for pair in pairs)
    assert not list(recorded.gate.unknown())
    assert recorded.all(Warned) == []


def test_a_veto_is_told_from_the_backend_of_a_third_node(x: torch.Tensor) -> None:
    """amax and div never touch directly: they are joined through exp and sum."""
    recorded, _ = record(softmax, x, overrides={f"{FUSIONS}amax+div": APART})
    amax, div = node_of(recorded, "amax"), node_of(recorded, "div")
    assert not any({amax, div} <= set(group) for group in groups(recorded))
    assert not recorded.gate.refused()
    assert not list(recorded.gate.unknown())


def test_a_force_fuses_what_inductor_finds_not_worth_it(x: torch.Tensor) -> None:
    y = torch.randn(32, 64)
    whole, _ = record(two_branches, x, y)
    assert len(groups(whole)) == 2
    assert not pairs_in(whole)  # Inductor does not even consider it
    id = f"{FUSIONS}exp+sin"
    recorded, output = record(two_branches, x, y, until="run", overrides={id: FUSE})
    assert len(groups(recorded)) == 1
    torch.testing.assert_close(output, two_branches(x, y))
    (decided,) = outcomes(recorded)
    assert (decided.id, decided.default, decided.choice) == (id, APART, FUSE)
    assert decided.rule == "no-shared-data"
    pair = pairs_in(recorded)[-1]
    assert (pair.id, pair.fused, pair.overridden) == (id, True, True)
    assert (pair.default, pair.rule) == (APART, "no-shared-data")
    assert pair.reason == "no shared data"


def test_an_illegal_force_is_refused_with_the_rule(x: torch.Tensor) -> None:
    whole, _ = record(rows, x)
    recorded, output = record(rows, x, until="run", overrides={f"{FUSIONS}sum_1+sum_2": FUSE})
    assert groups(recorded) == groups(whole)
    torch.testing.assert_close(output, rows(x))
    (refused,) = recorded.gate.refused()
    assert refused.refused.startswith("rule domain: ")
    (decided,) = outcomes(recorded)
    assert (decided.choice, decided.wanted) == (APART, FUSE)


def test_inductors_own_words_refuse_a_force(x: torch.Tensor) -> None:
    recorded, _ = record(softmax, x, overrides={f"{FUSIONS}exp+div": FUSE})
    decided = outcomes(recorded)
    if decided[-1].refused:
        assert "intermediate nodes between" in decided[-1].refused
    else:  # in one nest, through the sum between them
        assert decided[-1].choice == FUSE


def test_what_lowering_inlined_is_no_decision(x: torch.Tensor) -> None:
    recorded, _ = record(softmax, x, overrides={f"{FUSIONS}sub+exp": APART})
    (refused,) = recorded.gate.refused()
    assert refused.refused.startswith("rule inlined: sub and exp are both in op")
    assert not list(recorded.gate.unknown())


def test_a_name_that_is_not_there_is_told_with_the_closest(x: torch.Tensor) -> None:
    recorded, _ = record(softmax, x, overrides={f"{FUSIONS}amax+exq": APART})
    assert list(recorded.gate.unknown()) == [(f"{FUSIONS}amax+exq", f"{FUSIONS}amax+exp")]


def test_a_force_against_a_veto_is_refused(x: torch.Tensor) -> None:
    overrides = {f"{FUSIONS}amax+exp": APART, f"{FUSIONS}amax+sum_1": FUSE}
    recorded, _ = record(softmax, x, overrides=overrides)
    amax, exp = node_of(recorded, "amax"), node_of(recorded, "exp")
    assert not any({amax, exp} <= set(group) for group in groups(recorded))
    assert all(one.wanted == FUSE for one in recorded.gate.refused())


def test_the_same_overrides_give_the_same_kernels(x: torch.Tensor) -> None:
    overrides = {f"{FUSIONS}amax+exp": APART, f"{FUSIONS}exp+div": APART}
    one, two = (kernels(record(softmax, x, overrides=overrides)[0]) for _ in range(2))
    assert one == two != []


def test_without_overrides_the_kernels_are_those_of_torch_alone() -> None:
    torch.manual_seed(0)
    model, x = Softmax().requires_grad_(False), torch.randn(4, 8, 16)
    torch._dynamo.reset()
    _, (source,) = run_and_get_code(torch.compile(model), x)
    alone = [text for _, _, text in kernels_in(source) if text]
    asked: list[Decision] = []

    def ask(decision: Decision) -> str:
        asked.append(decision)
        assert decision.detail is not None
        decision.detail()
        return ""

    recorded, _ = record(model, x)
    driven, _ = record(model, x, ask=ask)
    assert asked
    assert alone == kernels(recorded) == kernels(driven) != []
    assert outcomes(recorded) == []


def test_a_person_is_asked_once_for_what_is_the_same(x: torch.Tensor) -> None:
    asked: list[Decision] = []

    def ask(decision: Decision) -> str:
        asked.append(decision)
        if decision.id == f"{FUSIONS}amax+exp":
            assert decision.detail is not None
            detail = decision.detail()
            assert (detail.first, detail.second) == (("op0",), ("op1",))
            assert detail.origins == ("amax", "sub", "exp")
            assert detail.sketched
            assert nest_text(detail.nest).startswith("for p0 in 32:\n  reduce p1 in 64:\n")
            assert detail.means == "two loop nests, which may still share one C++ function"
            return APART
        return ""

    driven, _ = record(softmax, x, ask=ask)
    keys = [(decision.id, decision.default, decision.rule) for decision in asked]
    assert len(keys) == len(set(keys))
    replayed, _ = record(softmax, x, overrides=dict(driven.gate.overrides))
    assert driven.gate.overrides == {f"{FUSIONS}amax+exp": APART}
    assert kernels(driven) == kernels(replayed)
    assert [d.id for d in outcomes(driven)] == [f"{FUSIONS}amax+exp"]


def test_a_dynamic_graph_is_overruled_too(x: torch.Tensor) -> None:
    recorded, output = record(
        softmax, x, until="run", overrides={f"{FUSIONS}amax+exp": APART}, dynamic=True
    )
    assert len(groups(recorded)) == 2
    torch.testing.assert_close(output, softmax(x))


def test_kernels_follow_the_groups(x: torch.Tensor) -> None:
    recorded, _ = record(softmax, x, overrides={f"{FUSIONS}amax+exp": APART})
    (kernel,) = recorded.all(Kernel)
    assert kernel.loop_nests == 2  # one C++ function, two loop nests
