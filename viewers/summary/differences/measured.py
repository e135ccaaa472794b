"""What the timing of two runs shows: faster, slower, or no difference beyond the noise; and the
verdict on the change in one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tcw.compiler.trace.records import Kernel, Timed, WhatIf
from tcw.viewers.kit.figures import TimeUnit, readable_unit
from tcw.viewers.summary.differences.kernel_changes import KernelChange
from tcw.viewers.summary.numerics import not_comparable, off_float64
from tcw.viewers.words import error_text, percent

if TYPE_CHECKING:
    from tcw.viewers.summary.differences import Difference


MeasuredOutcome = Literal["faster", "slower", "in noise", "not measured"]

SCOPES = {"kernel": "kernel alone", "graph": "compiled graph", "call": "whole call"}


@dataclass(frozen=True)
class MeasuredDifference:
    """One `WhatIf`, with the kernels it measured."""

    record: WhatIf
    change: KernelChange | None = None
    """None for a graph or a call."""

    @property
    def outcome(self) -> MeasuredOutcome:
        record = self.record
        if record.before is None or record.after is None:
            return "not measured"
        if abs(record.difference) <= record.noise:
            return "in noise"
        return "faster" if record.difference < 0 else "slower"

    @property
    def scope(self) -> str:
        kernels = max(len(self.record.base_kernels), len(self.record.run_kernels))
        if self.record.scope == "kernel" and kernels > 1:
            return "kernels alone"
        return SCOPES[self.record.scope]

    @property
    def output(self) -> str:
        """`equal to the base, bit for bit`."""
        record = self.record
        if record.equal:
            return "equal to the base, bit for bit"
        if record.equal is None:
            return "not compared"
        if record.within is None and record.note:
            return not_comparable(record)
        if record.max_error is None:
            return "differs from the base"
        words = f"max error {error_text(record.max_error)} against the base"
        off = off_float64(record)
        return f"{words} ({off})" if off else words

    @property
    def both(self) -> tuple[Timed, Timed]:
        """Before and after, where both were timed."""
        before, after = self.record.before, self.record.after
        assert before is not None
        assert after is not None
        return before, after

    @property
    def unit(self) -> TimeUnit:
        """Of both times, their difference and its noise."""
        return readable_unit(max(timed.median for timed in self.both))

    @property
    def times(self) -> tuple[str, str, str]:
        """Before and after, then the unit: `135.0`, `120.8`, `µs`."""
        before, after = (self.unit.measured(timed.median) for timed in self.both)
        return before, after, self.unit.name

    @property
    def change_text(self) -> str:
        """`-14.3 µs ±0.9`."""
        record = self.record
        unit = self.unit
        sign = "-" if record.difference < 0 else "+"
        size = unit.measured(abs(record.difference))
        return f"{sign}{size} {unit.name} ±{unit.measured(record.noise)}"

    @property
    def share_text(self) -> str:
        """The difference as a part of the base's time."""
        before = self.record.before
        whole = before.median if before is not None else 0.0
        return percent(abs(self.record.difference) / whole if whole else 0.0)


def measured_of(
    records: Sequence[WhatIf], kernels: Sequence[KernelChange]
) -> tuple[MeasuredDifference, ...]:
    """The last measurement of each thing: kernels first, then graphs, then calls; within each, the
    largest differences first, then what could not be measured."""
    found: dict[tuple[object, ...], MeasuredDifference] = {}
    for record in records:
        key = (record.scope, record.graph, record.base_kernels, record.run_kernels)
        sides = set(record.base_kernels), set(record.run_kernels)
        about = (
            kernel for kernel in kernels if sides == ({*_ids(kernel.before)}, {*_ids(kernel.after)})
        )
        change = next(about, None)
        found[key] = MeasuredDifference(record, change if record.scope == "kernel" else None)
    order = ("kernel", "graph", "call")
    return tuple(
        sorted(
            found.values(),
            key=lambda difference: (
                difference.outcome == "not measured",
                order.index(difference.record.scope),
                difference.outcome == "in noise",
                -abs(difference.record.difference),
            ),
        )
    )


def _ids(kernels: Sequence[Kernel]) -> list[str]:
    return [kernel.id for kernel in kernels]


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
    timed = [
        measured_difference
        for measured_difference in difference.measured
        if measured_difference.outcome != "not measured"
    ]
    if timed:
        # one kernel in the noise does not contradict a graph measured as slower
        first = next(
            (
                measured_difference
                for measured_difference in timed
                if measured_difference.outcome != "in noise"
            ),
            timed[0],
        )
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
    overrides = [setting for setting in difference.settings if setting.name.count("/") > 2]
    others = [
        setting
        for setting in difference.settings
        if setting not in overrides and setting.name != "file"
    ]
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
