"""Decisions as records, and records as the `Decision` that each of them is."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tcw.compiler.protocol.decision import Decision, Detail, Ruling, engine_of, split_id
from tcw.compiler.trace.records import Decided, Forbidden, Location, Shown


def decided_record(ruling: Ruling) -> Decided:
    """A decision with its choice."""
    return Decided(
        choice=ruling.choice,
        overridden=ruling.overridden,
        by=ruling.by,
        wanted=ruling.wanted if ruling.refused else "",
        refused=ruling.refused,
        pair=None if ruling.pair is None else ruling.pair(),
        **_of(ruling.decision),
    )


def open_record(
    decision: Decision, detail: Detail, if_fused: str, location: Location | None
) -> Decided:
    """A decision that a person is about to make. `if_fused`: the hash of the detail's text."""
    return Decided(
        forbidden=tuple(
            Forbidden(choice=choice, rule=rule, reason=reason)
            for choice, (rule, reason) in decision.forbidden.items()
        ),
        shown=Shown(**{**asdict(detail), "if_fused": if_fused}, location=location),
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
        "between": decision.between,
        "numbers": dict(decision.numbers),
    }


def decision_of(record: Decided) -> Decision:
    """What was asked. An override does not change it: the default is the engine's own choice."""
    return Decision(
        record.graph,
        record.kind,
        split_id(record.id)[2],
        record.default,
        record.choices,
        record.rule,
        record.reason,
        record.numbers,
        {forbidden.choice: (forbidden.rule, forbidden.reason) for forbidden in record.forbidden},
        between=record.between,
        engine=engine_of(record.id),
    )
