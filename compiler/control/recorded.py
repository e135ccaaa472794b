"""Recorded decisions, as the `Decision` that each of them is."""

from __future__ import annotations

from compiler.control.decisions import APART, FORCED, FUSE, VETO, engine_of, split_id
from compiler.decision import Decision
from compiler.trace.records import Asked, Decided, FusionPair


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
