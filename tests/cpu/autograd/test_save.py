"""Save or recompute, overridden in Inductor's compiles: followed, refused, asked, replayed."""

from __future__ import annotations

from pathlib import Path

import networkx
import pytest
import torch
import torch.nn.functional as F
from torch import fx
from torch._functorch import partitioners

from tcw.compiler.autograd.failed_cut import why_failed
from tcw.compiler.autograd.save import forbidden
from tcw.compiler.protocol.decision import RECOMPUTE, SAVE, Decision
from tcw.compiler.trace.records import Partition, Warned
from tests.cpu.inductor.recorded import Recorded, record
from tests.decided import outcomes

SAVES = "inductor/0/0/joint/save/"


def model(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.relu(x @ w)
    return (y * torch.sigmoid(y)).tanh().exp()


def compiled(overrides: dict[str, str] | None = None, ask=None) -> tuple[Recorded, list]:
    torch.manual_seed(0)
    given = [torch.randn(8, 8, requires_grad=True) for _ in range(2)]
    with torch._inductor.config.patch(force_disable_caches=overrides is None and ask is None):
        recorded, _ = record(model, *given, until="run", grad=True, overrides=overrides, ask=ask)
    assert recorded.all(Warned) == []
    return recorded, [one.grad for one in given]


def choices(recorded: Recorded) -> dict[str, str]:
    (partition,) = recorded.all(Partition)
    return {value.node: value.choice for value in partition.values}


@pytest.fixture(scope="module")
def plain() -> tuple[Recorded, list]:
    return compiled()


def test_without_overrides_nothing_is_decided(plain: tuple[Recorded, list]) -> None:
    assert outcomes(plain[0]) == []


def test_flips_are_followed(plain: tuple[Recorded, list]) -> None:
    before = choices(plain[0])
    assert before["mm"] == "saved"
    assert before["sigmoid"] == "recomputed"
    wanted = {f"{SAVES}sigmoid": SAVE, f"{SAVES}mm": RECOMPUTE}
    recorded, grads = compiled(wanted)
    after = choices(recorded)
    assert after["sigmoid"] == "saved"
    assert after.get("mm", "recomputed") == "recomputed"
    decided = {outcome.id: outcome for outcome in outcomes(recorded)}
    assert decided.keys() == wanted.keys()
    assert all(one.overridden and not one.refused for one in decided.values())
    assert decided[f"{SAVES}sigmoid"].numbers["bytes"] == 8 * 8 * 4
    assert decided[f"{SAVES}sigmoid"].reason
    (partition,) = recorded.all(Partition)
    words = {value.node: value.reason for value in partition.values}
    assert words["sigmoid"] == "an override keeps it"
    for got, expected in zip(grads, plain[1], strict=True):
        torch.testing.assert_close(got, expected)


def test_all_are_asked_before_the_cut_and_a_file_does_the_same() -> None:
    asked: list[str] = []

    def ask(decision: Decision) -> str:
        if decision.kind != "save":
            return ""
        asked.append(decision.id)
        if decision.id != f"{SAVES}sigmoid":
            return ""
        assert decision.detail is not None
        detail = decision.detail()
        assert detail.origins == ("sigmoid",)
        assert detail.means == (
            "save: 256 B from the forward until the backward; recompute: the backward "
            "runs 2 operations again (relu, sigmoid), which read 256 B (mm)"
        )
        return SAVE

    driven, _ = compiled(ask=ask)
    assert f"{SAVES}mm" in asked
    assert len(asked) == len(set(asked))
    assert driven.gate.overrides == {f"{SAVES}sigmoid": SAVE}
    replayed, _ = compiled(dict(driven.gate.overrides))
    assert choices(driven) == choices(replayed)
    assert [outcome.id for outcome in outcomes(driven)] == [f"{SAVES}sigmoid"]


def test_an_override_that_the_partitioner_does_not_follow_is_refused() -> None:
    """Once mul is kept, exp's side reads tanh only through values that are already saved."""
    wanted = {f"{SAVES}relu": SAVE, f"{SAVES}nothing": SAVE}
    recorded, _ = compiled(wanted)
    (only,) = outcomes(recorded)
    assert only.id == f"{SAVES}relu"
    assert bool(only.refused) != (choices(recorded).get("relu") == "saved")
    assert [id for id, _ in recorded.gate.unknown()] == [f"{SAVES}nothing"]


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v).sin()


def test_a_cut_that_does_not_exist_is_refused_in_torchs_words_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attention's results can be saved, but the node that returns them can neither be saved nor
    run again. torch writes `min_cut_failed_graph.txt` into the working folder."""
    monkeypatch.chdir(tmp_path)
    given = [torch.randn(1, 2, 16, 8, requires_grad=True) for _ in range(3)]
    id = f"{SAVES}getitem"
    recorded, _ = record(attention, *given, until="autograd", grad=True, overrides={id: RECOMPUTE})
    (only,) = outcomes(recorded)
    assert (only.id, only.choice, only.wanted) == (id, SAVE, RECOMPUTE)
    assert only.refused.startswith("torch's partitioner fails: a value can neither be saved nor")
    assert "getitem: " in only.refused
    assert list(tmp_path.iterdir()) == []


def test_what_torch_says_of_a_failed_cut_is_one_line() -> None:
    said = (
        "AOT Autograd failed to partition.\n\nNodes involved in the conflict:\n  sdpa:\n"
        "    - cannot recompute\n  getitem:\n    - depends on sdpa\n    - depends on sdpa\n\n[x]"
    )
    assert why_failed(RuntimeError(said)) == (
        "a value can neither be saved nor computed again: "
        "sdpa: cannot recompute; getitem: depends on sdpa"
    )
    assert why_failed(ValueError("no such\nthing")) == "ValueError: no such"
    assert why_failed(ValueError()) == "ValueError: no reason given"


def test_what_draws_random_numbers_is_not_computed_twice() -> None:
    graph = fx.Graph()
    draw = graph.call_function(torch.ops.aten.rand.default, ([4],))
    found = forbidden(draw, RECOMPUTE)
    assert found is not None
    assert found[0] == "random"
    assert forbidden(draw, SAVE) is None
    exp = graph.call_function(torch.ops.aten.exp.default, (draw,))
    assert forbidden(exp, RECOMPUTE) is None


def test_a_failed_cut_writes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch writes the joint graph into the working folder."""
    monkeypatch.chdir(tmp_path)

    def impossible(*_: object, **__: object) -> None:
        raise networkx.NetworkXUnbounded("no cut")

    monkeypatch.setattr(networkx, "minimum_cut", impossible)
    monkeypatch.setattr(partitioners, "minimum_cut", impossible, raising=False)  # torch 2.15
    w = torch.ones(4, 4, requires_grad=True)
    with pytest.raises(Exception, match=r"partition|no cut|Infinite"):
        record(model, torch.ones(4, 4), w, grad=True)
    assert list(tmp_path.iterdir()) == []
