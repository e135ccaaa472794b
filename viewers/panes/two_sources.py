"""The sources of two recordings, next to each other: the lines of one stand for those of the other.

A line that both have is one thing: it has the ref of the run's, so that both sides light up
together, and with them what the run made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tcw.compiler.trace import refs
from tcw.viewers.kit.spans import Span
from tcw.viewers.panes import source
from tcw.viewers.panes.effects import looked_at
from tcw.viewers.panes.rows import Content, Row, Rows, empty
from tcw.viewers.panes.view import View
from tcw.viewers.panes.what_if import difference_of, nothing
from tcw.viewers.summary.differences.alignment import Alignment

_SIGNS: dict[str, Span] = {"removed": ("−", "bad"), "added": ("+", "good")}


def base(view: View, width: int) -> Content:
    """The base's source: lines that the run changed or removed stand out."""
    difference = difference_of(view)
    if difference is None or view.base is None:
        return nothing("before", width)
    alignment = difference.alignment
    name = source.file_of(_looking(view, alignment))
    file = alignment.base_file(name)
    lines = difference.base.source(file)
    if not lines:
        why = f"the base has no {view.derived.names.short(name)}"
        return Content("before", rows=empty(width, why))
    known = alignment.lines(file)
    selected = _selected(view, name, known)
    here = replace(view, derived=view.base, ref=refs.source(file, selected), lit={}, base=None)
    found = source.content(here, width)
    after = difference.run.source(name)
    row_refs = [
        refs.source(name, known[number]) if number in known else ""
        for number in range(1, len(lines) + 1)
    ]

    def make(index: int) -> Row:
        row = found.rows[index]
        other = known.get(index + 1, 0)
        changed = not other or after[other - 1] != lines[index]
        return replace(_tinted(row, "removed") if changed else row, ref=row_refs[index])

    rows = Rows(len(found.rows), make, row_refs)
    return replace(found, name="before", rows=rows, tracks=bool(selected), centred=True)


def run(view: View, width: int) -> Content:
    """The run's source: lines that it changed or added stand out."""
    difference = difference_of(view)
    if difference is None:
        return nothing("after", width)
    alignment = difference.alignment
    here = _looking(view, alignment)
    found = source.content(here, width)
    name = source.file_of(here)
    file = alignment.base_file(name)
    before, after = difference.base.source(file), difference.run.source(name)
    if not before or not isinstance(found.rows, Rows):
        return replace(found, name="after")
    origin = {number: one for one, number in alignment.lines(file).items()}

    def make(index: int) -> Row:
        row = found.rows[index]
        other = origin.get(index + 1, 0)
        changed = not other or before[other - 1] != after[index]
        return _tinted(row, "added") if changed else row

    rows = Rows(len(found.rows), make, found.rows.refs)
    return replace(found, name="after", rows=rows, tracks=bool(here.ref), centred=True)


def _looking(view: View, alignment: Alignment) -> View:
    """Without a selection, at the first line of the run that the effect concerns."""
    effect = looked_at(view)
    if view.ref or effect is None or effect.line is None:
        return view
    line = effect.line
    if not line.gone:
        return replace(view, ref=refs.source(line.file, line.line), lit={})
    known = alignment.lines(alignment.base_file(line.file))
    near = max((one for number, one in known.items() if number < line.line), default=1)
    return replace(view, ref=refs.source(line.file, near), lit={})


def _selected(view: View, name: str, known: Mapping[int, int]) -> int:
    """The base's current line; 0 for none."""
    effect = looked_at(view)
    if not view.ref:
        line = effect.line if effect is not None else None
        if line is not None and line.gone and line.file == name:
            return line.line
    for ref in (view.ref, *view.lit):
        if refs.kind(ref) == "src" and refs.split_source(ref)[0] == name:
            number = refs.split_source(ref)[1]
            return next((one for one, other in known.items() if other == number), 0)
    return 0


def _tinted(row: Row, tint: str) -> Row:
    """A line with a sign beside its number, for readers without colours."""
    number, *rest = row.gutter
    free = next((at for at, (words, _) in reversed([*enumerate(rest)]) if words == " "), 0)
    rest[free] = _SIGNS[tint]
    return replace(row, gutter=(number, *rest), tint=tint)  # type: ignore[arg-type]
