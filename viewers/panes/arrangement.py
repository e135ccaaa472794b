"""Which panes stand where: the arrangements of the workbench, by width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from compiler.trace.records.session import FactKind
from viewers.panes import (
    account,
    autograd,
    breakpoints,
    breaks,
    bytecode,
    cache,
    changes,
    decided,
    effects,
    engines,
    findings,
    fusion,
    graph,
    growing,
    guards,
    kernel,
    kernels,
    memory,
    nests,
    node,
    notes,
    output,
    overrides,
    overview,
    pair_loops,
    picture,
    ranks,
    recompiles,
    region,
    score,
    settings,
    source,
    stack,
    two_sources,
    waterfall,
    what_if,
    why,
)
from viewers.panes import locals as locals_
from viewers.panes.rows import Content, empty
from viewers.panes.view import View
from viewers.words import NOT_IN_LOG

Pane = Callable[[View, int], Content]


def beside(view: View, width: int) -> Content:
    """Next to the kernel: the same in the other language, else the loops that it was made from."""
    languages = {kernel.language for kernel in view.recording.kernels_of.get(view.compile_id, [])}
    if view.language == "cpp" and "triton" in languages:
        other = replace(view, language="triton", kernel="")
        kernels = other.kernels()
        other.kernel = max(kernels, key=view.lit_lines).id
        return kernel.content(other, width)
    if view.language != "cpp" and "cpp" in languages:
        return kernel.content(replace(view, language="cpp"), width)
    return nests.content(view, width)


_DRAWN: dict[str, Pane] = {
    "overview": overview.content,
    "findings": findings.content,
    "source": source.content,
    "source-break": partial(source.content, annotate=True),
    "graph": graph.content,
    "picture": picture.content,
    "node": node.content,
    "kernel": kernel.content,
    "kernels": kernels.content,
    "break": breaks.explanation,
    "sides": breaks.sides,
    "cache": cache.content,
    "causes": recompiles.causes,
    "why": recompiles.why,
    "guards": guards.content,
    "loops-a": partial(pair_loops.loops, side="A"),
    "loops-b": partial(pair_loops.loops, side="B"),
    "became": pair_loops.if_fused,
    "fusion": fusion.decisions,
    "fusion-narrow": pair_loops.loops_or_list,
    "loops": nests.content,
    "beside": beside,
    "memory": memory.content,
    "autograd": autograd.content,
    "output": output.content,
    "score": score.content,
    "notes": notes.content,
    "breakpoints": breakpoints.content,
    "overrides": overrides.content,
    "settings": settings.content,
    "decisions": decided.content,
    "source-step": source.stepped,
    "bytecode": bytecode.content,
    "stack": stack.content,
    "locals": locals_.content,
    "frame": locals_.frame,
    "growing": growing.graph,
    "growing-guards": growing.guards,
    "profile": waterfall.content,
    "profile-why": why.content,
    "region-eager": region.eager,
    "region-compiled": region.compiled,
    "account": account.content,
    "modes": account.modes,
    "precision": account.precision,
    "effects": effects.content,
    "ranks": ranks.content,
    "source-base": two_sources.base,
    "source-run": two_sources.run,
    "what-if": what_if.verdict,
    "diff": changes.diff,
    "changed": changes.changed,
    "engines": engines.content,
    "engine-a": partial(engines.side, second=False),
    "engine-b": partial(engines.side, second=True),
}
_HELD: dict[str, FactKind] = {
    **dict.fromkeys(("loops-a", "loops-b", "became", "fusion", "fusion-narrow", "loops"), "fusion"),
    **dict.fromkeys(("source-step", "bytecode", "stack", "locals", "frame"), "steps"),
    **dict.fromkeys(("growing", "growing-guards"), "steps"),
    **dict.fromkeys(("profile", "profile-why", "region-eager", "region-compiled"), "run time"),
    **dict.fromkeys(("account", "modes", "precision"), "run time"),
    "memory": "memory",
    "autograd": "autograd",
    "output": "output",
    "decisions": "decisions",
    "guards": "guards",
    "kernels": "kernels",
    "cache": "calls",
}
"""Pane -> the kind of facts that it shows."""


def _held(kind: FactKind, pane: Pane, view: View, width: int) -> Content:
    """The content of a pane; for a log without such facts, a pane that says so."""
    found = pane(view, width)
    if view.derived.trace.lacks(kind):
        return replace(found, rows=empty(width, NOT_IN_LOG))
    return found


PANES: dict[str, Pane] = {
    name: partial(_held, _HELD[name], pane) if name in _HELD else pane
    for name, pane in _DRAWN.items()
}


@dataclass(frozen=True)
class Slot:
    """A pane in a column; `share` of the column's height, 0 for as much as its rows need."""

    pane: str
    share: int = 1
    lines: int = 0
    """Its height with its title, if that is fixed."""


@dataclass(frozen=True)
class Column:
    slots: tuple[Slot, ...]
    share: int = 1


@dataclass(frozen=True)
class Arrangement:
    """Columns of panes below an optional pane across the top."""

    columns: tuple[Column, ...]
    top: Slot | None = None
    narrow: tuple[Slot, ...] = ()
    """Stacked on screens of less than 100 cells."""
    focus: str = ""
    wide: tuple[Column, ...] = ()
    """Replaces `columns` from 180 cells on."""


def _columns(*columns: tuple[int, str]) -> tuple[Column, ...]:
    return tuple(Column((Slot(pane),), share) for share, pane in columns)


ARRANGEMENTS: dict[str, Arrangement] = {
    "overview": Arrangement(
        (Column((Slot("overview", 0), Slot("findings"))),),
        narrow=(Slot("overview"), Slot("findings", 0)),
        focus="findings",
        wide=(
            Column((Slot("overview", 0), Slot("findings")), 9),
            Column((Slot("kernels", 0), Slot("output")), 5),
        ),
    ),
    "source": Arrangement(
        _columns((38, "source"), (31, "graph"), (35, "kernel")),
        narrow=(Slot("source"), Slot("kernel")),
        focus="source",
        wide=_columns((9, "source"), (8, "graph"), (9, "kernel"), (9, "beside")),
    ),
    "graph": Arrangement(
        _columns((5, "picture"), (2, "node")),
        narrow=(Slot("picture", 5), Slot("node", 2)),
        focus="picture",
    ),
    "break": Arrangement(
        (Column((Slot("source-break"), Slot("break"))), Column((Slot("sides"),))),
        narrow=(Slot("source-break"), Slot("break")),
        focus="source-break",
    ),
    "recompiles": Arrangement(
        (Column((Slot("causes"), Slot("guards")), 5), Column((Slot("why"),), 4)),
        top=Slot("cache", 0),
        narrow=(Slot("cache", 0), Slot("causes", 1)),
        focus="causes",
    ),
    "guards": Arrangement(
        _columns((3, "guards"), (2, "source")), narrow=(Slot("guards"),), focus="guards"
    ),
    "fusion": Arrangement(
        (
            Column((Slot("loops-a", 0), Slot("became"))),
            Column((Slot("loops-b", 0), Slot("fusion"))),
        ),
        narrow=(Slot("loops-a", 0), Slot("fusion-narrow")),
        focus="fusion",
        wide=(
            Column((Slot("loops-a", 0), Slot("became")), 5),
            Column((Slot("loops-b", 0), Slot("source")), 5),
            Column((Slot("fusion"),), 7),
        ),
    ),
    "predict": Arrangement(
        _columns((1, "loops-a"), (1, "loops-b")),
        top=Slot("source", lines=6),
        narrow=(Slot("loops-a"), Slot("loops-b")),
        focus="loops-a",
    ),
    "score": Arrangement(
        _columns((3, "score"), (2, "source")), narrow=(Slot("score"),), focus="score"
    ),
    "notes": Arrangement(
        _columns((3, "notes"), (2, "source")), narrow=(Slot("notes"),), focus="notes"
    ),
    "kernels": Arrangement(
        _columns((2, "kernels"), (3, "kernel")),
        narrow=(Slot("kernels"), Slot("kernel")),
        focus="kernels",
        wide=_columns((4, "kernels"), (5, "kernel"), (4, "source")),
    ),
    "memory": Arrangement(_columns((1, "memory")), narrow=(Slot("memory"),), focus="memory"),
    "autograd": Arrangement(
        _columns((2, "autograd"), (1, "source")), narrow=(Slot("autograd"),), focus="autograd"
    ),
    "steps": Arrangement(
        (
            Column((Slot("bytecode"),), 10),
            Column((Slot("stack"), Slot("locals", 2)), 10),
            Column((Slot("growing", 2), Slot("growing-guards")), 9),
        ),
        top=Slot("source-step", lines=9),
        narrow=(Slot("source-step", lines=5), Slot("bytecode", 4), Slot("frame", 5)),
        focus="bytecode",
        wide=(
            Column((Slot("bytecode"),), 4),
            Column((Slot("stack"), Slot("locals", 2)), 4),
            Column((Slot("growing"),), 4),
            Column((Slot("growing-guards"),), 4),
        ),
    ),
    "profile": Arrangement(
        _columns((11, "source"), (10, "profile-why")),
        top=Slot("profile", 0),
        narrow=(Slot("profile", 5), Slot("profile-why", 2)),
        focus="profile",
        wide=(
            Column((Slot("source"),), 10),
            Column((Slot("profile-why"),), 8),
            Column((Slot("region-compiled", 0), Slot("kernel")), 10),
        ),
    ),
    "region": Arrangement(
        (
            Column((Slot("region-eager", 0), Slot("source"))),
            Column((Slot("region-compiled", 0), Slot("profile-why"))),
        ),
        narrow=(Slot("region-compiled"), Slot("region-eager")),
        focus="region-compiled",
        wide=(
            Column((Slot("region-eager", 0), Slot("source"))),
            Column((Slot("region-compiled", 0), Slot("kernel"))),
            Column((Slot("profile-why"), Slot("graph"))),
        ),
    ),
    "account": Arrangement(
        _columns((13, "modes"), (9, "precision")),
        top=Slot("account", 0),
        narrow=(Slot("account", 3), Slot("modes", 2)),
        focus="account",
    ),
    "differences": Arrangement(
        (
            Column((Slot("source-base", 3), Slot("changed", 2))),
            Column((Slot("source-run", 3), Slot("diff", 2))),
        ),
        top=Slot("effects", 0),
        narrow=(Slot("effects", 0), Slot("source-base"), Slot("source-run")),
        focus="effects",
        wide=(
            Column((Slot("source-base"),), 5),
            Column((Slot("source-run"),), 5),
            Column((Slot("changed"), Slot("diff")), 4),
        ),
    ),
    "ranks": Arrangement(
        _columns((5, "ranks"), (3, "source")),
        narrow=(Slot("ranks", 3), Slot("source", 2)),
        focus="ranks",
    ),
    "what-if": Arrangement(
        _columns((7, "diff"), (4, "changed")),
        top=Slot("what-if", 0),
        narrow=(Slot("what-if", 0), Slot("diff", 3), Slot("changed", 2)),
        focus="diff",
    ),
    "engines": Arrangement(
        (Column((Slot("engines"),)), Column((Slot("engine-a"), Slot("engine-b")))),
        narrow=(Slot("engines"), Slot("engine-b")),
        focus="engines",
        wide=_columns((4, "engines"), (5, "engine-a"), (5, "engine-b")),
    ),
    "output": Arrangement(_columns((1, "output")), narrow=(Slot("output"),), focus="output"),
    "start": Arrangement(
        (Column((Slot("source"),), 3), Column((Slot("settings", 5), Slot("breakpoints", 2)), 2)),
        narrow=(Slot("source"),),
        focus="source",
    ),
    "settings": Arrangement(
        _columns((2, "settings"), (3, "overview")), narrow=(Slot("settings"),), focus="settings"
    ),
    "decision": Arrangement(
        (Column((Slot("source"),)), Column((Slot("decisions"), Slot("graph")))),
        narrow=(Slot("source"), Slot("decisions")),
        focus="decisions",
        wide=_columns((3, "source"), (3, "graph"), (4, "decisions")),
    ),
    "breakpoints": Arrangement(
        _columns((3, "breakpoints"), (2, "source")),
        narrow=(Slot("breakpoints"),),
        focus="breakpoints",
    ),
    "overrides": Arrangement(
        _columns((3, "overrides"), (2, "fusion")), narrow=(Slot("overrides"),), focus="overrides"
    ),
}

PROFILES = ("profile", "region", "account")
"""Arrangements of what `tcw profile` measures."""

PRESENTED: dict[str, tuple[str, ...]] = {
    "overview": ("overview", "findings"),
    "source": ("graph", "kernel"),
    "steps": ("bytecode", "growing"),
    "break": ("break", "sides"),
    "fusion": ("loops-a", "loops-b"),
    "recompiles": ("cache", "causes"),
    "profile": ("profile",),
    "region": ("region-eager", "region-compiled"),
}
"""Arrangement -> its panes for an audience."""


def presented(name: str, arrangement: Arrangement) -> Arrangement:
    """An arrangement for an audience: a few lines of source above two panes at most."""
    slots = [slot for column in arrangement.columns for slot in column.slots]
    if arrangement.top is not None:
        slots.insert(0, arrangement.top)
    sources = [slot.pane for slot in slots if slot.pane.startswith("source")]
    others = [slot.pane for slot in slots if not slot.pane.startswith("source")]
    panes = PRESENTED.get(name, tuple(others[:2])) or tuple(sources)
    shown = sources[:1] or (["source"] if name == "fusion" else [])
    return Arrangement(
        _columns(*((1, pane) for pane in panes)),
        top=Slot(shown[0], lines=6) if shown and panes[0] != shown[0] else None,
        narrow=tuple(Slot(pane) for pane in panes),
        focus=panes[0],
    )


STAGES = {
    "capture": "source",
    "guards": "guards",
    "autograd": "autograd",
    "fusion": "fusion",
    "memory": "memory",
    "kernels": "kernels",
    "profile": "profile",
    **dict.fromkeys(("  forward", "  backward", "  step"), "profile"),
}
"""Stage of the spine -> arrangement."""
