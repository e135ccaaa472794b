"""Moving through a recording: what opening, stepping and selecting do to a `View`. No widget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tcw.compiler.trace import refs
from tcw.compiler.trace.compile_names import compile_of
from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import Kernel
from tcw.viewers.panes import autograd, breaks, fusion, profiled, recompiles, what_if
from tcw.viewers.panes.arrangement import STAGES
from tcw.viewers.panes.rows import Row
from tcw.viewers.panes.targets import (
    Fold,
    ToBlock,
    ToBreak,
    ToBuffer,
    ToCause,
    ToCompile,
    ToEffect,
    ToFinding,
    ToFrame,
    ToKernel,
    ToLineup,
    ToPair,
    ToRegion,
    ToStage,
    ToThing,
    ToView,
)
from tcw.viewers.panes.view import Derived, KernelLanguage, View, variant_of
from tcw.viewers.summary.breaks import BreakSite
from tcw.viewers.summary.recompiles import RecompileCause

KINDS = ("src", "fx", "ir", "k")
BREAK_SOURCE = ("break", "source-break")
REGION_PANES = (("region", "region-eager"), ("region", "source"))
T = TypeVar("T")


_OF_NOW = (
    "unfolded", "derived", "engine", "live", "driven", "breakpoints", "overrides", "kept", "base",
    "quiz", "several",
)  # fmt: skip
"""Fields of a view that depend on the recording or on what the reader did; going back keeps
them."""


@dataclass(frozen=True)
class Visited:
    """A place to which `esc` leads back."""

    arrangement: str
    view: View
    focus: str


class Navigator:
    """The reader's way: a view, an arrangement, and the stops before."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.arrangement = "overview"
        self.stops: list[Visited] = []
        self.language_chosen = False
        """Whether the reader has switched the language of the kernels."""

    def go(self, arrangement: str, focus: str = "") -> None:
        """Show another arrangement; the place before becomes a stop."""
        if arrangement == self.arrangement:
            return
        self.stop(focus)
        self.arrangement = arrangement
        if arrangement == "source" and not self.view.lit:
            self._start_reading()
        elif arrangement == "break":
            self._show_site()
        elif arrangement == "fusion":
            self.light_pair()
        elif arrangement == "autograd":
            self.select(autograd.first(self.view))
        elif arrangement in ("profile", "region"):
            self.light_region()
        elif arrangement == "differences":
            self.light_effect()
        elif arrangement == "ranks" and self.view.several is not None:
            divergence = self.view.several.divergence
            place = divergence.place if divergence is not None else None
            self.select(refs.source(place.file, place.line) if place is not None else "")

    def stop(self, focus: str) -> None:
        self.stops.append(Visited(self.arrangement, replace(self.view), focus))

    def back(self) -> Visited | None:
        """Return to the last stop; None if there is none."""
        if not self.stops:
            return None
        stop = self.stops.pop()
        now = self.view
        self.view = replace(stop.view, **{name: getattr(now, name) for name in _OF_NOW})
        self.arrangement = stop.arrangement
        return stop

    def _start_reading(self) -> None:
        graph = self.view.graph()
        nodes = graph.nodes if graph else ()
        first = next((n.location for n in nodes if n.location and n.op.startswith("call")), None)
        if first is not None:
            self.select(refs.source(first.file, first.line))

    def select(self, ref: str) -> None:
        """Select a thing; compile and kernel follow if the current ones have no counterpart."""
        view = self.view
        view.select(ref)
        kind = refs.kind(ref) if ref else ""
        if kind in ("fx", "ir"):
            graph = view.recording.graphs.get(refs.split_node(ref)[0])
            if graph is not None:
                self.compile(graph.compile_id)
        elif kind == "src" and not self._touches(view.compile_id):
            piece = next((cid for cid in view.derived.pieces if self._touches(cid)), "")
            if piece:
                self.compile(piece)
        shown = view.shown_kernel()
        best = max(view.kernels(), key=self._weight, default=None)
        if best is not None and view.lit_lines(best) and (not shown or not view.lit_lines(shown)):
            view.kernel = best.id

    def _weight(self, kernel: Kernel) -> tuple[bool, bool, int]:
        """What makes a kernel the one to show: counterparts, then code of its own, so that a
        library call is shown only if there is nothing else."""
        lines = self.view.lit_lines(kernel)
        return lines > 0, bool(kernel.text), lines

    def _touches(self, compile_id: str) -> bool:
        """Whether a captured node of this compile is a counterpart of the selection."""
        graph = self.view.recording.graphs.get(compile_id)
        nodes = graph.nodes if graph else ()
        lit = self.view.lit
        return any(refs.node(compile_id, node.name) in lit for node in nodes)

    def compile(self, compile_id: str) -> None:
        """Look at another compile, in the same kind of graph."""
        view = self.view
        if compile_id == view.compile_id or compile_id not in view.derived.pieces:
            return
        graph = view.graph()
        kept = view.variant and graph and variant_of(graph)
        view.compile_id = compile_id
        view.variant = kept or ""
        view.kernel = ""
        view.pair = ""

    def moved(self, row: Row) -> None:
        """The cursor of a pane is on `row`."""
        view = self.view
        match row.at:
            case ToCompile(id) | ToStage(id, _) | ToFrame(id):
                self.compile(id)
            case ToFinding(index):
                self.finding(index)
            case ToCause(index):
                view.cause = index
                self._compile_of_cause()
            case ToEffect(index):
                view.effect = index
                self.light_effect()
                return
            case ToKernel(id):
                self._kernel(id)
                return
            case ToPair(id):
                view.pair = id
                self.light_pair()
            case ToRegion(key):
                view.region = key
                self.light_region()
            case ToBuffer(name):
                view.buffer = name
            case ToLineup(index):
                view.lined = index
            case ToBlock(key):
                view.block = key
        if row.ref or row.selects:
            self.select(row.ref or row.selects)

    def _kernel(self, name: str) -> None:
        """Look at a kernel, in its own language."""
        view = self.view
        kernel = view.recording.kernels.get(name)
        if kernel is not None:
            view.language = "triton" if kernel.language == "triton" else "cpp"
            view.kernel = name
            view.select(refs.kernel(name))

    def light_pair(self) -> None:
        """Select both sides of the current pair."""
        pair = fusion.chosen_pair(self.view)
        if pair is not None:
            self.view.light(fusion.things_of(pair))

    def light_region(self) -> None:
        """Select what makes up the current region of the profile, and show the kernel that takes
        most of its time."""
        view = self.view
        profile = view.derived.profile
        if profile is None:
            return
        if not view.region and self.arrangement != "region":
            view.region = profiled.of_selection(view) or profiled.first(view)
        if not view.region and self.arrangement != "region":
            place = profile.causes[0].place if profile.causes else None
            view.select(place.ref if place is not None else "")
            return
        row = profiled.chosen(view)
        if row is None:
            return
        view.region = row.key
        longest = max(
            (step for step in row.steps if step.kernel and step.time is not None),
            key=lambda step: step.time.median if step.time else 0.0,
            default=None,
        )
        kernel = view.recording.kernels.get(longest.kernel) if longest is not None else None
        if kernel is not None:
            view.language = "triton" if kernel.language == "triton" else "cpp"
            self.language_chosen = True
            self.compile(compile_of(kernel.graph))
            view.kernel = kernel.id
            if kernel.graph in view.recording.graphs:
                view.variant = variant_of(view.recording.graphs[kernel.graph])
        kernels = [ref for ref in row.refs if refs.kind(ref) == "k"]
        view.light(kernels or row.refs)
        view.lit.update(dict.fromkeys(row.refs, "exact"))

    def light_effect(self) -> None:
        """Select the line of the current difference."""
        effect = what_if.looked_at(self.view)
        self.select(what_if.ref_of(effect) if effect is not None else "")

    def finding(self, index: int) -> str:
        """Look at a finding; returns the arrangement that explains it."""
        view = self.view
        findings = view.summary.findings
        if not findings:
            return ""
        view.finding = index % len(findings)
        source = findings[view.finding].source
        if isinstance(source, BreakSite):
            view.site = view.summary.breaks.index(source)
            return "break"
        causes = findings[view.finding].causes
        cause = source if isinstance(source, RecompileCause) else causes[0] if causes else None
        if cause is not None:
            view.cause = view.summary.recompiles.index(cause)
            return "recompiles"
        return ""

    def opened(self, row: Row, focus: str) -> bool:
        """`⏎` on a row; returns whether it led anywhere."""
        match row.opens:
            case ToView(arrangement):
                self.go(arrangement, focus)
            case Fold(key):
                self.view.unfolded ^= {key}
            case ToFinding(index):
                arrangement = self.finding(index)
                if not arrangement:
                    return self._open_thing(row.selects, focus)
                self.show_finding(arrangement, focus)
            case ToRegion(key):
                self.view.region = key
                self.light_region()
                self.go("region", focus)
            case ToBreak():
                self._open_break(row.opens, focus)
            case ToCompile(id):
                self.go("source", focus)
                self.compile(id)
                self._start_reading()
            case ToStage(_, name):
                if name.strip() in profiled.PHASES or name == "profile":
                    self.view.phase = name.strip() if name != "profile" else ""
                self.go(STAGES.get(name, "source"), focus)
            case ToKernel(id):
                self.go("source", focus)
                self._kernel(id)
            case ToCause():
                cause = recompiles.cause_of(self.view)
                if cause is None or cause.place is None:
                    return False
                self.go("source", focus)
                self.select(cause.place.ref)
            case ToThing(ref):
                return self._open_thing(row.ref or ref, focus)
            case _:
                return self._open_thing(row.ref, focus)
        return True

    def _open_thing(self, ref: str, focus: str) -> bool:
        """Show a thing in its source, graph and kernel, unless these are shown beside it."""
        if not ref or refs.kind(ref) not in KINDS or self._linked(focus):
            return False
        self.go("source", focus)
        self.select(ref)
        return True

    def _linked(self, focus: str) -> bool:
        """Whether the counterparts of this pane's rows are shown beside it already."""
        here = (self.arrangement, focus)
        return self.arrangement in ("source", "profile", "differences") or here in (
            BREAK_SOURCE,
            *REGION_PANES,
        )

    def show_finding(self, arrangement: str, focus: str) -> None:
        """Go to the arrangement of the current finding, at its place."""
        self.go(arrangement, focus)
        view = self.view
        if arrangement == "break":
            self._show_site()
        else:
            cause = self._compile_of_cause()
            if cause is not None:
                view.select(cause.place.ref if cause.place else "")

    def _compile_of_cause(self) -> RecompileCause | None:
        """Look at the first compile of the current cause, which is returned."""
        cause = recompiles.cause_of(self.view)
        if cause is not None:
            self.compile(cause.frames[0].compile_id)
        return cause

    def _open_break(self, target: ToBreak, focus: str) -> None:
        for index, site in enumerate(self.view.summary.breaks):
            if ToBreak(site.place.file, site.place.line, site.gb) == target:
                self.view.site = index
        self.go("break", focus)
        self._show_site()

    def _show_site(self) -> None:
        site = breaks.site_of(self.view)
        if site is not None:
            self.compile(site.compile_ids[0])
            self.view.select(site.place.ref)

    def step(self, by: int, focus: str) -> str:
        """`[ ]`: go to the next break, recompile, pair, kernel or compile, by what is shown.
        Returns its position among all."""
        view, summary = self.view, self.view.summary
        if self.arrangement == "break" and summary.breaks:
            view.site, words = _turned("graph break", view.site, by, len(summary.breaks))
            self._show_site()
            return words
        if self.arrangement == "recompiles" and summary.recompiles:
            count = len(summary.recompiles)
            view.cause, words = _turned("cause of recompiling", view.cause, by, count)
            self.show_finding("recompiles", focus)
            return words
        if self.arrangement == "differences":
            return self._step_effect(by)
        if self.arrangement == "profile":
            return self._step_phase(by)
        if self.arrangement == "region":
            return self._step_region(by)
        if self.arrangement == "fusion":
            pairs = fusion.pairs_of(view)
            chosen = fusion.chosen_pair(view)
            if chosen is not None:
                index, words = _turned("pair", pairs.index(chosen), by, len(pairs))
                view.pair = pairs[index].id
                self.light_pair()
                return words
        elif self.arrangement == "source" or focus == "kernel":
            return self._step_kernel(by)
        else:
            ids = list(view.derived.pieces)
            if view.compile_id in ids:
                index, words = _turned("compile", ids.index(view.compile_id), by, len(ids))
                self.compile(ids[index])
                return words
        return "there is no other here"

    def _step_effect(self, by: int) -> str:
        view = self.view
        difference = what_if.difference_of(view)
        if difference is None or not difference.effects:
            return "nothing differs"
        view.effect, words = _turned("difference", view.effect, by, len(difference.effects))
        self.light_effect()
        return words

    def _step_phase(self, by: int) -> str:
        """To the regions of the next phase of a training call, and of all."""
        view, phases = self.view, ("", *profiled.phases_of(self.view))
        if len(phases) == 1:
            return "the call has one phase"
        before = phases.index(view.phase) if view.phase in phases else 0
        view.phase = phases[(before + by) % len(phases)]
        view.region = ""
        self.light_region()
        return view.phase or "all phases"

    def _step_region(self, by: int) -> str:
        table, row = profiled.table_of(self.view), profiled.chosen(self.view)
        if table is None or row is None or row not in table.rows:
            return "there is no other here"
        index, words = _turned("region", table.rows.index(row), by, len(table.rows))
        self.view.region = table.rows[index].key
        self.light_region()
        return words

    def _step_kernel(self, by: int) -> str:
        """To the next kernel of the graph that is shown."""
        view = self.view
        kernels, shown = view.kernels_of_graph(), view.shown_kernel()
        graph = view.graph()
        name = base_graph(graph.id) if graph else view.compile_id
        if shown is None or not kernels:
            return f"no kernel of {name} to step to"
        outside = -1 if by > 0 else len(kernels)
        before = kernels.index(shown) if shown in kernels else outside
        index, words = _turned(f"kernel of {name}", before, by, len(kernels))
        self._kernel(kernels[index].id)
        return words

    def language(self, by: int, focus: str) -> bool:
        """`( )`: the next language of the kernel; with the graph in focus, the next graph.

        False if the recording has no other.
        """
        view = self.view
        if focus == "graph":
            graph = view.graph()
            if graph is not None:
                view.variant = variant_of(_next(view.variants(), graph, by))
                if view.shown_kernel() not in view.kernels_of_graph():
                    view.kernel = ""
            return len(view.variants()) > 1
        self.language_chosen = True
        shown = view.derived.languages
        before = view.language
        view.language = _next(shown, before, by) if before in shown else shown[0]
        if len(shown) == 1:
            return before != view.language
        if (before == "cpp") != (view.language == "cpp"):
            view.kernel = ""
            self.select(view.ref)
        return True

    def engine(self, name: str, derived: Derived) -> None:
        """Look at the other engine's part of the trace, at the same compile."""
        view = self.view
        view.engine, view.derived = name, derived
        view.kernel = view.pair = view.variant = view.region = ""
        view.finding = view.site = view.cause = 0
        self.language_chosen = False
        if refs.kind(view.ref) != "src":
            view.ref = ""
        self.grown()

    def grown(self) -> None:
        """The recording has grown: start at its first compile with a graph, or at its first."""
        view = self.view
        pieces = view.derived.pieces
        if view.compile_id not in pieces:
            with_graph = (piece.compile_id for piece in pieces.values() if piece.ops)
            view.compile_id = next(with_graph, "") or next(iter(pieces), "")
        if not self.language_chosen:
            view.language = self._first_language()
        if self.arrangement in ("profile", "region") and not view.ref:
            self.light_region()
        else:
            view.select(view.ref)

    def _first_language(self) -> KernelLanguage:
        """Triton if the recording is for a GPU, or has no other language."""
        languages, wanted = self.view.derived.languages, self.view.for_gpu
        return "triton" if "triton" in languages and (wanted or "cpp" not in languages) else "cpp"


def _turned(noun: str, before: int, by: int, count: int) -> tuple[int, str]:
    """The index after `before`, and its words: `kernel of 0/0/forward 3 of 9`, which say so if it
    wrapped around."""
    index = (before + by) % count
    if count == 1:
        return index, f"the only {noun}"
    around = index < before if by > 0 else index > before
    first, last = ("past the last, to the first: ", "past the first, to the last: ")
    return index, f"{(first if by > 0 else last) if around else ''}{noun} {index + 1} of {count}"


def _next(items: Sequence[T], item: T, by: int) -> T:
    return items[(items.index(item) + by) % len(items)]
