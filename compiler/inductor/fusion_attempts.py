"""One run of the scheduler's fusion: its rounds, and each pair from its test to its record."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tcw.compiler.control.recorder import Recorder
from tcw.compiler.inductor.fusion_names import pair_names
from tcw.compiler.inductor.fusion_rules import SILENT, rule_of
from tcw.compiler.inductor.lowered_graphs import Lowering
from tcw.compiler.protocol.decision import (
    APART,
    FUSE,
    INDUCTOR,
    MOST_BETWEEN,
    Decision,
    Ruling,
    decision_id,
    split_id,
)
from tcw.compiler.protocol.decision_records import decided_record
from tcw.compiler.trace.records import FusionPair

if TYPE_CHECKING:
    from tcw.compiler.inductor.fusion_overrides import Overruling


@dataclass(eq=False, slots=True)
class Attempt:
    """One call of `Scheduler.can_fuse`, from its start until its record is written."""

    id: str
    first: str
    second: str
    vertical: bool
    outer: Attempt | None
    """The pair of groups whose test includes this pair of members."""
    said: tuple[str, tuple[Any, ...]] | None = None
    """Inductor's last reason: format string and arguments."""
    silent: tuple[str, str] | None = None
    """(rule, function) of a check that rejected without a reason, after `said`."""
    between: dict[str, str] = field(default_factory=dict)
    """If nodes between the two rejected the pair: those, in schedule order, with their names."""
    shares: str = ""
    """If Inductor counts no shared data: what the pair shares nevertheless."""
    rejected_member: str = ""
    shared: int | None = None
    mixed: bool = False
    score: object = None
    cycle: bool = False
    fused: bool = False
    by: str = ""
    """Id of the override that reversed Inductor's own verdict."""
    forced: tuple[str, str, str] = ("", "", "")
    """`explain_attempt` of a rejection that an override reversed."""

    @property
    def numbers(self) -> dict[str, int | float]:
        """The bytes that both access, as the scheduler counts them; {} if it did not count."""
        return {} if self.shared is None or self.mixed else {"shared_bytes": self.shared}


class Attempts(threading.local):
    """The attempts in progress on this thread, innermost last."""

    def __init__(self) -> None:
        self.stack: list[Attempt] = []
        self.last: Attempt | None = None
        """The last successful attempt that is not written yet."""


attempts = Attempts()


@dataclass
class InductorFusion:
    """The fusion of one scheduler."""

    recorder: Recorder
    lowering: Lowering
    overruling: Overruling
    round: int = 0
    phase: Literal["screen", "commit"] = "commit"
    fusing: bool = False
    """Two groups are being fused: Inductor tests their parts again, and nothing is decided."""
    names: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """The nodes that stand for each pair of groups tested so far."""
    screened: dict[tuple[int, int], Attempt] = field(default_factory=dict)
    """Pairs that passed screening in this round, by `id` of their nodes; their scores follow."""
    fused: list[tuple[str, str, str]] = field(default_factory=list)

    def pair(self, first: Any, second: Any) -> tuple[str, str]:
        """The names of the two nodes that stand for a pair of groups."""
        key = (first.get_name(), second.get_name())
        found = self.names.get(key)
        if found is None:
            found = self.names[key] = pair_names(first, second, self.lowering)
        return found

    def id_of(self, first: Any, second: Any) -> str:
        """`inductor/0/0/forward/fuse/amax+exp`."""
        return decision_id(self.lowering.base, FUSE, *self.pair(first, second), engine=INDUCTOR)

    def write(self, attempt: Attempt, phase: Literal["screen", "commit"] | None = None) -> None:
        """Write the record of a settled attempt; pass `phase` if that phase has ended."""
        if self.recorder.quiet:
            return
        rule, reason, check = explain_attempt(attempt)
        kind: Literal["vertical", "horizontal"] = "vertical" if attempt.vertical else "horizontal"
        parts, text = score_parts(attempt.score)
        outer = attempt.outer
        own = attempt.fused != bool(attempt.by)
        pair = FusionPair(
            graph=self.lowering.id,
            round=self.round,
            phase=phase or self.phase,
            first=attempt.first,
            second=attempt.second,
            kind=kind,
            check=check,
            score=parts,
            score_text=text,
            cycle=attempt.cycle,
            within="" if outer is None else outer.id,
        )
        decision = Decision(
            graph=self.lowering.base,
            kind=FUSE,
            names=split_id(attempt.id)[2],
            default=FUSE if own else APART,
            choices=(FUSE, APART) if own or attempt.fused else (APART,),
            rule=rule or kind,
            reason=reason,
            numbers=attempt.numbers,
            between=tuple(attempt.between),
            engine=INDUCTOR,
        )
        ruling = Ruling(
            decision,
            FUSE if attempt.fused else APART,
            overridden=bool(attempt.by),
            by=attempt.by if attempt.by != attempt.id else "",
            pair=lambda: pair,
        )
        self.recorder.emit(decided_record(ruling))

    def write_last(self) -> None:
        """Write the pending commit, about which nothing more will be reported."""
        last = attempts.last
        if last is not None:
            attempts.last = None
            self.write(last)

    def write_screened(self) -> None:
        """Write the pairs that passed screening; those worth trying have been scored by now."""
        passed = list(self.screened.values())
        self.screened.clear()
        for attempt in passed:
            self.write(attempt, "screen")


def explain_attempt(attempt: Attempt) -> tuple[str, str, str]:
    """(rule, Inductor's own words, the silent check as text) of what Inductor itself found; all
    empty if it has nothing against the pair."""
    if attempt.by and not attempt.fused:
        return "", "", ""
    if any(attempt.forced) and not attempt.cycle:
        return attempt.forced
    if attempt.silent is not None:
        rule, function = attempt.silent
        return rule, "", f"{function}: {SILENT[rule]}"
    if attempt.said is not None:
        form, arguments = attempt.said
        try:
            words = form % arguments if arguments else form
        except (TypeError, ValueError):
            words = form
        return rule_of(form), _naming(words, attempt), ""
    if attempt.cycle:
        return "cycle", "", ""
    if attempt.rejected_member:
        return "member", "", f"{attempt.rejected_member}: {SILENT['member']}"
    if attempt.fused:
        return "", "", ""
    return "unstated", "", SILENT["unstated"]


def _naming(words: str, attempt: Attempt) -> str:
    """Inductor's words with the nodes that it means: `intermediate nodes between amax and
    var_mean: exp, div`; or with the buffers that it does not count."""
    if attempt.shares:
        return f"{words}: {attempt.shares}"
    if not attempt.between:
        return words
    sides = " and ".join(split_id(attempt.id)[2])
    named = ", ".join(list(attempt.between.values())[:MOST_BETWEEN])
    more = ", …" if len(attempt.between) > MOST_BETWEEN else ""
    return f"{words.replace('node1 & node2', sides)}: {named}{more}"


def score_parts(score: object) -> tuple[tuple[float, ...], str]:
    """Inductor's score in its own order of parts, and the parts with their names.

    A `FusionScore` (torch/_inductor/choices.py) since torch 2.12, a plain tuple before, or anything
    sortable from the user's own `InductorChoices`.
    """
    if score is None:
        return (), ""
    fields = getattr(score, "__dataclass_fields__", None)
    if fields is not None:
        values = [(name, getattr(score, name, None)) for name in fields]
    elif isinstance(score, tuple):
        values = [("", value) for value in score]
    else:
        values = [("", score)]
    if not all(isinstance(value, (int, float)) for _, value in values):
        return (), str(score)[:200]
    parts = tuple(float(value) for _, value in values if isinstance(value, (int, float)))
    text = ", ".join(f"{name.removesuffix('_score')} {value}" for name, value in values if name)
    return parts, text


fusions: weakref.WeakKeyDictionary[object, InductorFusion] = weakref.WeakKeyDictionary()
"""By scheduler."""
