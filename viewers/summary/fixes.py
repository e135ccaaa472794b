"""Fixes that were tried: which one to show of several, and what it does, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tcw.compiler.trace.records import Advice, CaptureCounts, FixTrial
from tcw.viewers.recording import Recording
from tcw.viewers.words import plural


def is_command(advice: Advice) -> bool:
    """Whether it is a command of ours, which looks closer and changes nothing."""
    return advice.by == "tcw" and advice.code.startswith("tcw ")


def together(recording: Recording) -> FixTrial | None:
    """The trial of all chosen fixes at once; None if there was none."""
    return next((trial for trial in recording.all(FixTrial) if not trial.finding), None)


def best_of(trials: Sequence[FixTrial]) -> FixTrial | None:
    """Of the fixes that were kept, the one that removes most; of equals the first, which changes
    least. None if none was kept."""
    kept = [trial for trial in trials if trial.kept and trial.after is not None]
    return min(kept, key=lambda trial: _figures(trial.after), default=None)


def _figures(counts: CaptureCounts | None) -> tuple[int, ...]:
    if counts is None:
        return ()
    return counts.failures, counts.eager, counts.breaks, counts.compiles, counts.graphs


def result_words(trial: FixTrial) -> str:
    """`1 graph, no breaks, 1 compile`: what a trial comes to."""
    counts = trial.after
    if counts is None:
        return ""
    parts = [plural(counts.graphs, "graph")]
    parts.append(plural(counts.breaks, "break") if counts.breaks else "no breaks")
    parts.append(plural(counts.compiles, "compile"))
    parts += [_counted(counts.eager, "frame that runs eagerly")] if counts.eager else []
    return ", ".join(parts)


def words(trial: FixTrial) -> str:
    """`2 breaks → 0, 12 compiles → 2, same results`: what changes with it."""
    before, after = trial.before, trial.after
    if before is None or after is None:
        return ""
    parts = []
    for name, noun in (
        ("failures", "failure"),
        ("eager", "frame that runs eagerly"),
        ("breaks", "break"),
        ("compiles", "compile"),
    ):
        one, other = getattr(before, name), getattr(after, name)
        if one != other:
            parts.append(f"{_counted(one, noun)} → {other}")
    if not parts and before.graphs != after.graphs:
        parts.append(f"{plural(before.graphs, 'graph')} → {after.graphs}")
    results = {"same": "same results", "within": "same results within rounding"}
    parts += [trial.effect] if trial.effect else []
    parts += [results[trial.results]] if trial.results in results else []
    return ", ".join(parts)


def _counted(count: int, noun: str) -> str:
    if noun == "frame that runs eagerly":
        return f"{plural(count, 'frame')} run eagerly" if count != 1 else "1 frame runs eagerly"
    return plural(count, noun)


def safety(trial: FixTrial) -> Literal["same results", "changes behaviour", "idea"]:
    """`same results`, `changes behaviour` or `idea`."""
    if not trial.kept:
        return "idea"
    return "changes behaviour" if trial.effect else "same results"
