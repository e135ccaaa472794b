"""Words for the differences of two recordings, shared by the text and the screen."""

from __future__ import annotations

from tcw.viewers.summary.budget import value_text
from tcw.viewers.summary.differences.decision_changes import DecisionChange, DecisionChanges, Veto
from tcw.viewers.summary.differences.effects import Effect
from tcw.viewers.summary.differences.figures import Figure
from tcw.viewers.summary.differences.kernel_changes import KernelChange
from tcw.viewers.summary.differences.measured import MeasuredDifference
from tcw.viewers.words import bytes_change, plural

CHANGES: dict[str, tuple[str, str]] = {
    "vetoed": ("✗", "vetoed"),
    "forced": ("+", "forced"),
    "overridden": ("*", "overridden"),
    "refused": ("!", "refused"),
    "undone": ("↺", "back to the engine's choice"),
    "other": ("~", "fell otherwise"),
    "new": ("+", "new"),
    "gone": ("-", "gone"),
}
"""Change of a decision -> its glyph and its words."""


TONE_GLYPHS = {"bad": "✗", "good": "✓", "neutral": "·"}


def effect_words(effect: Effect) -> str:
    """What differs, and how often, without its place."""
    return f"{effect.words} ×{effect.count}" if effect.count > 1 else effect.words


def change_text(figure: Figure) -> str:
    """`1 → 2`; or why it cannot be compared."""
    if figure.not_compared:
        return f"not compared   ({figure.not_compared})"
    before, after = figure.before, figure.after
    if figure.unit == "bytes" and before is not None and after is not None:
        return bytes_change(int(before), int(after))
    return " → ".join(value_text(one, figure.unit, "unknown") for one in (before, after))


def change_words(change: DecisionChange) -> tuple[str, str]:
    """Its glyph and its outcome."""
    glyph, words = CHANGES[change.change]
    if change.change in ("other", "overridden", "undone"):
        return glyph, f"{change.before} → {change.after}" if change.before else change.after
    if change.change == "new":
        return glyph, "new partner" if change.partner else "new"
    if change.change == "gone" and change.kind == "fuse":
        return glyph, "no longer fused"
    return glyph, words


def others_words(changes: DecisionChanges) -> str:
    """`18 others as before, 7 concern loops that exist in one run only`."""
    said = [f"{plural(changes.as_before, 'other')} as before"] if changes.as_before else []
    if changes.followed:
        verb = "concerns" if changes.followed == 1 else "concern"
        said.append(f"{changes.followed:,} {verb} loops that exist in one run only")
    return ", ".join(said) or "no others"


def kind_words(change: KernelChange) -> str:
    """`changed`; `split: 1 kernel → 2 kernels`."""
    before, after = len(change.before), len(change.after)
    if before and after and (before, after) != (1, 1):
        return f"{change.kind}: {plural(before, 'kernel')} → {plural(after, 'kernel')}"
    return change.kind


def kernel_words(change: KernelChange) -> str:
    """`changed, +8 −2 lines`."""
    if not change.generated:
        return kind_words(change)
    return f"{kind_words(change)}, +{change.code.added} −{change.code.removed} lines"


def call_words(measured: MeasuredDifference) -> str:
    """`a call takes 6.16 → 5.02 ms, -1.14 ms ±0.08, in noise (20 turns)`."""
    record = measured.record
    if measured.outcome == "not measured":
        return f"call time not measured: {record.reason}"
    before, after, unit = measured.times
    how: str = measured.outcome
    if how != "in noise":
        how = f"{measured.share_text} {how}"
    turns = plural(record.pairs, "turn")
    return f"a call takes {before} → {after} {unit}, {measured.change_text}: {how} ({turns})"


def veto_words(veto: Veto) -> tuple[str, str]:
    """The sentence on a veto, and its evidence."""
    said = {
        True: "the veto holds: no shared loop nest",
        False: "the veto does not hold",
        None: "unknown whether the veto holds",
    }
    return said[veto.holds], veto.evidence
