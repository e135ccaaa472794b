"""Traces of schema 1, in which a decision was spread over three records, read as schema 2."""

from __future__ import annotations

from typing import Literal

from msgspec import convert, structs

from compiler.trace.matching import base_graph
from compiler.trace.records import AnyRecord, Decided, Forbidden, Location, Record, Shown, TextHash
from compiler.trace.records import FusionPair as Test
from compiler.trace.records.base import Bytes, Index, Number


class Asked(Record):
    """A decision before it was made."""

    id: str
    graph: str
    kind: str
    default: str
    choices: tuple[str, ...] = ()
    rule: str = ""
    reason: str = ""
    numbers: dict[str, Number] = {}
    forbidden: tuple[Forbidden, ...] = ()
    first: tuple[str, ...] = ()
    second: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    if_fused: TextHash = ""
    sketched: bool = False
    means: str = ""
    location: Location | None = None


class FusionPair(Record):
    """One test of two scheduler nodes; tcw wrote it after the `Decided` of the same decision."""

    id: str
    graph: str
    round: Index
    phase: Literal["screen", "commit"]
    first: str
    second: str
    fused: bool
    rule: str = ""
    reason: str = ""
    check: str = ""
    kind: Literal["vertical", "horizontal"] = "vertical"
    score: tuple[Number, ...] = ()
    score_text: str = ""
    shared_bytes: Bytes | None = None
    cycle: bool = False
    within: str = ""


AnyRecordEver = AnyRecord | Asked | FusionPair

OLDER = frozenset((Asked, FusionPair, Decided))
"""Kinds of record that schema 1 has and schema 2 does not, or means otherwise."""


class Upgrade:
    """Turns records of schema 1 into those of today."""

    def __init__(self) -> None:
        self._last: Decided | None = None

    def __call__(self, record: AnyRecordEver) -> AnyRecord:
        if isinstance(record, Asked):
            return _open(record)
        if isinstance(record, FusionPair):
            last = self._last
            if last is not None and last.id == record.id and not last.id.startswith("inductor/"):
                return structs.replace(last, pair=_test(record), at=record.at)
            return _tested(record)
        if isinstance(record, Decided):
            self._last = record
        return record


def _open(asked: Asked) -> Decided:
    told = convert(asked, Decided, from_attributes=True)
    return structs.replace(told, shown=convert(asked, Shown, from_attributes=True))


def _tested(pair: FusionPair) -> Decided:
    overridden = pair.rule in ("veto", "forced")
    own = pair.fused != overridden
    return Decided(
        at=pair.at,
        id=pair.id,
        graph=base_graph(pair.graph),
        kind="fuse",
        default="fuse" if own else "apart",
        choice="fuse" if pair.fused else "apart",
        choices=("fuse", "apart") if own or pair.fused else ("apart",),
        rule=pair.rule or (pair.kind if pair.fused else ""),
        reason=pair.reason,
        numbers={} if pair.shared_bytes is None else {"shared_bytes": float(pair.shared_bytes)},
        overridden=overridden,
        pair=_test(pair),
    )


def _test(pair: FusionPair) -> Test:
    return convert(pair, Test, from_attributes=True)
