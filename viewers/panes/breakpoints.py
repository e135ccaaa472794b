"""Breakpoints: their conditions in words, their list, the one for a row; and the overrides."""

from __future__ import annotations

from msgspec import structs

from tcw.compiler.protocol.commands import Breakpoint
from tcw.compiler.protocol.stops import in_words
from tcw.compiler.trace import refs
from tcw.compiler.trace.records import End, Waiting
from tcw.viewers.kit.cells import keep_end, pad
from tcw.viewers.kit.spans import Line, Role
from tcw.viewers.panes.rows import Content, Row, empty, text_row
from tcw.viewers.panes.targets import ToBreakpoint, ToOverride, ToStage
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain
from tcw.viewers.words import plural

_ANY = 0
KINDS: tuple[tuple[str, Breakpoint], ...] = (
    ("Break at graph break", Breakpoint(number=_ANY, kind="break")),
    ("Break at first rejection", Breakpoint(number=_ANY, kind="rejection", once=True)),
    ("Break at each rejected fusion", Breakpoint(number=_ANY, kind="rejection")),
    ("Break at recompile", Breakpoint(number=_ANY, kind="recompile")),
    ("Break at cache miss", Breakpoint(number=_ANY, kind="miss")),
    (
        "Break at a decision over … bytes",
        Breakpoint(number=_ANY, kind="decision", number_name="bytes", at_least=1),
    ),
    ("Break at fusion decisions", Breakpoint(number=_ANY, kind="decision", decision="fuse")),
    (
        "Break at save or recompute decisions",
        Breakpoint(number=_ANY, kind="decision", decision="save"),
    ),
    ("Break at op or node …", Breakpoint(number=_ANY, kind="op")),
    ("Break at autograd", Breakpoint(number=_ANY, kind="stage", stage="autograd")),
    ("Break at lowering", Breakpoint(number=_ANY, kind="stage", stage="lowering")),
    ("Break at fusion", Breakpoint(number=_ANY, kind="stage", stage="fusion")),
    ("Break at memory planning", Breakpoint(number=_ANY, kind="stage", stage="memory")),
    ("Break at code generation", Breakpoint(number=_ANY, kind="stage", stage="codegen")),
)
"""Breakpoints of the palette, which need no cursor; `…` asks for a word first."""


def words(one: Breakpoint) -> str:
    """`block.py:19`, `decision fuse, saved_bytes ≥ 65536`; plain."""
    return plain(in_words(one))


def content(view: View, width: int) -> Content:
    rows = [_row(view, one) for one in view.breakpoints]
    if not rows:
        why = "no breakpoint is set"
        rows = empty(
            width,
            why,
            "b sets one on the line, node or decision under the cursor; : lists all kinds",
        )
    on = sum(one.enabled for one in view.breakpoints)
    right: Line = ((f"{on} of {len(view.breakpoints)} on", "dim"),) if view.breakpoints else ()
    return Content("breakpoints", "", right, rows)


def _row(view: View, one: Breakpoint) -> Row:
    hits = sum(w.breakpoint == one.number for w in view.recording.all(Waiting))
    met = f"   stopped it {plural(hits, 'time')}" if hits else ""
    return text_row(
        (" ● " if one.enabled else " ○ ", "accent" if one.enabled else "faint"),
        (pad(str(one.number), 4), "dim"),
        (words(one), "text" if one.enabled else "dim"),
        (met, "dim"),
        right=(("⏎ off, D delete " if one.enabled else "⏎ on, D delete ", "faint"),),
        at=ToBreakpoint(one.number),
        selects=refs.source(one.file, one.line) if one.kind == "line" else "",
    )


def of_row(view: View, row: Row, number: int) -> Breakpoint | None:
    """A breakpoint on what a row shows; None if that can have none."""
    if isinstance(row.at, ToStage):
        stage = row.at.name
        known = {"kernels": "codegen", "guards": "capture"}
        return Breakpoint(number=number, kind="stage", stage=known.get(stage, stage))  # type: ignore[arg-type]
    if decision := row.decision_shown:
        return Breakpoint(number=number, kind="decision", id=decision)
    ref = row.ref or row.selects
    if not ref:
        return None
    if refs.kind(ref) == "src":
        file, line = refs.split_source(ref)
        return Breakpoint(number=number, kind="line", file=file, line=line)
    if refs.kind(ref) == "fx":
        return Breakpoint(number=number, kind="op", op=refs.split_node(ref)[1])
    return None


def same(one: Breakpoint, other: Breakpoint) -> bool:
    """Whether both stop at the same things."""
    plain_one = structs.replace(one, number=_ANY, enabled=True)
    return bool(plain_one == structs.replace(other, number=_ANY, enabled=True))


def size_name(view: View) -> str:
    """The engine's name for the number of a decision that counts bytes."""
    for asked in reversed(view.recording.decisions.asked.values()):
        for name in asked.numbers:
            if name.endswith("bytes"):
                return name
    return "shared_bytes" if _engine(view) == "inductor" else "saved_bytes"


def _engine(view: View) -> str:
    settings = view.recording.settings
    return settings.engine if settings else ""


def override_list(view: View, width: int) -> Content:
    """One row each: id, choice, whether the run followed it."""
    if not view.overrides:
        rows = empty(
            width, "nothing is overridden", "v or f at a decision overrides it; d goes to the next"
        )
        return Content("overrides", rows=rows)
    column = min(max(len(id) for id in view.overrides), max(12, width - 34))
    rows = [_override(view, id, choice, column, width) for id, choice in view.overrides.items()]
    kept = sum(view.kept.get(id) == choice for id, choice in view.overrides.items())
    right = ((f"{kept} kept", "dim"),) if kept else ()
    return Content("overrides", plural(len(rows), "override"), right, rows)  # type: ignore[arg-type]


def _override(view: View, id: str, choice: str, column: int, width: int) -> Row:
    glyph, words, role = state_of(view, id, choice)
    kept = "kept" if view.kept.get(id) == choice else ""
    return text_row(
        (f" {glyph} ", role),
        pad(keep_end(id, column), column),
        (f"  {choice}", "strong"),
        (f"  {words}", role if role != "good" else "dim"),
        right=((kept + " ", "dim"),),
        at=ToOverride(id),
        copies=f'"{id}" = "{choice}"',
    )


def state_of(view: View, id: str, choice: str) -> tuple[str, str, Role]:
    """Glyph, words and role: met, refused, unknown, or for the next run only."""
    recording = view.recording
    settings = recording.run_settings
    given = settings.overrides if settings else {}
    last = recording.decisions.decided.get(id)
    if last is not None and last.refused:
        return "✗", f"refused: {last.refused}", "bad"
    if last is not None and last.choice == choice:
        return "✓", "met", "good"
    if last is not None or (id not in given and id in recording.decisions.asked):
        return "·", "decided otherwise in this run: w compiles again", "dim"
    if id not in given:
        return "·", "from the next run on: w compiles again", "dim"
    over = recording.end is not None or recording.last(End) is not None
    waiting = recording.last(Waiting)
    if over or (waiting is not None and waiting.kind == "end"):
        return "?", "unknown: no decision of this run has this name", "warn"
    return "·", "not reached yet", "dim"
