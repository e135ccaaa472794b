"""Moving through a recording: what opening, stepping and selecting do to a `View`. No widget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from compiler.trace import refs
from viewers.panes import breaks, fusion, recompiles
from viewers.panes.arrangement import STAGES
from viewers.panes.rows import Row
from viewers.panes.view import View, variant_of
from viewers.summary import BreakSite, RecompileCause

KINDS = ("src", "fx", "ir", "k")
BREAK_SOURCE = ("break", "source-break")
T = TypeVar("T")


@dataclass(frozen=True)
class Stop:
    """A place to which `esc` leads back."""

    arrangement: str
    view: View
    focus: str


class Navigator:
    """The reader's way: a view, an arrangement, and the stops before."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.arrangement = "overview"
        self.stops: list[Stop] = []

    def go(self, arrangement: str, focus: str = "") -> None:
        """Show another arrangement; where the reader was becomes a stop."""
        if arrangement == self.arrangement:
            return
        self.stop(focus)
        self.arrangement = arrangement
        if arrangement == "source" and not self.view.lit:
            self._start_reading()
        elif arrangement == "fusion":
            self._light_pair()

    def stop(self, focus: str) -> None:
        self.stops.append(Stop(self.arrangement, replace(self.view), focus))

    def back(self) -> Stop | None:
        """Return to the last stop; None where there is none."""
        if not self.stops:
            return None
        stop = self.stops.pop()
        unfolded, facts = self.view.unfolded, self.view.facts
        self.view = replace(stop.view, unfolded=unfolded, facts=facts)
        self.arrangement = stop.arrangement
        return stop

    def _start_reading(self) -> None:
        graph = self.view.graph()
        nodes = graph.nodes if graph else ()
        first = next((n.location for n in nodes if n.location and n.op.startswith("call")), None)
        if first is not None:
            self.select(refs.source(first.file, first.line))

    def select(self, ref: str) -> None:
        """Select a thing; compile and kernel follow where the present ones have no counterpart."""
        view = self.view
        view.select(ref)
        kind = refs.kind(ref) if ref else ""
        if kind in ("fx", "ir"):
            graph = view.recording.graphs.get(refs.split_node(ref)[0])
            if graph is not None:
                self.compile(graph.compile_id)
        elif kind == "src" and not self._touches(view.compile_id):
            found = next((cid for cid in view.facts.pieces if self._touches(cid)), "")
            if found:
                self.compile(found)
        kernels = [k for k in view.kernels() if k.text]
        shown = view.shown_kernel()
        best = max(kernels, key=view.lit_lines, default=None)
        if best is not None and view.lit_lines(best) and (not shown or not view.lit_lines(shown)):
            view.kernel = best.id

    def _touches(self, compile_id: str) -> bool:
        """Whether a captured node of this compile is a counterpart of the selection."""
        graph = self.view.recording.graphs.get(compile_id)
        nodes = graph.nodes if graph else ()
        lit = self.view.lit
        return any(refs.node(compile_id, node.name) in lit for node in nodes)

    def compile(self, compile_id: str) -> None:
        """Look at another compile, in the same kind of graph."""
        view = self.view
        if compile_id == view.compile_id or compile_id not in view.facts.pieces:
            return
        graph = view.graph()
        kept = view.variant and graph and variant_of(graph)
        view.compile_id = compile_id
        view.variant = kept or ""
        view.kernel = ""
        view.pair = ""

    def moved(self, pane: str, row: Row) -> None:
        """The cursor of a pane stands on `row`."""
        kind, _, rest = row.key.partition(":")
        view = self.view
        if kind == "compile":
            self.compile(rest)
        elif kind == "stage":
            self.compile(rest.partition(":")[0])
        elif kind == "finding":
            self.finding(int(rest))
        elif kind == "cause":
            view.cause = int(rest)
        elif kind == "frame":
            self.compile(rest)
        elif kind == "kernel":
            self._kernel(rest)
        elif kind == "pair":
            view.pair = rest
            self._light_pair()
        if kind != "kernel" and (row.ref or row.selects):
            self.select(row.ref or row.selects)

    def _kernel(self, name: str) -> None:
        """Look at a kernel, in its own language."""
        view = self.view
        found = view.recording.kernels.get(name)
        if found is not None:
            view.language = "triton" if found.language == "triton" else "cpp"
            view.kernel = name
            view.select(refs.kernel(name))

    def _light_pair(self) -> None:
        pair = fusion.chosen_pair(self.view)
        if pair is not None:
            self.view.light(fusion.things_of(pair))

    def finding(self, index: int) -> str:
        """Look at a finding; answers the arrangement that explains it."""
        view = self.view
        findings = view.summary.findings
        if not findings:
            return ""
        view.finding = index % len(findings)
        source = findings[view.finding].source
        if isinstance(source, BreakSite):
            view.site = view.summary.breaks.index(source)
            return "break"
        if isinstance(source, RecompileCause):
            view.cause = view.summary.recompiles.index(source)
            return "recompiles"
        return ""

    def opened(self, row: Row, focus: str) -> bool:
        """`⏎` on a row; answers whether it led anywhere."""
        kind, _, rest = row.opens.partition(":")
        key, _, name = row.key.partition(":")
        if kind == "fold":
            self.view.unfolded ^= {rest}
        elif kind == "finding":
            arrangement = self.finding(int(rest))
            if not arrangement:
                return False
            self.show_finding(arrangement, focus)
        elif kind == "break":
            file_line, _, gb = rest.rpartition(":")
            self._open_break(file_line, gb, focus)
        elif kind == "compile" or key == "compile":
            self.go("source", focus)
            self.compile(rest or name)
            self._start_reading()
        elif kind == "kernel":
            self.go("source", focus)
            self._kernel(rest)
        elif kind == "cause":
            cause = recompiles.cause_of(self.view)
            if cause is None or cause.place is None:
                return False
            self.go("source", focus)
            self.select(cause.place.ref)
        elif key == "stage":
            self.go(STAGES.get(name.partition(":")[2], "source"), focus)
        elif refs.kind(row.ref or row.opens) in KINDS and not self._linked(focus):
            self.go("source", focus)
            self.select(row.ref or row.opens)
        else:
            return False
        return True

    def _linked(self, focus: str) -> bool:
        """Whether the counterparts of this pane's rows stand beside it already."""
        return self.arrangement == "source" or (self.arrangement, focus) == BREAK_SOURCE

    def show_finding(self, arrangement: str, focus: str) -> None:
        """Go to the arrangement of the present finding, at its place."""
        self.go(arrangement, focus)
        view = self.view
        if arrangement == "break":
            self._show_site()
        else:
            cause = recompiles.cause_of(view)
            if cause is not None:
                self.compile(cause.frames[0].compile_id)
                view.select(cause.place.ref if cause.place else "")

    def _open_break(self, file_line: str, gb: str, focus: str) -> None:
        for index, site in enumerate(self.view.summary.breaks):
            if f"{site.place.file}:{site.place.line}" == file_line and site.gb == gb:
                self.view.site = index
        self.go("break", focus)
        self._show_site()

    def _show_site(self) -> None:
        site = breaks.site_of(self.view)
        if site is not None:
            self.compile(site.compile_ids[0])
            self.view.select(site.place.ref)

    def step(self, by: int, focus: str) -> None:
        """`[ ]`: the next break, recompile, pair, kernel or compile, by what is looked at."""
        view, summary = self.view, self.view.summary
        if self.arrangement == "break" and summary.breaks:
            view.site = (view.site + by) % len(summary.breaks)
            self._show_site()
        elif self.arrangement == "recompiles" and summary.recompiles:
            view.cause = (view.cause + by) % len(summary.recompiles)
            self.show_finding("recompiles", focus)
        elif self.arrangement == "fusion":
            pairs = fusion.pairs_of(view)
            chosen = fusion.chosen_pair(view)
            if chosen is not None:
                view.pair = _next(pairs, chosen, by).id
                self._light_pair()
        elif self.arrangement == "source" or focus == "kernel":
            shown = view.shown_kernel()
            if shown is not None:
                self._kernel(_next(view.kernels(), shown, by).id)
        else:
            ids = list(view.facts.pieces)
            if view.compile_id in ids:
                self.compile(_next(ids, view.compile_id, by))

    def language(self, by: int, focus: str) -> bool:
        """`( )`: the next language of the kernel; with the graph in focus, the next graph.

        False where the recording has no other.
        """
        view = self.view
        if focus == "graph":
            graph = view.graph()
            if graph is not None:
                view.variant = variant_of(_next(view.variants(), graph, by))
            return len(view.variants()) > 1
        shown = view.facts.languages
        before = view.language
        view.language = _next(shown, before, by) if before in shown else shown[0]
        if len(shown) == 1:
            return before != view.language
        if (before == "cpp") != (view.language == "cpp"):
            view.kernel = ""
            self.select(view.ref)
        return True

    def grown(self) -> None:
        """The recording has grown: start at its first compile, once there is one."""
        view = self.view
        if view.compile_id not in view.facts.pieces:
            view.compile_id = next(iter(view.facts.pieces), "")
        view.select(view.ref)


def _next(items: Sequence[T], item: T, by: int) -> T:
    return items[(items.index(item) + by) % len(items)]
