"""The user's source: badges where it broke or recompiled, tints where a break's columns are."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import Location
from tcw.viewers.kit.cells import keep_end
from tcw.viewers.kit.highlight import highlight
from tcw.viewers.kit.spans import Line, Role, Span, width_of, with_role
from tcw.viewers.panes import breaks, profile_source
from tcw.viewers.panes.rows import Content, Row, Rows, empty, text_row
from tcw.viewers.panes.stepping import attempt_words, state_of
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain, plain_column
from tcw.viewers.summary.breaks import BreakSite

Badge = tuple[str, Role]
_MODULE = re.compile(r"class\s+\w+\(.*\bModule\b")
_MODEL = re.compile(r"(?:def\s+)?model\b\s*[=:(]")


def file_of(view: View) -> str:
    """The file shown: the selection's, that of its first counterpart, or the main file."""
    for ref in (view.ref, *view.lit):
        if refs.kind(ref) == "src":
            file = refs.split_source(ref)[0]
            if view.recording.source(file):
                return file
    return view.derived.main_file


TITLE = 15
"""Cells of a title besides the file's name and the words at the right."""
LEAST_NAME = 8


def content(view: View, width: int, annotate: bool = False) -> Content:
    """`annotate`: explain the current break below its line."""
    file = file_of(view)
    lines = view.recording.source(file)
    name = view.derived.names.short(file)
    if not lines:
        why = f"the trace has no text of {name}" if file else "no source yet"
        return Content("source", name, rows=empty(width, why))
    drawn = _Drawn(view, file, lines)
    sites = {site.place.line: site for site in view.summary.breaks if site.place.file == file}
    chosen = breaks.site_of(view) if annotate else None
    at = chosen.place.line if chosen and chosen.place.file == file else 0
    at = at if at <= len(lines) else 0

    def make(index: int) -> Row:
        if at and index == at:
            assert chosen is not None
            return drawn.note(chosen)
        number = index + 1 if not at or index < at else index
        body = drawn.code(number)
        if number in sites:
            body = _tint(body, sites[number], lines[number - 1])
        return drawn.row(number, body)

    row_refs = [*drawn.refs]
    if at:
        row_refs.insert(at, "")
    rows = Rows(len(row_refs), make, row_refs)
    hottest = profile_source.hottest_line(view, file)
    selected = hottest or _selected_line(view, file)
    said = [profile_source.title(view)] if drawn.timed else []
    said += [f"line {selected}"] if selected and not drawn.timed else []
    right: Line = tuple((words, "dim") for words in said)
    start = refs.source(file, selected or _first_line(view, file, lines))
    return Content(
        "source",
        _subject(name, right, width),
        right,
        rows,
        start,
        tracks=bool(hottest),
        centred=bool(hottest) or not selected,
    )


def stepped(view: View, width: int) -> Content:
    """The source of the function that Dynamo traces: the columns of the instruction stand out, the
    title says how it came here."""
    state = state_of(view)
    if state is None:
        return content(view, width)
    place = state.step.location
    lines = view.recording.source(place.file) or view.derived.whole.source(place.file)
    name = plain(view.derived.names.short(place.file))
    chain = plain(state.chain)
    parts = (chain, attempt_words(view, state), profile_source.title(view))
    words = "  ·  ".join(part for part in parts if part)
    right: Line = ((words, "dim"),)
    if not lines:
        why = f"the trace has no text of {name}:{place.line}"
        return Content("source", name, right, empty(width, why))
    drawn = _Drawn(view, place.file, lines)
    drawn.badges[place.line] = ("▸", "accent")

    def make(index: int) -> Row:
        number = index + 1
        body = drawn.code(number)
        if place.line <= number <= (place.end_line or place.line):
            body = _here(body, place, number, lines[index])
        return drawn.row(number, body)

    start = refs.source(place.file, place.line)
    subject = _subject(name, right, width)
    rows = Rows(len(lines), make, drawn.refs)
    return Content("source", subject, right, rows, start, tracks=True, centred=True)


class _Drawn:
    """The lines of a file as every source pane draws them: number, badge, measured time, code."""

    def __init__(self, view: View, file: str, lines: Sequence[str]) -> None:
        self.badges = _badges(view, file)
        self.refs = [refs.source(file, number) for number in range(1, len(lines) + 1)]
        self._times = profile_source.column(view, file)
        self._code = highlight("\n".join(lines), "python")

    @property
    def timed(self) -> bool:
        return self._times is not None

    def code(self, number: int) -> Line:
        """A line's code, from its first column on."""
        return self._code[number - 1] if number <= len(self._code) else ()

    def row(self, number: int, body: Line) -> Row:
        """`body`: the line's code, tinted."""
        glyph: Span = self.badges.get(number) or (" ", "text")
        time: Span = (" ", "text")
        if self._times is not None:
            time = self._times.get(number, profile_source.BLANK)
        gutter: Line = ((f"{number:>5}", "faint"), glyph, time)
        ref = self.refs[number - 1]
        return Row(gutter=gutter, body=body, ref=ref, key=ref)

    def note(self, site: BreakSite) -> Row:
        """What stands below the line of a break."""
        column = site.place.column or 0
        code = f": {site.gb}" if site.gb else ""
        return text_row(
            (" " * column + "└─ ", "bad"),
            (site.title + code, "bad"),
            gutter=((" " * (6 + profile_source.WIDTH if self.timed else 7), "text"),),
        )


def _subject(name: str, right: Line, width: int) -> str:
    """A file's name in the title, cut at its start."""
    return keep_end(plain(name), max(LEAST_NAME, width - TITLE - width_of(right)))


def _here(body: Line, place: Location, number: int, line: str) -> Line:
    """The columns of an instruction in one of its lines; recorded columns are bytes of UTF-8."""
    if place.column is None or place.end_column is None:
        return body
    data = line.encode("utf-8", "replace")
    first = place.column if number == place.line else len(data) - len(data.lstrip())
    last = place.end_column if number == (place.end_line or place.line) else len(data)
    low, high = (
        plain_column(line, len(data[:column].decode("utf-8", "ignore"))) for column in (first, last)
    )
    return with_role(body, low, high, "here")


def _selected_line(view: View, file: str) -> int:
    lines = [refs.split_source(ref) for ref in (view.ref, *view.lit) if refs.kind(ref) == "src"]
    return next((line for name, line in lines if name == file), 0)


def _first_line(view: View, file: str, lines: Sequence[str]) -> int:
    """Where the reader starts: the first line that the compile has a node for; without one, the
    first module that the file defines, or where it makes its model."""
    graph = view.graph()
    nodes = graph.nodes if graph else ()
    known = [n.location.line for n in nodes if n.location and n.location.file == file]
    if known:
        return min(known)
    for pattern in (_MODULE, _MODEL):
        for number, line in enumerate(lines, start=1):
            if pattern.match(line):
                return number
    return 1


def _badges(view: View, file: str) -> dict[int, Badge]:
    badges: dict[int, Badge] = {}
    for cause in view.summary.recompiles:
        if cause.place is not None and cause.place.file == file:
            badges[cause.place.line] = ("↻", "warn")
    for site in view.summary.breaks:
        if site.place.file == file:
            badges[site.place.line] = ("✗", "bad")
    return badges


def _tint(body: Line, site: BreakSite, line: str) -> Line:
    if site.place.column is None or site.place.end_column is None:
        return body
    start = plain_column(line, site.place.column)
    return with_role(body, start, plain_column(line, site.place.end_column), "bad-range")
