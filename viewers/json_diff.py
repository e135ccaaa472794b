"""The object of `tcw diff --json` (docs/json.md)."""

from __future__ import annotations

from typing import Literal

from msgspec import structs

from tcw.viewers.json_text import JsonItem, placed
from tcw.viewers.summary.differences import Difference
from tcw.viewers.summary.differences.alignment import Alignment
from tcw.viewers.summary.differences.effects import Effect, EffectKind, EffectTone
from tcw.viewers.summary.differences.measured import MeasuredDifference, MeasuredOutcome

VERSION = 1


class EffectItem(JsonItem):
    """One thing that the second side does differently."""

    kind: EffectKind
    tone: EffectTone
    words: str
    file: str
    """Of the second side; of the first if only that has the line."""
    line: int | None
    count: int
    cause: str
    """"" if it was not found."""


class FigureItem(JsonItem):
    """One number of both sides; null if it was not measured."""

    what: str
    unit: Literal["count", "bytes", "seconds", "error"]
    before: float | None
    after: float | None
    not_compared: str
    """Why the two cannot be compared; "" if they can."""


class CountItem(JsonItem):
    """How often each side has something."""

    what: str
    before: int
    after: int


class SettingItem(JsonItem):
    name: str
    before: str
    after: str


class DecisionItem(JsonItem):
    """A decision that fell otherwise."""

    id: str
    kind: str
    subject: str
    change: str
    before: str
    after: str
    reason: str


class KernelsItem(JsonItem):
    """Kernels that do one piece of work on both sides."""

    change: str
    """`changed`, `split`, `merged`, `regrouped`, `new` or `gone`."""
    before: list[str]
    after: list[str]


class CallTimesItem(JsonItem):
    """Whole calls of both sides. Times are in seconds; null where they were not measured."""

    outcome: MeasuredOutcome
    before: float | None
    after: float | None
    difference: float | None
    """Of the medians of all turns, after - before."""
    noise: float | None
    """A smaller difference does not count."""
    turns: int
    reason: str
    """Why nothing was measured."""

    @classmethod
    def of_measured(cls, measured: MeasuredDifference) -> CallTimesItem:
        record = measured.record
        known = record.before is not None
        return cls(
            outcome=measured.outcome,
            before=record.before.median if record.before else None,
            after=record.after.median if record.after else None,
            difference=record.difference if known else None,
            noise=record.noise if known else None,
            turns=record.pairs,
            reason=record.reason,
        )


class DiffReport(JsonItem):
    """The whole object."""

    version: int
    before: str
    """The name of the first side."""
    after: str
    """The name of the second side."""
    same: bool
    """Whether nothing differs except times."""
    effects: list[EffectItem]
    """By cost."""
    settings: list[SettingItem]
    figures: list[FigureItem]
    """All of them, changed or not."""
    breaks: list[CountItem]
    recompiles: list[CountItem]
    guards: list[CountItem]
    decisions: list[DecisionItem]
    kernels: list[KernelsItem]
    """Without those that are the same."""
    times: CallTimesItem | None
    """Whole calls of both sides timed in turn; null without --measure."""


def diff_report(difference: Difference, before: str, after: str) -> DiffReport:
    """`before`, `after`: what the two sides are called."""
    calls = [
        measured_difference
        for measured_difference in difference.measured
        if measured_difference.record.scope == "call"
    ]
    return DiffReport(
        version=VERSION,
        before=before,
        after=after,
        same=difference.nothing and not difference.effects,
        effects=[_effect(effect, difference.alignment) for effect in difference.effects],
        settings=[SettingItem.of(setting) for setting in difference.settings],
        figures=[FigureItem.of(figure) for figure in difference.figures],
        breaks=[CountItem.of(figure) for figure in difference.breaks],
        recompiles=[CountItem.of(recompile) for recompile in difference.recompiles],
        guards=[CountItem.of(guard) for guard in difference.guards],
        decisions=[DecisionItem.of(change) for change in difference.decisions.changes],
        kernels=[
            KernelsItem(
                change=changed_kernel.kind,
                before=[kernel.id for kernel in changed_kernel.before],
                after=[kernel.id for kernel in changed_kernel.after],
            )
            for changed_kernel in difference.changed_kernels
        ],
        times=next((CallTimesItem.of_measured(call) for call in calls), None),
    )


def _effect(effect: Effect, alignment: Alignment) -> EffectItem:
    item = effect_item(effect)
    return (
        item if effect.line is None else structs.replace(item, file=alignment.own_file(effect.line))
    )


def effect_item(effect: Effect) -> EffectItem:
    return EffectItem.of(effect, **placed(effect.line))
