"""`tcw profile --markdown`: the verdict, the causes with their lines and fixes, then, folded, the
regions and where the time of a call goes."""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.trace.records import ModeRow, Settings
from tcw.viewers.file_names import FileNames
from tcw.viewers.kit.figures import unit_of
from tcw.viewers.kit.lines import TextLine
from tcw.viewers.markdown import PROFILE_MARKER
from tcw.viewers.markdown.comment import Comment, code, escaped
from tcw.viewers.markdown.items import item, item_title
from tcw.viewers.markdown.report import WIDTH, command, elsewhere, environment_items
from tcw.viewers.recording import Recording
from tcw.viewers.summary import summarise
from tcw.viewers.summary.profile import Profile, profiles_of
from tcw.viewers.summary.profile.causes.cause import Cause, first_of_groups
from tcw.viewers.summary.profile.profile_verdict import doubts
from tcw.viewers.tables.profile_lines import ceilings_lines, memory_lines
from tcw.viewers.text.explain import warning_lines
from tcw.viewers.text.header import file_name, settings_words
from tcw.viewers.text.lines import to_text
from tcw.viewers.text.profile import first_line
from tcw.viewers.text.profile.results import (
    accounts_lines,
    kernels_lines,
    modes_section,
    precision_section,
    regions_table,
    trials_section,
)
from tcw.viewers.words import plural

WHOLE = 8
"""Causes shown with line and fix; the rest are listed."""
_MARKS = {"failed": "❌", "lost": "❌", "won": "✅", "neutral": "·"}


def profile_markdown(recording: Recording) -> str:
    """Of a recording with a profiled call."""
    profiles = profiles_of(recording)
    first = profiles[0]
    summary = summarise(first.index.recording)
    names = summary.names
    several = len(profiles) > 1
    mark = _MARKS[first.verdict.tone]
    said = escaped("; ".join(_verdict(profile, names, several) for profile in profiles))
    comment = Comment(PROFILE_MARKER, f"{mark} tcw profile: {code(file_name(summary))}: {said}")
    for profile in profiles:
        comment.add([f"{escaped(_detail(profile, several))}\\"], "the times")
    comment.add([escaped(" · ".join(settings_words(summary))), ""], "the settings")
    wrong = [*summary.missing, *(d for profile in profiles for d in doubts(profile.index))]
    for words in dict.fromkeys(wrong):
        comment.add([f"> {escaped(words)}", ""], "what to doubt")
    warned = [f"- {escaped(line.text)}" for line in warning_lines(summary)]
    comment.add([*warned, ""] if warned else [], "warnings")
    for one in profiles:
        _causes(comment, one, names, first.index.recording.settings, several)
    _text(comment, "modes", modes_section(first.modes or tuple(recording.all(ModeRow)), WIDTH))
    for one in profiles:
        of = f", {one.engine}" if several else ""
        for title, lines in _tables(one, names):
            _text(comment, title + of, lines)
    comment.fold("environment", environment_items(recording, "profile"))
    return comment.text(elsewhere(recording))


def _verdict(profile: Profile, names: FileNames, several: bool) -> str:
    return " ".join(first_line(profile, names, profile.engine if several else "").text.split())


def _detail(profile: Profile, several: bool) -> str:
    head = profile.head
    call = f"call {head.call}, {head.what}, by the {head.clock}'s clock"
    return " · ".join(
        filter(None, (profile.engine if several else "", profile.verdict.detail.text, call))
    )


def _causes(
    comment: Comment, profile: Profile, names: FileNames, settings: Settings | None, several: bool
) -> None:
    if several and profile.causes:
        comment.add([f"**{escaped(profile.engine)}**", ""], profile.engine)
    for number, cause in enumerate(profile.causes[:WHOLE], 1):
        tries = [] if settings is None else _tries(cause, settings, several)
        comment.add(item(number, cause, names, tries), cause.title)
    rest = profile.causes[WHOLE:]
    if rest:
        items = [f"- {item_title(cause, names)}" for cause in rest]
        comment.fold(plural(len(rest), "more cause"), items)
    if not profile.causes:
        comment.add(["No region differs by more than its noise.", ""], "the causes")


def _tries(cause: Cause, settings: Settings, several: bool) -> list[str]:
    return [
        f"Try: {code(command(settings, suggestion.options, 'profile'))}"
        for suggestion in first_of_groups(cause.suggestions)
        if suggestion.options and not (several and "--engine" in suggestion.options)
    ]


def _tables(profile: Profile, names: FileNames) -> list[tuple[str, list[TextLine]]]:
    unit = unit_of(profile.head)
    return [
        ("regions", regions_table(profile, names, WIDTH, "difference", None, unit)),
        ("account", accounts_lines(profile, WIDTH, unit)),
        ("kernels and calls", kernels_lines(profile, names, WIDTH, None, unit)),
        ("tried", trials_section(profile.trials)),
        ("precision", precision_section(profile, WIDTH)),
        ("memory", memory_lines(profile.head)),
        ("machine", ceilings_lines(profile.ceilings)),
    ]


def _text(comment: Comment, title: str, lines: Sequence[TextLine]) -> None:
    rows = to_text(lines, WIDTH).strip("\n").splitlines()
    if rows:
        comment.fold_text(title, rows)
