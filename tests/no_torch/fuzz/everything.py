"""Opens all that can be seen of a trace: every section, pane, bar, export and report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tcw.compiler.trace.provenance import Provenance
from tcw.compiler.trace.records import Step, Waiting
from tcw.viewers import json_report
from tcw.viewers.chrome_trace import chrome_trace
from tcw.viewers.drawing.export import ExportError, export
from tcw.viewers.json_diff import diff_report
from tcw.viewers.json_text import json_text
from tcw.viewers.kit.spans import Line
from tcw.viewers.navigator import Navigator
from tcw.viewers.panes import autograd as autograd_pane
from tcw.viewers.panes import chrome, decision_bar, fusion, memory_chart, timeline, waterfall
from tcw.viewers.panes.arrangement import ARRANGEMENTS, PANES, arrangement_for
from tcw.viewers.panes.picture import Picture
from tcw.viewers.panes.rows import Content, Row
from tcw.viewers.panes.view import LANGUAGES, Derived, View
from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences import difference
from tcw.viewers.summary.profile.rows import SORTS
from tcw.viewers.text.diff import diff_lines
from tcw.viewers.text.explain import explain
from tcw.viewers.text.lines import to_text
from tcw.viewers.text.profile import profile
from tcw.viewers.text.sections import DETAILS, SECTIONS
from tcw.viewers.timeline import Playhead, Track

ROWS = 60
"""Rows of a pane that are made: a screenful; the rest is made as it scrolls into sight."""
COMPILES = 2
"""Compiles of a part that are looked at."""
DETAILED = tuple(f"{name}={detail}" for name, all in DETAILS.items() for detail in all)


def open_everything(path: Path, folder: Path) -> int:
    """Raises whatever is wrong; the number of things that were opened, for a trace with any.
    Exports are written into `folder`."""
    recording = Recording.open(path)
    return sum(1 for _ in _opened(recording, path, folder))


def _opened(recording: Recording, path: Path, folder: Path) -> Iterator[None]:
    for width in (100, 80):
        _prints(to_text(explain(recording, width, show=(*SECTIONS, *DETAILED)), width))
        yield
    for sort in SORTS:
        _prints(to_text(profile(recording, sort=sort), 100))
        yield
    assert json.loads(json_text(json_report.report(recording)))
    yield
    json.dumps(chrome_trace(recording), allow_nan=False)
    yield
    runs = list(recording.runs.values())
    base, run = (runs[0], runs[-1]) if runs else (recording, recording)
    found = difference(base, run)
    _prints(to_text(diff_lines(found, "a", "b", 100, code=True), 100))
    json_text(diff_report(found, "a", "b"))
    yield
    for whole in runs or [recording]:
        parts = list(whole.engines.values()) or [whole]
        for part in parts:
            yield from _panes(recording, whole, part, folder)
    playhead = Playhead(recording)
    for share in (3, 2):
        place = len(recording.records) // share
        if place:
            here = playhead.at(place)
            part = next(reversed(here.runs.values()), here)
            part = next(iter(part.engines.values()), part)
            yield from _panes(recording, part, part, folder, place)


def _panes(
    recording: Recording, whole: Recording, part: Recording, folder: Path, playhead: int = 0
) -> Iterator[None]:
    """What the workbench shows of one engine's part of a run."""
    facts = Derived(part, Provenance(part.records), whole)
    facts.trace = recording
    view = View(facts, track=Track(recording.records), playhead=playhead)
    if whole.engines:
        facts.of_engines = {
            name: facts if engine is part else Derived(engine, Provenance(engine.records), whole)
            for name, engine in whole.engines.items()
        }
        view.engine = next(name for name, engine in whole.engines.items() if engine is part)
    first = next(iter(recording.runs.values()), None)
    if first is not None:
        view.base = Derived(first, Provenance(first.records), recording)
    steps = part.all(Step)
    view.step = steps[len(steps) // 2] if steps else None
    navigator = Navigator(view)
    navigator.grown()
    compiles = list(facts.pieces)[:COMPILES] if not playhead else []
    for compile_id in compiles or [view.compile_id]:
        navigator.compile(compile_id)
        for name in ARRANGEMENTS:
            yield from _arrangement(navigator, name)
    for waiting in part.all(Waiting)[-3:]:
        arrangement_for(view, waiting)
        yield
    if playhead:
        return
    view = navigator.view
    for language in LANGUAGES:
        view.language = language
        for pane in ("kernel", "loops", "beside", "kernels"):
            _shows(PANES[pane](view, 60))
            yield
    with suppress(ExportError):
        export(view, folder / "graph.dot", "dot")
    yield


def _arrangement(navigator: Navigator, name: str) -> Iterator[None]:
    navigator.go(name)
    shape = ARRANGEMENTS[name]
    columns = (*shape.columns, *shape.wide)
    panes = [slot.pane for column in columns for slot in column.slots]
    panes += [slot.pane for slot in (shape.top, *shape.narrow) if slot is not None]
    view = navigator.view
    for pane in dict.fromkeys(panes):
        for width in (30, 100):
            content = PANES[pane](view, width)
            rows = _shows(content)
            yield
        for row in (*rows[:2], *rows[-2:]):
            navigator.moved(row)
        yield
    for line in (
        chrome.header(view, "running", 100),
        *timeline.timeline(view, 100, name),
    ):
        _line(line)
    timeline.at(view, 100, 50, name)
    for bar in (
        decision_bar.rows,
        chrome.selection,
        fusion.verdict,
        waterfall.selection,
        memory_chart.verdict,
        autograd_pane.reason,
    ):
        _rows(bar(view, 80))
    _shows(chrome.spine(view, 30))
    navigator.step(1, panes[0])
    yield


def _shows(content: Content) -> list[Row]:
    """The rows of a pane that a screen would show; those that the cursor can stand on."""
    if isinstance(content, Picture):
        content.lay_out()
    count = len(content.rows)
    rows = [content.rows[at] for at in range(min(count, ROWS))]
    if count > ROWS:
        rows.append(content.rows[count - 1])
    assert len(content.refs) == count
    _line(content.right)
    return [row for row in _rows(rows) if row.key or row.ref]


def _rows(rows: list[Row]) -> list[Row]:
    for row in rows:
        _line((*row.gutter, *row.body, *row.right))
    return rows


def _line(line: Line) -> None:
    for words, _ in line:
        assert words.isprintable(), f"not printable: {words[:80]!r}"


def _prints(text: str) -> None:
    assert all(line.isprintable() for line in text.split("\n")), "not printable"
