"""The object of `tcw check --format json` (docs/json.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tcw.viewers.check.result import Outcome, TargetResult
from tcw.viewers.json_diff import EffectItem, effect_item
from tcw.viewers.json_text import JsonItem
from tcw.viewers.summary.budget import FactStanding

VERSION = 1


class ChangeItem(JsonItem):
    """A fact that differs from the accepted one."""

    group: str
    """`break`, `library`, …; "" for a number of the whole recording."""
    name: str
    before: int | float | str | None
    """null if it was not there."""
    after: int | float | str | None
    """null if it is gone."""
    unit: Literal["count", "bytes", "seconds", "instructions", "error"]
    standing: FactStanding
    fails: bool
    words: str
    file: str
    line: int | None


class TargetItem(JsonItem):
    name: str
    file: str
    outcome: Outcome
    torch: str
    failure: str
    facts: int
    changes: list[ChangeItem]
    """Worst first."""
    base: str
    """The revision that `effects` compares with; "" if none was."""
    no_cause: str
    """Why no cause was found, or ""."""
    effects: list[EffectItem]


class CheckReport(JsonItem):
    """The whole object."""

    version: int
    failed: bool
    """Whether the exit code is 1."""
    targets: list[TargetItem]


def check_report(results: Sequence[TargetResult]) -> CheckReport:
    return CheckReport(
        version=VERSION,
        failed=any(result.fails for result in results),
        targets=[
            TargetItem.of(
                result,
                changes=[
                    ChangeItem.of(change, line=change.line or None) for change in result.changes
                ],
                effects=[effect_item(effect) for effect in result.effects],
            )
            for result in results
        ],
    )
