"""Every pair, round and group equals what an independent patch of the scheduler observed."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from msgspec.structs import replace

from tcw.compiler.inductor.fusion_attempts import Attempt, explain_attempt, score_parts
from tcw.compiler.inductor.fusion_rules import RULES, SILENT, rule_of
from tcw.compiler.protocol.decision import engine_of, split_id
from tcw.compiler.trace.records import (
    FusionGroup,
    FusionGroups,
    FusionRound,
    Graph,
    Location,
    Node,
    SchedulerNode,
    Warned,
)
from tcw.viewers.recording import Recording
from tcw.viewers.summary.fusion import grouped_elsewhere, pair_asked
from tests.cpu.inductor.conftest import Watched
from tests.cpu.inductor.recorded import Recorded, record
from tests.decided import pairs_in
from tests.inductor_loops import nest_text


@pytest.fixture(params=["transformer", "trained"])
def watched(request: pytest.FixtureRequest) -> Watched:
    return request.getfixturevalue(request.param)


def test_every_pair_is_recorded_with_its_verdict(watched: Watched) -> None:
    recorded = Counter((pair.first, pair.second, pair.fused) for pair in pairs_in(watched.recorded))
    assert recorded == Counter(watched.pairs)
    assert len(watched.pairs) > 50


def test_rounds_hold_what_was_fused(watched: Watched) -> None:
    rounds = watched.recorded.all(FusionRound)
    assert [fused for found in rounds for fused in found.fused] == watched.fused


def test_groups_are_the_nodes_that_code_is_generated_for(watched: Watched) -> None:
    groups = [
        [(group.name, group.nodes) for group in fusion_groups.groups]
        for fusion_groups in watched.recorded.all(FusionGroups)
    ]
    assert groups == watched.final


def test_every_rejection_has_a_rule(watched: Watched) -> None:
    for pair in pairs_in(watched.recorded):
        if pair.fused and not pair.cycle:
            assert (pair.rule, pair.reason, pair.check) == (pair.kind, "", "")
        else:
            assert pair.rule
            assert pair.rule != "unstated", pair
            assert bool(pair.reason) != bool(pair.check)
            assert "%" not in pair.reason


def test_pairs_that_may_fuse_carry_a_score_from_screening(watched: Watched) -> None:
    pairs = pairs_in(watched.recorded)
    scored = [pair for pair in pairs if pair.score]
    assert scored
    assert all(pair.fused and pair.phase == "screen" for pair in scored)
    for pair in scored:
        assert pair.shared_bytes is not None
        assert pair.shared_bytes in {int(part) for part in pair.score}
        assert str(pair.shared_bytes) in pair.score_text


def test_ids_name_the_nodes_that_carry_a_pair(transformer: Watched) -> None:
    nodes = {node.name: node for node in transformer.recorded.all(SchedulerNode)}
    groups: dict[str, set[str]] = {}
    for pair in pairs_in(transformer.recorded):
        graph, kind, (left, right) = split_id(pair.id)
        assert (engine_of(pair.id), graph, kind) == ("inductor", "0/0/inference", "fuse")
        if pair.first in nodes and pair.second in nodes:
            for name, node in ((left, pair.first), (right, pair.second)):
                assert name.partition(".")[0] in nodes[node].origins
        groups.setdefault(pair.id, set()).add(f"{pair.first} {pair.second}")
    single = [
        {one for one in pairs if "_" not in one}  # a pair of groups comes under its carriers' id
        for pairs in groups.values()
    ]
    assert all(len(pairs) <= 1 for pairs in single)


def test_kind_follows_the_data(transformer: Watched) -> None:
    nodes = {node.name: node for node in transformer.recorded.all(SchedulerNode)}
    for pair in pairs_in(transformer.recorded):
        if pair.first in nodes and pair.second in nodes:
            direct = set(nodes[pair.first].writes) & set(nodes[pair.second].reads)
            assert pair.kind == "vertical" or not direct


def test_scheduler_nodes_are_described(transformer: Watched) -> None:
    nodes = transformer.recorded.all(SchedulerNode)
    assert {"extern", "pointwise", "reduction"} <= {node.kind for node in nodes}
    for node in nodes:
        assert node.origins, node
        assert node.label, node
        if node.kind in ("pointwise", "reduction"):
            text = nest_text(node.nest)
            assert all(f"{buffer}" in text for buffer in (*node.reads, *node.writes)), text
            assert node.write_bytes


def test_nothing_went_wrong_in_recording(watched: Watched, zoo: Recorded) -> None:
    assert watched.recorded.all(Warned) == []
    assert zoo.all(Warned) == []
    assert all(status.available for status in watched.recorded.statuses), [
        status.reason for status in watched.recorded.statuses
    ]


@pytest.mark.parametrize(
    ("reason", "rule"),
    [
        ("no shared data", "no-shared-data"),
        ("no shared data due to indexing mismatch", "indexing-mismatch"),
        ("intermediate nodes between node1 & node2", "between"),
        ("node1 must go before node2", "order"),
        ("node2 is extern or nop", "extern"),
        ("node1 is nop", "nop"),
        ("device mismatch (%s vs %s)", "device"),
        ("Nodes are too far away. Fusing them may increase peak memory.", "too-far-apart"),
        ("Fusion will increase peak memory", "peak-memory"),
        ("numel/rnumel mismatch (reduce) (%s, %s), (%s, %s)", "domain"),
        ("tiling mismatch (%s, %s, %s)", "tiling"),
        ("will create cycle", "cycle"),
        ("prologue fusion turned off", "prologue"),
        ("a reason of %s that no table knows yet", "a-reason-of-that-no"),
    ],
)
def test_rules_of_reasons(reason: str, rule: str) -> None:
    assert rule_of(reason) == rule


def test_rules_are_short_names() -> None:
    for rule in [*(rule for rule, _ in RULES), *SILENT]:
        assert rule == rule.lower()
        assert " " not in rule


def test_a_reason_is_filled_in_and_survives_a_format_that_does_not_fit() -> None:
    attempt = Attempt("", "op0", "op1", False, None)
    attempt.said = ("device mismatch (%s vs %s)", ("cpu", "cuda:0"))
    assert explain_attempt(attempt) == ("device", "device mismatch (cpu vs cuda:0)", "")
    attempt.said = ("device mismatch (%s vs %s)", ("cpu",))
    assert explain_attempt(attempt)[1] == "device mismatch (%s vs %s)"


def test_scores_of_any_shape() -> None:
    assert score_parts(None) == ((), "")
    assert score_parts((1, True, 2.5)) == ((1.0, 1.0, 2.5), "")
    assert score_parts("high") == ((), "high")


def test_a_reason_names_the_nodes_between() -> None:
    attempt = Attempt("inductor/0/0/forward/fuse/amax+var_mean", "op0", "op4", False, None)
    attempt.said = ("intermediate nodes between node1 & node2", ())
    attempt.between = {"op2": "exp", "op3": "div"}
    words = "intermediate nodes between amax and var_mean: exp, div"
    assert explain_attempt(attempt) == ("between", words, "")
    names = ("exp", "sum_1", "div", "mul", "add")
    attempt.between = {f"op{place}": name for place, name in enumerate(names)}
    assert explain_attempt(attempt)[1].endswith(": exp, sum_1, div, mul, …")


def test_nodes_between_need_the_first_and_lead_to_the_second(watched: Watched) -> None:
    nodes = watched.recorded.all(SchedulerNode)
    named = {(node.graph, name) for node in nodes for name in node.origins}
    known = {(node.graph, node.name): node for node in nodes}
    pairs = [pair for pair in pairs_in(watched.recorded) if pair.rule == "between"]
    assert pairs
    for pair in pairs:
        between = pair.reason.partition(": ")[2].removesuffix(", …").split(", ")
        first, second = split_id(pair.id)[2]
        assert f"between {first} and {second}: " in pair.reason
        for name in between:
            assert (pair.graph, name.split(".")[0]) in named, pair
            assert name not in (first, second)
        for operation, name in zip(pair.between, between, strict=False):
            assert name.split(".")[0] in known[pair.graph, operation].origins
            assert operation not in (*pair.first.split("_"), *pair.second.split("_"))


def middle(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    h = torch.tanh(x) * 1.5
    return h - h.mean(1, keepdim=True), x[:4].exp().sum(2), x[4:].exp().sum(2)


def test_a_pair_without_shared_data_says_what_it_shares() -> None:
    recorded, _ = record(middle, torch.ones(8, 32, 64), until="fusion")
    apart = {
        split_id(pair.id)[2]: pair.reason
        for pair in pairs_in(recorded)
        if pair.rule == "no-shared-data"
    }
    assert "buf0, 64 KB, in different orders" in apart["mul", "mean"]
    assert any("arg0_1, 32 KB, from different elements on" in words for words in apart.values())
    assert any("arg0_1, 64 KB, in parts of different sizes" in words for words in apart.values())


def test_the_other_engine_is_asked_about_the_same_pair() -> None:
    place = Location(file="m.py", line=3)

    def lowered(groups: tuple[FusionGroup, ...], line: int = 3) -> Recording:
        nodes = tuple(
            Node(name=name, op="call_function", target=f"aten.{name}.default",
                 location=replace(place, line=line))
            for name in ("mul", "mean")
        )  # fmt: skip
        return Recording([
            Graph(id="0/0/lowered", kind="lowered", compile_id="0/0", nodes=nodes),
            *(SchedulerNode(graph="0/0/lowered", name=f"op{n}", kind="pointwise", label=name,
                            origins=(name,)) for n, name in enumerate(("mul", "mean"))),
            FusionGroups(graph="0/0/lowered", groups=groups),
        ])  # fmt: skip

    def group(*nodes: str) -> FusionGroup:
        return FusionGroup(name="_".join(nodes), nodes=nodes, kind="pointwise", label="")

    both, each = (group("op0", "op1"),), (group("op0"), group("op1"))
    pair = pair_asked("inductor/0/0/fuse/mul+mean", "0/0/lowered", "op0", "op1")
    assert grouped_elsewhere(lowered(each), lowered(both), pair) is True
    assert grouped_elsewhere(lowered(each), lowered(each), pair) is False
    assert grouped_elsewhere(lowered(each), lowered(both, line=9), pair) is None
    assert grouped_elsewhere(lowered(each), Recording([]), pair) is None
