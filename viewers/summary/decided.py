"""A decision that was taken, with its choice."""

from __future__ import annotations

from dataclasses import replace

from tcw.compiler.protocol.decision import (
    APART,
    FUSE,
    INDUCTOR,
    RECOMPUTE,
    SAVE,
    Decision,
    decision_id,
    engine_of,
    split_id,
)
from tcw.compiler.protocol.decision_records import decision_of
from tcw.compiler.trace.records import Decided, Partition
from tcw.viewers.recording import Recording


def choice_of(recording: Recording, id: str) -> tuple[Decision, str] | None:
    """The decision, and its choice; None if this recording has no decision with the id.

    If nothing asked, it is unknown which choices are forbidden: the next run finds out.
    """
    known = recording.decisions
    asked, decided, tests = known.asked.get(id), known.decided.get(id), known.tests.get(id)
    if decided is not None:
        return as_decision(asked or decided), decided.choice
    if tests:
        return as_decision(asked or tests[-1]), tests[-1].choice
    if asked is not None:
        return as_decision(asked), asked.default
    return _saved(recording, id)


def as_decision(record: Decided) -> Decision:
    """With each choice that another run could take, and the graph of its id: records of a lowered
    graph name that one."""
    decision = replace(decision_of(record), graph=split_id(record.id)[0])
    if record.pair is not None:
        return replace(decision, choices=(FUSE, APART))
    return decision if record.choices else replace(decision, choices=_known(record))


def _known(record: Decided) -> tuple[str, ...]:
    taken = () if record.open else (record.choice,)
    return tuple(dict.fromkeys((record.default, *taken)))


def _saved(recording: Recording, id: str) -> tuple[Decision, str] | None:
    """What Inductor's partitioner did with a value that no decision was about."""
    graph, kind, names = split_id(id)
    if kind != SAVE or engine_of(id) != INDUCTOR:
        return None
    for split in recording.all(Partition):
        for value in split.values:
            if value.choice == "input" or id != decision_id(
                split.joint, SAVE, value.node, engine=INDUCTOR
            ):
                continue
            choice = RECOMPUTE if value.choice == "recomputed" else SAVE
            decision = Decision(
                graph, SAVE, names, choice, (SAVE, RECOMPUTE), reason=value.reason, engine=INDUCTOR
            )
            return decision, choice
    return None
