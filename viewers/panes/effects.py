"""Two recordings: what differs, in words and by cost, each with its cause."""

from __future__ import annotations

from pathlib import PurePath

from tcw.compiler.trace import refs
from tcw.viewers.kit.cells import wrap
from tcw.viewers.kit.colours import TONES
from tcw.viewers.kit.spans import Line, Span, text
from tcw.viewers.panes.rows import BLANK, Content, Row
from tcw.viewers.panes.targets import ToEffect, ToView
from tcw.viewers.panes.view import View
from tcw.viewers.panes.what_if import difference_of, nothing
from tcw.viewers.plain import plain
from tcw.viewers.summary.differences.difference_words import TONE_GLYPHS, effect_words
from tcw.viewers.summary.differences.effects import Effect

INDENT = 3
_LEADS = {
    "break": "break", "recompile": "recompiles", "memory": "memory", "graph": "source",
    "operation": "what-if", "fusion": "what-if", "kernel": "what-if",
}  # fmt: skip
"""Kind of an effect -> the arrangement that shows it in full."""


def content(view: View, width: int) -> Content:
    difference = difference_of(view)
    if difference is None or view.base is None:
        return nothing("differences", width)
    subject = " → ".join(_name(view, one) for one in (difference.base.file, difference.run.file))
    rows = [BLANK]
    told = ""
    for index, effect in enumerate(difference.effects):
        rows += _effect(index, effect, width, effect.cause if effect.cause != told else "")
        told = effect.cause
    if not difference.effects:
        words = "Nothing changed" + ("" if difference.nothing else " except what is listed below")
        rows.append(Row(body=((f" {words}", "strong"),)))
    count = len(difference.effects)
    right: Line = ((f"{min(view.effect, count - 1) + 1} of {count}", "dim"),) if count else ()
    start = str(ToEffect(min(view.effect, count - 1))) if count else ""
    return Content("differences", subject, right, [*rows, BLANK], start, tracks=True, still=True)


def looked_at(view: View) -> Effect | None:
    """The effect under the cursor."""
    difference = difference_of(view)
    effects = difference.effects if difference is not None else ()
    return effects[min(view.effect, len(effects) - 1)] if effects else None


def ref_of(effect: Effect) -> str:
    """The line of an effect, in the run; "" if the run has no such line."""
    line = effect.line
    return refs.source(line.file, line.line) if line is not None and not line.gone else ""


def _name(view: View, file: object) -> str:
    return plain(PurePath(str(file)).name) if file else "run"


def _effect(index: int, effect: Effect, width: int, cause: str) -> list[Row]:
    """`cause`: "" if the effect above has the same."""
    glyph: Span = (f" {TONE_GLYPHS[effect.tone]} ", TONES[effect.tone])
    lead = _LEADS.get(effect.kind)
    words = plain(effect_words(effect))
    place = plain(f"{effect.place}  ") if effect.place else ""
    first, *more = wrap(place + words, width - INDENT) or [""]
    shown = len(place) if first.startswith(place) else 0
    body: Line = (glyph, text(first[:shown], "dim"), text(first[shown:], "strong"))
    rows = [
        Row(
            body=body,
            at=ToEffect(index),
            opens=ToView(lead) if lead else None,
            selects=ref_of(effect),
            copies=place + words,
        )
    ]
    rows += [Row(body=(text(" " * INDENT + one, "strong"),)) for one in more]
    if cause:
        because = wrap(f"because {plain(cause)}", width - INDENT)
        rows += [Row(body=(text(" " * INDENT + one, "dim"),)) for one in because]
    return rows
