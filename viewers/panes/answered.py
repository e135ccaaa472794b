"""A decision that is answered already, as it was put or would have been."""

from __future__ import annotations

from typing import TypeVar

from compiler.control.decisions import APART, FUSE, INDUCTOR, RECOMPUTE, SAVE, engine_of, split_id
from compiler.decision import decision_id
from compiler.trace.records import Asked, Decided, FusionPair, Partition
from viewers.panes.rows import Row
from viewers.panes.targets import ToDecision, ToOverride, ToPair
from viewers.panes.view import View

T = TypeVar("T", Asked, Decided, FusionPair)


def decision_of(row: Row) -> str:
    """Id of the decision that a row shows; "" where it shows none."""
    if row.decision:
        return row.decision
    match row.at:
        case ToPair(id) | ToDecision(id) | ToOverride(id):
            return id
    return ""


def answered(view: View, id: str) -> tuple[Asked, str] | None:
    """The decision, and what was chosen; None where this recording has none with the id.

    What a person was not asked has no choice that is known to be forbidden: the next run tells.
    """
    recording = view.recording
    asked = _last(recording.all(Asked), id)
    decided = _last(recording.all(Decided), id)
    if decided is not None:
        return asked or _of_decided(decided), decided.choice
    pair = _last(recording.all(FusionPair), id)
    if pair is not None:
        return asked or _of_pair(pair), FUSE if pair.fused else APART
    if asked is not None:
        return asked, asked.default
    return _saved(view, id)


def _last(records: list[T], id: str) -> T | None:
    return next((one for one in reversed(records) if one.id == id), None)


def _of_decided(one: Decided) -> Asked:
    return Asked(
        id=one.id,
        graph=one.graph,
        kind=one.kind,
        default=one.default,
        choices=one.choices or tuple(dict.fromkeys((one.default, one.choice))),
        rule=one.rule,
        reason=one.reason,
        numbers=dict(one.numbers),
    )


def _of_pair(pair: FusionPair) -> Asked:
    return Asked(
        id=pair.id,
        graph=pair.graph,
        kind=FUSE,
        default=FUSE if pair.fused else APART,
        choices=(FUSE, APART),
        rule=pair.rule,
        reason=pair.reason,
    )


def _saved(view: View, id: str) -> tuple[Asked, str] | None:
    """What Inductor's partitioner did with a value of which nobody was asked."""
    graph, kind, names = split_id(id)
    if kind != SAVE or engine_of(id) != INDUCTOR:
        return None
    for split in view.recording.all(Partition):
        for value in split.values:
            if value.choice == "input" or id != decision_id(
                split.joint, SAVE, value.node, engine=INDUCTOR
            ):
                continue
            choice = RECOMPUTE if value.choice == "recomputed" else SAVE
            asked = Asked(
                id=id,
                graph=graph,
                kind=SAVE,
                default=choice,
                choices=(SAVE, RECOMPUTE),
                reason=value.reason,
                origins=names,
            )
            return asked, choice
    return None
