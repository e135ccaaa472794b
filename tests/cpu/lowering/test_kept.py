"""Operations kept as ATen calls by an override: the same results, and illegal choices."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tcw.compiler.control.gate import Gate
from tcw.compiler.engine.backend import backend
from tcw.compiler.engine.recording import listening
from tcw.compiler.protocol.decision import Ruling

GRAPH = "tcw/0/0/inference/lowering"


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCW_STRICT", "1")


def function(x: torch.Tensor, i: torch.Tensor, w: torch.Tensor) -> Any:
    """Views, mutation, aliases, several results, other dtypes."""
    y = F.layer_norm(x, (64,)) * 2
    z = y.view(8, 4, 64).transpose(1, 2).reshape(8, -1)
    p = torch.softmax(z, -1) + torch.arange(256)
    x.add_(1)
    c = torch.cat([p, p.sin()], 1)
    e = F.embedding(i, w)
    x.index_put_((i,), e)
    low = (x > 0).to(torch.bfloat16) + 1
    return c, e.var(-1), x.index_add(0, i, e), p.t(), low, x.cumsum(1), x[::2].flip(1), e @ e.t()


def inputs() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    return torch.randn(32, 64), torch.randperm(32)[:8], torch.randn(32, 64)


def check(overrides: dict[str, str]) -> dict[str, Ruling]:
    """The last choice of each decision about a lowering."""
    seen: dict[str, Ruling] = {}
    gate = Gate(overrides, watch=lambda one: seen.update({one.decision.id: one}))
    theirs, ours = inputs(), inputs()
    torch._dynamo.reset()
    with torch.no_grad():
        expected = function(*theirs)
        with listening(None, gate):
            found = torch.compile(function, backend=backend)(*ours)
    torch.testing.assert_close((found, ours), (expected, theirs))
    assert not list(gate.unknown())
    return {id: one for id, one in seen.items() if one.decision.kind == "lowering"}


def test_each_by_itself_some_and_all_of_them() -> None:
    plain = check({})
    assert {one.choice for one in plain.values()} == {"loops"}
    chance = random.Random(0)
    chosen = [[id] for id in chance.sample(sorted(plain), 4)]
    chosen += [chance.sample(sorted(plain), 8), sorted(plain), [f"{GRAPH}/copy_"]]
    for ids in chosen:
        kept = check(dict.fromkeys(ids, "aten"))
        assert {id for id, one in kept.items() if one.choice == "aten"} == set(ids)


def test_a_view_is_nothing_to_call_and_a_product_has_no_loops() -> None:
    views = check({f"{GRAPH}/view": "aten"})
    assert views[f"{GRAPH}/view"].refused.startswith("rule view")
    calls = check({f"{GRAPH}/mm": "loops"})
    assert "no lowering for aten.mm" in calls[f"{GRAPH}/mm"].refused


def test_what_aten_computes_faster_is_left_to_it_unless_overridden() -> None:
    """Along channels ATen's maxima with indices are vectors; along rows they are not."""
    rows = torch.randn(2, 16, 8, 8)
    channels = rows.to(memory_format=torch.channels_last)

    def maxima(x: torch.Tensor) -> Any:
        return F.max_pool2d(x, 3, 2, 1, return_indices=True)

    def choice(x: torch.Tensor, overrides: dict[str, str]) -> Ruling:
        gate = Gate(overrides)
        torch._dynamo.reset()
        with torch.no_grad(), listening(None, gate):
            torch.testing.assert_close(torch.compile(maxima, backend=backend)(x), maxima(x))
        return next(a for a in gate.decided if a.decision.names == ("max_pool2d_with_indices",))

    id = f"{GRAPH}/max_pool2d_with_indices"
    plain = choice(channels, {"tcw/0/0/inference/fuse/no+such": "apart"})
    assert (plain.choice, plain.decision.rule) == ("aten", "ATen is faster")
    assert plain.decision.numbers["aten_ns"] < plain.decision.numbers["loops_ns"]
    assert choice(channels, {id: "loops"}).choice == "loops"
    assert choice(rows, {id: "loops"}).decision.default == "loops"
    assert choice(rows, {id: "aten"}).choice == "aten"
