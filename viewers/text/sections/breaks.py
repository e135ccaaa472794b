"""`--show breaks`: every site with torch's explanation, what crosses it, and all advice."""

from __future__ import annotations

from tcw.viewers.kit.lines import BLANK, TextLine, apart, line, prose
from tcw.viewers.kit.table import Cell, heading, table
from tcw.viewers.summary.breaks import BreakSite
from tcw.viewers.tables.findings import advice_lines
from tcw.viewers.tables.places import place_lines
from tcw.viewers.text.sections import SectionView
from tcw.viewers.words import plural, tensor_text


def section(view: SectionView) -> list[TextLine]:
    sites = view.summary.breaks
    compiles = len({piece.compile_id for call in view.summary.calls for piece in call.pieces})
    if not sites:
        none = heading("breaks", f"no graph breaks in {plural(compiles, 'compile')}")
        return [none, *_skipped(view)]
    head = heading("breaks", plural(len(sites), "site"))
    return [head, *apart(_site(view, site) for site in sites), *_skipped(view)]


def _skipped(view: SectionView) -> list[TextLine]:
    """Frames that Dynamo left to Python, each function and reason once."""
    frames = view.summary.skipped
    if not frames:
        return []
    rows: dict[tuple[str, str], list[Cell]] = {}
    for frame in frames:
        where = view.names.place(frame.location.file, frame.location.line)
        reason = " ".join(frame.reason.split())
        rows[where, reason] = [(where, "dim"), frame.function, reason]
    found = table(list(rows.values()), "elf", view.width, 2)
    return [BLANK, heading("left to Python", plural(len(rows), "function")), *found]


def _site(view: SectionView, site: BreakSite) -> list[TextLine]:
    code = f"  {site.gb}" if site.gb else ""
    where = ", ".join(site.compile_ids)
    lines = [line(("✗ ", "bad"), (site.title, "strong"), code, ("  " + where, "dim"), hang=4)]
    lines += place_lines(site.place, view.names, 2, view.width)
    record = site.records[0]
    for frame in record.stack[:-1]:
        name = view.names.place(frame.file, frame.line)
        lines.append(line(("  from ", "dim"), f"{name}  {frame.function}", fixed=True))
    if site.inside is not None:
        name = view.names.place(site.inside.file, site.inside.line)
        lines.append(
            line(("  inside ", "dim"), f"{name}  {site.inside.function}, where torch reports it")
        )
    for value in record.crossing:
        what = tensor_text(value.tensor) if value.tensor else value.kind or "no tensor"
        lines += table([[("crosses", "dim"), value.name, what]], "llf", view.width, 2)
    if site.host_waits:
        lines.append(
            line(("  host     ", "dim"), "Python reads the tensor's data and waits for it")
        )
    if record.type != site.title:
        lines += prose("torch    ", record.type, 2)
    lines += prose("why      ", record.explanation, 2)
    lines += prose("context  ", record.context, 2)
    lines += advice_lines(site.advice, 2, view.width)
    said = {one.text for one in site.advice}
    for hint in record.hints:
        lines += prose("hint     ", hint, 2) if hint not in said else []
    if record.url:
        lines.append(line(("  " + record.url, "dim"), fixed=True))
    return lines
