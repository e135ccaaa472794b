"""Records of decisions for tests: a test of a pair, and a decision that a person is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tcw.compiler.trace.records import Decided, FusionPair, Record, Shown

SHOWN = frozenset(Shown.__struct_fields__)


def pair_test(
    *,
    id: str,
    graph: str,
    fused: bool,
    rule: str = "",
    reason: str = "",
    overridden: bool = False,
    shared_bytes: int | None = None,
    round: int = 1,
    phase: str = "screen",
    first: str,
    second: str,
    between: tuple[str, ...] = (),
    **test: object,
) -> Decided:
    """As Inductor's fusion writes the test of a pair."""
    own = fused != overridden
    pair = FusionPair(
        graph=graph, first=first, second=second, round=round, phase=phase, **test
    )  # fmt: skip
    return Decided(
        id=id,
        graph=graph.removesuffix("/lowered"),
        kind="fuse",
        default="fuse" if own else "apart",
        choice="fuse" if fused else "apart",
        choices=("fuse", "apart") if own or fused else ("apart",),
        overridden=overridden,
        rule=rule or (pair.kind if own else ""),
        reason=reason,
        between=between,
        numbers={} if shared_bytes is None else {"shared_bytes": float(shared_bytes)},
        pair=pair,
    )


def asked(**fields: object) -> Decided:
    """A decision that a person is asked, with what they are shown."""
    shown = {name: value for name, value in fields.items() if name in SHOWN}
    rest = {name: value for name, value in fields.items() if name not in SHOWN}
    return Decided(shown=Shown(**shown), **rest)


def is_test(record: Record) -> bool:
    return isinstance(record, Decided) and record.pair is not None


def is_open(record: Record) -> bool:
    return isinstance(record, Decided) and record.open


@dataclass(frozen=True)
class PairTest:
    """A test of a pair, its decision and its detail in one."""

    record: Decided

    @property
    def fused(self) -> bool:
        return self.record.choice == "fuse"

    @property
    def shared_bytes(self) -> int | None:
        found = self.record.numbers.get("shared_bytes")
        return None if found is None else int(found)

    def __getattr__(self, name: str) -> Any:
        own = name in ("id", "rule", "reason", "between", "overridden", "by", "default", "choice")
        return getattr(self.record if own else self.record.pair, name)


def pairs_in(recording: Any) -> list[PairTest]:
    """The tests of pairs that a recording holds."""
    return [PairTest(decided) for decided in recording.all(Decided) if decided.pair is not None]


def asked_in(recording: Any) -> list[Decided]:
    """The decisions that a person was asked."""
    return [decided for decided in recording.all(Decided) if decided.open]


def outcomes(recording: Any) -> list[Decided]:
    """The choices that are not tests of pairs: how an override ended, what was saved."""
    return [
        decided for decided in recording.all(Decided) if decided.pair is None and not decided.open
    ]
