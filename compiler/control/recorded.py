"""Decisions as records, and records as the `Decision` that each of them is."""

from __future__ import annotations

from typing import Any

from compiler.control.decisions import APART, FORCED, FUSE, VETO, Answer, engine_of, split_id
from compiler.decision import Decision, Detail
from compiler.trace.records import Asked, Decided, Forbidden, FusionPair, Location


def decided_record(answer: Answer) -> Decided:
    """A decision as the gate made it."""
    return Decided(
        choice=answer.choice,
        overridden=answer.overridden,
        wanted=answer.wanted if answer.refused else "",
        refused=answer.refused,
        **_of(answer.decision),
    )


def asked_record(
    decision: Decision, detail: Detail, if_fused: str, location: Location | None
) -> Asked:
    """A decision before it is made. `if_fused`: the hash of the detail's text."""
    return Asked(
        forbidden=tuple(
            Forbidden(choice=choice, rule=rule, reason=reason)
            for choice, (rule, reason) in decision.forbidden.items()
        ),
        first=detail.first,
        second=detail.second,
        origins=detail.origins,
        if_fused=if_fused,
        sketched=detail.sketched,
        means=detail.means,
        location=location,
        **_of(decision),
    )


def _of(decision: Decision) -> dict[str, Any]:
    return {
        "id": decision.id,
        "graph": decision.graph,
        "kind": decision.kind,
        "default": decision.default,
        "choices": decision.choices,
        "rule": decision.rule,
        "reason": decision.reason,
        "numbers": dict(decision.numbers),
    }


def decision_of(record: Asked | Decided | FusionPair) -> Decision:
    """What was asked. An override does not change it: the default is the engine's own choice."""
    if isinstance(record, FusionPair):
        return _of_pair(record)
    forbidden = record.forbidden if isinstance(record, Asked) else ()
    return Decision(
        record.graph,
        record.kind,
        split_id(record.id)[2],
        record.default,
        record.choices,
        record.rule,
        record.reason,
        record.numbers,
        {one.choice: (one.rule, one.reason) for one in forbidden},
        engine=engine_of(record.id),
    )


def _of_pair(pair: FusionPair) -> Decision:
    graph, kind, names = split_id(pair.id)
    own = pair.rule == VETO if pair.rule in (VETO, FORCED) else pair.fused
    shared = pair.shared_bytes
    return Decision(
        graph,
        kind,
        names,
        FUSE if own else APART,
        (FUSE, APART) if own or pair.fused else (APART,),
        pair.rule or (pair.kind if pair.fused else ""),
        pair.reason,
        {} if shared is None else {"shared_bytes": shared},
        engine=engine_of(pair.id),
    )
