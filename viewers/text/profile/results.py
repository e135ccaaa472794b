"""Other results than times: precision of each kernel, other modes, what was tried."""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.trace.precision import error_over_bound, worst_output
from tcw.compiler.trace.records import KernelPrecision, ModeRow, Trial
from tcw.viewers.collected import grouped
from tcw.viewers.kernel_names import KernelNames
from tcw.viewers.kit.lines import BLANK, TextLine, line
from tcw.viewers.kit.table import heading
from tcw.viewers.summary.profile import Profile
from tcw.viewers.summary.profile.causes.cause import chosen
from tcw.viewers.tables.modes import modes_lines, notes_lines
from tcw.viewers.tables.precision import precision_lines
from tcw.viewers.tables.trials import trial_lines
from tcw.viewers.words import listed, plural

_WORST = 4
"""Kernels listed, besides the first that is wrong."""
_REASONS, _NAMES = 4, 3
"""Maximum number of reasons for not comparing, and kernels listed for each."""


def precision_section(profile: Profile, width: int) -> list[TextLine]:
    """How many kernels were compared, the largest errors, and the first wrong kernel."""
    found = profile.precision
    if not found:
        return []
    compared = [one for one in found if one.within is not None]
    wrong = [one for one in compared if one.within is False]
    words = f"{plural(len(compared), 'kernel')} against float64"
    words += f"; {len(wrong)} wrong" if wrong else ", all within bounds"
    if len(found) > len(compared):
        words += f"; {len(found) - len(compared)} not compared"
    first = wrong[:1]
    shown = tuple(dict.fromkeys((*first, *sorted(compared, key=_excess, reverse=True)[:_WORST])))

    def name(one: KernelPrecision) -> str:
        return _name(profile, one)

    def note(one: KernelPrecision) -> str:
        worst = worst_output(one)
        return "the first that is wrong" if one in first else worst.note if worst else ""

    lines = [BLANK, heading("precision", words), *precision_lines(shown, name, width, 2, note)]
    return [*lines, *_not_compared(profile, found)]


def _not_compared(profile: Profile, found: Sequence[KernelPrecision]) -> list[TextLine]:
    """The kernels that were not compared, by reason."""
    left = grouped((one.reason, _name(profile, one)) for one in found if one.within is None)
    lines = []
    for reason, names in list(left.items())[:_REASONS]:
        which = listed(names, _NAMES)
        why = f"{which}: {reason}" if reason else which
        lines.append(line(("  not compared: ", "dim"), (why, "dim"), hang=4))
    if len(left) > _REASONS:
        lines.append(line((f"  … {plural(len(left) - _REASONS, 'reason')} more", "dim")))
    return lines


def _excess(one: KernelPrecision) -> float:
    worst = worst_output(one)
    return error_over_bound(worst) if worst is not None else 0.0


def _name(profile: Profile, one: KernelPrecision) -> str:
    recording = profile.index.recording
    kernel = recording.kernels.get(one.kernel)
    return KernelNames(recording).title(kernel) if kernel else one.kernel


def modes_section(rows: tuple[ModeRow, ...], width: int) -> list[TextLine]:
    if not rows:
        return []
    head = heading("modes", "each in its own process, with eager in the same rounds")
    return [BLANK, head, *modes_lines(rows, width, 2), *notes_lines(rows)]


def trials_section(trials: tuple[Trial, ...]) -> list[TextLine]:
    if not trials:
        return []
    lines = [BLANK, heading("tried", plural(sum(one.kept for one in trials), "change") + " kept")]
    for one in trials:
        lines += trial_lines(one)
    best = chosen(trials)
    if best is not None:
        lines.append(line(("   use it with: ", "dim"), best.command, hang=3))
        if best.diff:
            said = "your files are unchanged; --patch FILE writes the edits as a patch"
            lines.append(line((f"   {said}", "dim"), hang=3))
    return lines
