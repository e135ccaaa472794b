"""The record of a decision."""

from __future__ import annotations

from compiler.control.decisions import Decided
from compiler.trace import records


def decided_record(decided: Decided) -> records.Decided:
    """A decision as the gate made it."""
    decision = decided.decision
    return records.Decided(
        id=decision.id,
        graph=decision.graph,
        kind=decision.kind,
        default=decision.default,
        choice=decided.choice,
        choices=decision.choices,
        rule=decision.rule,
        reason=decision.reason,
        numbers=dict(decision.numbers),
        overridden=decided.overridden,
        wanted=decided.wanted if decided.refused else "",
        refused=decided.refused,
    )
