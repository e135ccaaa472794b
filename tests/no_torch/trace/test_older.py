"""A trace of schema 1, in which a decision was three records, reads as one of today."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from compiler.trace.reader import TraceDecoder
from compiler.trace.records import AnyRecord, Decided, FusionPair, Shown
from tests.no_torch.traces import opening
from viewers.recording import Recording
from viewers.summary.fusion import fusion_summary

INDUCTOR = "inductor/0/0/forward/fuse/exp+sum_1"
TCW = "tcw/0/0/forward/fuse/exp+sum_1"
PAIR = {
    "record": "fusion-pair", "at": 1.5, "graph": "0/0/forward/lowered", "phase": "commit",
    "first": "op1", "second": "op2_op3", "shared_bytes": 4096, "score": [4096.0],
    "score_text": "saves 4,096 bytes",
}  # fmt: skip
DECIDED = {
    "record": "decided", "at": 1.0, "id": TCW, "graph": "0/0/forward", "kind": "fuse",
    "default": "fuse", "choices": ["fuse", "apart"], "rule": "saves bytes",
    "numbers": {"saved_bytes": 4096.0, "shared_bytes": 4096.0},
}  # fmt: skip


def read(*records: dict[str, Any]) -> list[AnyRecord]:
    lines = [json.dumps(one) for one in records]
    head = json.loads(msgspec.json.encode(opening()[0]))
    head["schema_version"] = 1
    decoder = TraceDecoder()
    found = decoder.feed("\n".join([json.dumps(head), *lines, ""]).encode())
    assert not decoder.losses.damaged
    assert not decoder.losses.unknown
    return found[1:]


def test_a_test_of_inductor_is_a_decision() -> None:
    pair = {**PAIR, "id": INDUCTOR, "round": 2, "fused": True}
    (one,) = read(pair)
    assert isinstance(one, Decided)
    assert (one.graph, one.kind, one.default, one.choice) == ("0/0/forward", "fuse", "fuse", "fuse")
    assert one.numbers == {"shared_bytes": 4096.0}
    assert one.pair == FusionPair(
        graph="0/0/forward/lowered", first="op1", second="op2_op3", round=2, phase="commit",
        score=(4096.0,), score_text="saves 4,096 bytes",
    )  # fmt: skip
    vetoed = read({**pair, "fused": False, "rule": "veto", "reason": "an override keeps …"})[0]
    assert isinstance(vetoed, Decided)
    assert (vetoed.default, vetoed.choice, vetoed.overridden) == ("fuse", "apart", True)


def test_a_pair_of_ours_joins_the_decision_before_it() -> None:
    decided = {**DECIDED, "choice": "apart", "overridden": True}
    pair = {**PAIR, "id": TCW, "round": 1, "fused": False, "rule": "veto", "reason": TCW}
    before, one = read(decided, pair)
    assert isinstance(before, Decided)
    assert isinstance(one, Decided)
    assert before.pair is None
    assert one.pair is not None
    assert (one.choice, one.default, one.overridden, one.rule) == (
        "apart", "fuse", True, "saves bytes"
    )  # fmt: skip
    (graph,) = fusion_summary(Recording(read(decided, pair))).graphs
    assert [(found.verdict, found.rule, found.tests) for found in graph.pairs] == [
        ("rejected", "veto", 1)
    ]


def test_what_a_person_was_asked_is_open() -> None:
    asked = {
        **DECIDED, "record": "asked", "first": ["op1"], "second": ["op2", "op3"],
        "origins": ["exp"], "sketched": True, "means": "two nests",
        "forbidden": [{"choice": "fuse", "rule": "cycle", "reason": "it is one"}],
    }  # fmt: skip
    (one,) = read(asked)
    assert isinstance(one, Decided)
    assert one.open
    assert one.sides == ("op1", "op2_op3")
    assert one.shown == Shown(
        first=("op1",), second=("op2", "op3"), origins=("exp",), sketched=True, means="two nests"
    )
    assert [found.choice for found in one.forbidden] == ["fuse"]
