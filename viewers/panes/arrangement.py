"""Which panes stand where: the arrangements of the workbench, by width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from tcw.compiler.protocol.decision import FUSE, SAVE, split_id
from tcw.compiler.trace.records import CacheLookup, GraphBreak, Recompile, Waiting, WhatIf
from tcw.compiler.trace.records.session import FactKind
from tcw.viewers.panes import (
    account,
    autograd,
    breakpoints,
    breaks,
    bytecode,
    changes,
    decision_bar,
    engine_pair,
    findings,
    fusion,
    guard_list,
    kernel,
    memory_chart,
    nests,
    node,
    node_list,
    notes,
    output,
    overview,
    pair_loops,
    picture,
    ranks,
    recompiles,
    region,
    score,
    settings,
    source,
    stepping,
    waterfall,
    what_if,
)
from tcw.viewers.panes.rows import Content, empty
from tcw.viewers.panes.view import View
from tcw.viewers.words import NOT_IN_LOG

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
    "graph": node_list.content,
    "picture": picture.content,
    "node": node.content,
    "kernel": kernel.content,
    "kernels": kernel.kernel_list,
    "break": breaks.explanation,
    "sides": breaks.sides,
    "cache": recompiles.cache,
    "causes": recompiles.causes,
    "why": recompiles.why,
    "guards": guard_list.content,
    "loops-a": partial(pair_loops.loops, side="A"),
    "loops-b": partial(pair_loops.loops, side="B"),
    "became": pair_loops.if_fused,
    "fusion": fusion.decisions,
    "fusion-narrow": pair_loops.loops_or_list,
    "loops": nests.content,
    "beside": beside,
    "memory": memory_chart.content,
    "autograd": autograd.content,
    "output": output.content,
    "score": score.content,
    "notes": notes.content,
    "breakpoints": breakpoints.content,
    "overrides": breakpoints.override_list,
    "settings": settings.content,
    "decisions": decision_bar.decisions,
    "source-step": source.stepped,
    "bytecode": bytecode.content,
    "stack": stepping.stack,
    "locals": stepping.local_variables,
    "frame": stepping.both,
    "growing": stepping.growing_graph,
    "growing-guards": stepping.growing_guards,
    "profile": waterfall.content,
    "profile-why": region.why,
    "region-eager": region.eager,
    "region-compiled": region.compiled,
    "account": account.content,
    "modes": account.modes,
    "precision": account.precision,
    "effects": what_if.effects_list,
    "ranks": ranks.content,
    "source-base": what_if.source_base,
    "source-run": what_if.source_run,
    "what-if": what_if.verdict,
    "diff": changes.diff,
    "changed": changes.changed,
    "engines": engine_pair.content,
    "engine-a": partial(engine_pair.side, second=False),
    "engine-b": partial(engine_pair.side, second=True),
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
    content = pane(view, width)
    if view.derived.trace.lacks(kind):
        return replace(content, rows=empty(width, NOT_IN_LOG))
    return content


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


def _slot(text: str) -> Slot:
    """`source`; `source:3`, a share of the height; `source=6`, a height in lines."""
    rest, _, lines = text.partition("=")
    pane, _, share = rest.partition(":")
    return Slot(pane, int(share or 1), int(lines or 0))


def _slots(text: str) -> tuple[Slot, ...]:
    return tuple(map(_slot, text.split()))


def _columns(text: str) -> tuple[Column, ...]:
    """`3 source | 2 graph node`: columns, each with its share of the width and its panes."""
    parts = (part.split(maxsplit=1) for part in text.split("|") if part)
    return tuple(Column(_slots(panes), int(share)) for share, panes in parts)


def _arranged(
    columns: str, *, top: str = "", narrow: str = "", focus: str, wide: str = ""
) -> Arrangement:
    above = _slot(top) if top else None
    return Arrangement(_columns(columns), above, _slots(narrow or focus), focus, _columns(wide))


ARRANGEMENTS: dict[str, Arrangement] = {
    "overview": _arranged(
        "1 overview:0 findings",
        narrow="overview findings:0",
        focus="findings",
        wide="9 overview:0 findings | 5 kernels:0 output",
    ),
    "source": _arranged(
        "38 source | 31 graph | 35 kernel",
        narrow="source kernel",
        focus="source",
        wide="9 source | 8 graph | 9 kernel | 9 beside",
    ),
    "graph": _arranged("5 picture | 2 node", narrow="picture:5 node:2", focus="picture"),
    "break": _arranged(
        "1 source-break break | 1 sides", narrow="source-break break", focus="source-break"
    ),
    "recompiles": _arranged(
        "5 causes guards | 4 why", top="cache:0", narrow="cache:0 causes", focus="causes"
    ),
    "guards": _arranged("3 guards | 2 source", focus="guards"),
    "fusion": _arranged(
        "1 loops-a:0 became | 1 loops-b:0 fusion",
        narrow="loops-a:0 fusion-narrow",
        focus="fusion",
        wide="5 loops-a:0 became | 5 loops-b:0 source | 7 fusion",
    ),
    "predict": _arranged(
        "1 loops-a | 1 loops-b", top="source=6", narrow="loops-a loops-b", focus="loops-a"
    ),
    "score": _arranged("3 score | 2 source", focus="score"),
    "notes": _arranged("3 notes | 2 source", focus="notes"),
    "kernels": _arranged(
        "2 kernels | 3 kernel",
        narrow="kernels kernel",
        focus="kernels",
        wide="4 kernels | 5 kernel | 4 source",
    ),
    "memory": _arranged("1 memory", focus="memory"),
    "autograd": _arranged("2 autograd | 1 source", focus="autograd"),
    "steps": _arranged(
        "10 bytecode | 10 stack locals:2 | 9 growing:2 growing-guards",
        top="source-step=9",
        narrow="source-step=5 bytecode:4 frame:5",
        focus="bytecode",
        wide="4 bytecode | 4 stack locals:2 | 4 growing | 4 growing-guards",
    ),
    "profile": _arranged(
        "11 source | 10 profile-why",
        top="profile:0",
        narrow="profile:5 profile-why:2",
        focus="profile",
        wide="10 source | 8 profile-why | 10 region-compiled:0 kernel",
    ),
    "region": _arranged(
        "1 region-eager:0 source | 1 region-compiled:0 profile-why",
        narrow="region-compiled region-eager",
        focus="region-compiled",
        wide="1 region-eager:0 source | 1 region-compiled:0 kernel | 1 profile-why graph",
    ),
    "account": _arranged(
        "13 modes | 9 precision", top="account:0", narrow="account:3 modes:2", focus="account"
    ),
    "differences": _arranged(
        "1 source-base:3 changed:2 | 1 source-run:3 diff:2",
        top="effects:0",
        narrow="effects:0 source-base source-run",
        focus="effects",
        wide="5 source-base | 5 source-run | 4 changed diff",
    ),
    "ranks": _arranged("5 ranks | 3 source", narrow="ranks:3 source:2", focus="ranks"),
    "what-if": _arranged(
        "7 diff | 4 changed", top="what-if:0", narrow="what-if:0 diff:3 changed:2", focus="diff"
    ),
    "engines": _arranged(
        "1 engines | 1 engine-a engine-b",
        narrow="engines engine-b",
        focus="engines",
        wide="4 engines | 5 engine-a | 5 engine-b",
    ),
    "output": _arranged("1 output", focus="output"),
    "start": _arranged("3 source | 2 settings:5 breakpoints:2", focus="source"),
    "settings": _arranged("2 settings | 3 overview", focus="settings"),
    "decision": _arranged(
        "1 source | 1 decisions graph",
        narrow="source decisions",
        focus="decisions",
        wide="3 source | 3 graph | 4 decisions",
    ),
    "breakpoints": _arranged("3 breakpoints | 2 source", focus="breakpoints"),
    "overrides": _arranged("3 overrides | 2 fusion", focus="overrides"),
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
        tuple(Column((Slot(pane),)) for pane in panes),
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


def arrangement_for(view: View, waiting: Waiting) -> str:
    """The arrangement that shows what it waits at."""
    if waiting.decision:
        asked = view.recording.decisions.asked.get(waiting.decision)
        kind = asked.kind if asked is not None else split_id(waiting.decision)[1]
        return {FUSE: "fusion", SAVE: "autograd"}.get(kind, "decision")
    if waiting.kind == "event":
        last = max(
            (view.recording.last(kind) for kind in (GraphBreak, Recompile, CacheLookup)),
            key=lambda record: record.at if record is not None else -1.0,
        )
        if isinstance(last, GraphBreak):
            return "break"
        return "recompiles" if isinstance(last, Recompile) else "overview"
    if waiting.kind == "end" and view.derived.profile is not None:
        return "profile"
    if waiting.kind == "end":
        compared = view.base is not None or view.recording.last(WhatIf) is not None
        return "what-if" if compared else "overview"
    if waiting.kind in ("graph", "pass"):
        return "graph"
    if waiting.kind == "start":
        return "start"
    if waiting.stage == "capture" or waiting.kind == "step":
        return "steps"
    if waiting.stage in ("codegen", "build"):
        return "kernels"
    return waiting.stage if waiting.stage in ("autograd", "fusion", "memory") else "source"
