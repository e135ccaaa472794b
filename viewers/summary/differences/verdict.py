"""The answer in one line: what the change cost, or that it is unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tcw.viewers.summary.differences.measured import MeasuredDifference

if TYPE_CHECKING:
    from tcw.viewers.summary.differences import Difference

ChangeTone = Literal["good", "bad", "neutral"]


@dataclass(frozen=True)
class WhatIfVerdict:
    tone: ChangeTone
    title: str
    """`The veto is faster`, `No measurable difference`, `Nothing changed`, …"""
    subject: str
    """What was changed: `veto`, `overrides`, `engine tcw`, `run 2`."""
    measured: MeasuredDifference | None
    """What the title is about."""
    why: str = ""
    """Why there is no measured time; "" if there is one."""


def whatif_verdict(difference: Difference) -> WhatIfVerdict:
    subject = subject_of(difference)
    timed = [one for one in difference.measured if one.outcome != "not measured"]
    if timed:
        # one kernel in the noise does not contradict a graph measured as slower
        first = next((one for one in timed if one.outcome != "in noise"), timed[0])
        if first.outcome == "in noise":
            return WhatIfVerdict("neutral", "No measurable difference", subject, first)
        tone: ChangeTone = "good" if first.outcome == "faster" else "bad"
        verb = "are" if subject == "overrides" else "is"
        title = f"The {subject} {verb} {first.outcome}"
        if subject.partition(" ")[0] not in _ARTICLE:
            title = f"{subject[:1].upper()}{subject[1:]} {verb} {first.outcome}"
        return WhatIfVerdict(tone, title, subject, first)
    if difference.nothing:
        alike = "graphs, guards, decisions and kernels are the same in both"
        return WhatIfVerdict("neutral", "Nothing changed", subject, None, alike)
    reasons = list(dict.fromkeys(m.record.reason for m in difference.measured if m.record.reason))
    return WhatIfVerdict("neutral", "Cost not measured", subject, None, "; ".join(reasons))


_ARTICLE = ("veto", "forced", "override", "overrides")


def subject_of(difference: Difference) -> str:
    """What was changed, in a word or two."""
    overrides = [one for one in difference.settings if one.name.count("/") > 2]
    others = [one for one in difference.settings if one not in overrides and one.name != "file"]
    if len(overrides) == 1 and not others:
        choice = overrides[0].after
        if not choice:
            return "override taken back"
        return {"apart": "veto", "fuse": "forced fusion"}.get(choice, "override")
    if overrides and not others:
        return "overrides"
    if len(others) == 1 and not overrides:
        return f"{others[0].name} {others[0].after}"
    return "this run"
