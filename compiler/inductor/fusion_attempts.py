"""One run of the scheduler's fusion: its rounds, and each pair from its test to its record."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, field
from typing import Any, Literal

from compiler.control.recorder import Recorder
from compiler.inductor.fusion_rules import SILENT, rule_of
from compiler.inductor.lowerings import Lowering
from compiler.trace.records import FusionPair


class Attempt:
    """One call of `Scheduler.can_fuse`, while it runs and until its record is written."""

    __slots__ = (
        "cycle",
        "first",
        "fused",
        "mixed",
        "outer",
        "rejected_member",
        "said",
        "score",
        "second",
        "shared",
        "silent",
        "vertical",
    )

    def __init__(self, first: str, second: str, vertical: bool, outer: Attempt | None) -> None:
        self.first = first
        self.second = second
        self.vertical = vertical
        self.outer = outer
        """The pair of groups whose test asked for this pair of members."""
        self.said: tuple[str, tuple[Any, ...]] | None = None
        """Inductor's last reason: format string and arguments."""
        self.silent: tuple[str, str] | None = None
        """(rule, function) of a check that answered no without a reason, after `said`."""
        self.rejected_member = ""
        self.shared: int | None = None
        self.mixed = False
        self.score: object = None
        self.cycle = False
        self.fused = False


class Running(threading.local):
    """The attempts that this thread is inside of, innermost last."""

    def __init__(self) -> None:
        self.stack: list[Attempt] = []
        self.last: Attempt | None = None
        """The last attempt that ended with yes and is not written yet."""


running = Running()


@dataclass
class Fusion:
    """The fusion of one scheduler."""

    recorder: Recorder
    lowering: Lowering
    round: int = 0
    phase: Literal["screen", "commit"] = "commit"
    ids: dict[tuple[str, str], str] = field(default_factory=dict)
    screened: dict[tuple[int, int], Attempt] = field(default_factory=dict)
    """Pairs that passed screening in this round, by identity of their nodes; their score
    comes later."""
    fused: list[tuple[str, str, str]] = field(default_factory=list)

    def id_of(self, first: str, second: str) -> str:
        """The pair's stable id: numbered by distinct pair, in order of first test."""
        key = (first, second)
        found = self.ids.get(key)
        if found is None:
            found = f"inductor/{self.lowering.base}/fuse#{len(self.ids) + 1}"
            self.ids[key] = found
        return found

    def write(self, attempt: Attempt, phase: Literal["screen", "commit"] | None = None) -> None:
        """Write the record of an attempt that is settled; `phase` where that has ended."""
        rule = reason = check = ""
        if not attempt.fused or attempt.cycle or attempt.said is not None:
            rule, reason, check = explain(attempt)
        parts, text = score_parts(attempt.score)
        outer = attempt.outer
        self.recorder.emit(
            FusionPair(
                id=self.id_of(attempt.first, attempt.second),
                graph=self.lowering.id,
                round=self.round,
                phase=phase or self.phase,
                first=attempt.first,
                second=attempt.second,
                fused=attempt.fused,
                rule=rule,
                reason=reason,
                check=check,
                kind="vertical" if attempt.vertical else "horizontal",
                score=parts,
                score_text=text,
                shared_bytes=None if attempt.mixed else attempt.shared,
                cycle=attempt.cycle,
                within="" if outer is None else self.id_of(outer.first, outer.second),
            )
        )

    def write_last(self) -> None:
        """Write the commit that nothing more can be said about."""
        last = running.last
        if last is not None:
            running.last = None
            self.write(last)

    def write_screened(self) -> None:
        """Write the pairs that passed screening; those worth trying have been scored by now."""
        passed = list(self.screened.values())
        self.screened.clear()
        for attempt in passed:
            self.write(attempt, "screen")


def explain(attempt: Attempt) -> tuple[str, str, str]:
    """(rule, Inductor's own words, the silent check in words) of an attempt with a no in it."""
    if attempt.silent is not None:
        rule, function = attempt.silent
        return rule, "", f"{function}: {SILENT[rule]}"
    if attempt.said is not None:
        form, arguments = attempt.said
        try:
            words = form % arguments if arguments else form
        except (TypeError, ValueError):
            words = form
        return rule_of(form), words, ""
    if attempt.cycle:
        return "cycle", "", ""
    if attempt.rejected_member:
        return "member", "", f"{attempt.rejected_member}: {SILENT['member']}"
    if attempt.fused:
        return "", "", ""
    return "unstated", "", SILENT["unstated"]


def score_parts(score: object) -> tuple[tuple[float, ...], str]:
    """Inductor's score in its own order of parts, and the parts with their names.

    A `FusionScore` (torch/_inductor/choices.py) since torch 2.12, a plain tuple before, anything
    sortable from an `InductorChoices` of the user.
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


fusions: weakref.WeakKeyDictionary[object, Fusion] = weakref.WeakKeyDictionary()
"""By scheduler."""
