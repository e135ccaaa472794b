"""From eager time to compiled time, region by region: what won, what lost, what is in the noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from rich.cells import cell_len

from tcw.viewers.kit.cells import wrap
from tcw.viewers.kit.figures import TimeUnit, rate_text, unit_of
from tcw.viewers.kit.spans import Line, Role, Span, text, width_of
from tcw.viewers.panes import profiled
from tcw.viewers.panes.profiled import RegionGroup, Table, role_of
from tcw.viewers.panes.rows import Content, Row, Rows, empty, text_row
from tcw.viewers.panes.targets import Fold, ToRegion, ToView
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain
from tcw.viewers.summary.profile.profile_verdict import doubts
from tcw.viewers.summary.profile.rows import RegionRow
from tcw.viewers.summary.profile.waterfall import Sums
from tcw.viewers.summary.profile.work import SideWork
from tcw.viewers.tables.region_lines import (
    HEADS,
    LINE,
    REGION,
    RegionLines,
    figure_cells,
    figures_of,
    name_of,
    place_of,
    place_room,
    spans_of,
)
from tcw.viewers.words import bytes_text, percent, plural, ratio_text

SAMPLE = 400
"""The number of first rows that set the widths of columns."""
WORDS = {"": "Δ", "line": "line", "time": "time"}


@dataclass(frozen=True)
class _Entry:
    """One line of the pane, before it is made."""

    make: Callable[[], Row]
    key: str = ""
    ref: str = ""


def content(view: View, width: int) -> Content:
    table = profiled.table_of(view)
    if table is None:
        return Content("profile", rows=empty(width, *profiled.not_measured(view)))
    chart = _Chart(view, table, width)
    entries = chart.entries()
    rows = Rows(
        len(entries),
        lambda index: entries[index].make(),
        [entry.ref for entry in entries],
        [entry.key for entry in entries],
    )
    return Content(
        "profile",
        f"eager → compiled, {chart.unit.name}",
        _right(view, table, width),
        rows,
        _start(view, table),
        tracks=bool(view.region),
        head=1 + len(_notes(view, width)),
    )


def _start(view: View, table: Table) -> str:
    """The row of the current region, or the fold that contains it."""
    if not view.region:
        return ""
    for group in table.groups:
        fold = f"profile:noise:{group.phase}"
        quiet = any(row.key == view.region for row in group.waterfall.quiet)
        if quiet and fold not in view.unfolded:
            return fold
    return str(ToRegion(view.region))


def _right(view: View, table: Table, width: int) -> Line:
    head = table.head
    words = [plain(head.what), f"call {head.call}"] if width >= 100 and not view.phase else []
    if view.region_filter:
        words.append(f"{table.shown} of {table.known}: {plain(view.region_filter)}")
    elif view.phase:
        words.append(view.phase)
    if view.order in WORDS and view.order:
        words.append(f"by {WORDS[view.order]}")
    words.append(f"median of {plural(head.rounds, 'round')}")
    return ((" · ".join(words), "dim"),)


def _notes(view: View, width: int) -> list[str]:
    """Caveats about the figures, in lines."""
    profile = view.derived.profile
    found = doubts(profile.index) if profile is not None else ()
    return [line for one in found for line in wrap(one, width - 3)]


def _note(words: str) -> Row:
    return text_row(" ", (words, "warn"))


class _Chart:
    """Rows with the same columns and the same scale."""

    def __init__(self, view: View, table: Table, width: int) -> None:
        self.view = view
        self.table = table
        self.width = width
        self.unit = unit_of(table.head)
        self.main = view.derived.main_file
        self.names = view.derived.names
        self.line = place_room(width)
        falls = [group.waterfall for group in table.groups]
        sums = [table.total, *(one for fall in falls for one in (fall.quiet_sums, fall.total))]
        sums += [table.rest] if table.rest is not None else []
        texts = [{REGION: "  host and rest", **figure_cells(one, self.unit)} for one in sums]
        texts += [self._texts(row) for row in table.rows[:SAMPLE]]
        self.lines = RegionLines.fitted(HEADS, texts, width, *table.differences)

    def _texts(self, row: RegionRow) -> dict[str, str]:
        return {
            LINE: place_of(row, self.names, self.main, self.line),
            REGION: ("  " if row.standing == "noise" else "") + name_of(row),
            **figure_cells(row, self.unit),
        }

    def entries(self) -> list[_Entry]:
        view, table = self.view, self.table
        entries = [_Entry(partial(_note, words)) for words in _notes(view, self.width)]
        entries.append(_Entry(lambda: Row(body=self.lines.head())))
        for group in table.groups:
            if len(table.groups) > 1:
                entries.append(_Entry(partial(self._phase, group), f"phase:{group.phase}"))
            entries += map(self._entry, group.waterfall.rows)
            quiet = [self._entry(row) for row in group.waterfall.quiet]
            if quiet:
                fold = f"profile:noise:{group.phase}"
                opened = fold in view.unfolded
                lit = "" if opened else next((one.ref for one in quiet if one.ref), "")
                entries.append(_Entry(partial(self._fold, group, fold, lit), fold, lit))
                entries += quiet if opened else []
        if not table.shown:
            entries.append(_Entry(partial(_note, "no region has these words: & asks for others")))
        if table.rest is not None:
            entries.append(_Entry(partial(self._rest, table.rest), "rest"))
        stroke = text_row(("─" * max(1, self.width - 2), "faint"))
        return [*entries, _Entry(lambda: stroke), _Entry(self._sum, "sum")]

    def _entry(self, row: RegionRow) -> _Entry:
        """A region; its ref is what of it is lit."""
        own, kernels = self.view.ref, self.table.refs[row.key]
        ref = next((kernel for kernel in kernels if kernel in self.view.lit or kernel == own), "")
        ref = ref or (own if own in self.table.lines[row.key] else "")
        return _Entry(partial(self._region, row, ref), str(ToRegion(row.key)), ref)

    def _line(self, place: str, name: str, sums: Sums, role: Role, loud: Role) -> Line:
        """Without its bar."""
        texts = {LINE: place, REGION: name, **figure_cells(sums, self.unit)}
        return self.lines.line(spans_of(texts, loud, role))

    def _region(self, row: RegionRow, ref: str) -> Row:
        noisy = row.standing == "noise"
        role = role_of(row.difference, noisy)
        loud: Role = "dim" if noisy else "text"
        body = self.lines.line(spans_of(self._texts(row), loud, role))
        body += self.lines.bar(row.difference, role)
        return Row(
            body=body,
            ref=ref,
            at=ToRegion(row.key),
            copies=self.table.fix_of(row) or _copied(self.view, row, self.unit),
        )

    def _phase(self, group: RegionGroup) -> Row:
        fall = group.waterfall
        total = fall.total if group.whole else None
        if total is None:
            return text_row(" ", (group.phase or "in no phase", "strong"), heading=True)
        role = role_of(total.difference, total.in_noise)
        body = self._line("", group.phase, total, role, "strong")
        return Row(body=body, key=f"phase:{group.phase}")

    def _fold(self, group: RegionGroup, key: str, ref: str) -> Row:
        sums = group.waterfall.quiet_sums
        opened = key in self.view.unfolded
        words = f"{'▾' if opened else '▸'} {group.waterfall.quiet_words}"
        body = self._line("", words, sums, "dim", "dim")
        body += self.lines.bar(0.0, "dim")
        return Row(body=body, ref=ref, key=key, opens=Fold(key))

    def _rest(self, rest: Sums) -> Row:
        role = role_of(rest.difference, rest.in_noise)
        body = self._line("", "  host and rest", rest, role, "dim")
        body += self.lines.bar(rest.difference, role)
        return Row(body=body, key="rest", opens=ToView("account"))

    def _sum(self) -> Row:
        total = self.table.total
        role = role_of(total.difference, total.in_noise)
        lines, whole = self.lines, self.table.whole
        said = _verdict(self.table) if whole else ""
        sums = self._line("", "sum", total, role, "strong")
        room = self.width - width_of(sums) - 3
        if room < cell_len(said) <= lines.name:
            texts = {LINE: "sum", REGION: said, **figure_cells(total, self.unit)}
            cells = {**spans_of(texts, "strong", role), REGION: (said, role)}
            return Row(body=lines.line(cells), key="sum", opens=ToView("account"))
        if not whole:
            return Row(body=sums + lines.bar(total.difference, role), key="sum")
        if total.in_noise and cell_len(said) > room:
            said = "in noise"
        right: Line = ((" ", "text"), (said, role), (" ", "text"))
        right = right if cell_len(said) <= room else ()
        return Row(body=sums, right=right, key="sum", opens=ToView("account"))


def _verdict(table: Table) -> str:
    head, total = table.head, table.total
    if total.in_noise:
        return f"no measurable difference in {plural(head.rounds, 'round')}"
    speedup, share = head.speedup, head.noise
    if (total.eager, total.compiled) != (head.eager.median, head.compiled.median):  # one phase
        speedup = total.eager / total.compiled if total.compiled else head.speedup
        longer = max(total.eager, total.compiled)
        share = total.noise / longer if longer else 0.0
    noise = f"±{percent(share)}"
    if speedup >= 1:
        return f"{ratio_text(speedup)} faster {noise}"
    return f"{ratio_text(1 / speedup if speedup > 0 else None)} slower {noise}"


def _copied(view: View, row: RegionRow, unit: TimeUnit) -> str:
    places = view.derived.names.lines((location.file, location.line) for location in row.locations)
    eager, compiled, change, noise = figures_of(row, unit)
    return f"{name_of(row)}  {places}  {eager} → {compiled} {unit.name}  {change} ±{noise}"


# The selection, below the panes


def selection(view: View, width: int) -> list[Row]:
    """What the current region does on both sides; empty if there is none."""
    row = profiled.chosen(view) if view.region else None
    if row is None:
        return []
    places = view.derived.names.lines((location.file, location.line) for location in row.locations)
    title: Line = (text(name_of(row), "strong"), text(f"   {places or 'no line'}", "dim"))
    module = ((plain(row.module) + " ", "dim"),) if row.module else ()
    return [
        Row(body=title, right=module, heading=True),  # type: ignore[arg-type]
        text_row(("eager     ", "dim"), *_work(row.eager_work, len(row.operations), "operation")),
        text_row(("compiled  ", "dim"), *_work(row.compiled_work, len(row.steps), "step")),
    ]


def _work(work: SideWork, count: int, noun: str) -> Line:
    if not count:
        return (("nothing", "text"),)
    spans: list[Span] = [(plural(count, noun), "text")]
    spans.append((f"   {plural(work.launches, 'launch')}", "text"))
    if work.bytes is not None:
        spans.append((f"   {bytes_text(work.bytes)} moved", "text"))
    if work.bandwidth is not None:
        spans.append((f"   {rate_text(work.bandwidth, 'B/s')}", "text"))
    if work.rate is not None:
        spans.append((f"   {rate_text(work.rate, 'FLOP/s')}", "text"))
    if work.share is not None:
        spans.append((f"   {percent(work.share)} of the roofline", "strong"))
        spans.append((f" ({work.limit})", "dim"))
    return tuple(spans)
