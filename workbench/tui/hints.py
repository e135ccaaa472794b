"""The footer's keys, named by their commands; and the arrangements in the palette."""

from __future__ import annotations

Hint = tuple[str, str]
"""(names of commands, what they do here). A name with `=` in front is a key without a command."""

_PANES: Hint = ("next_pane", "pane")
_SEARCH: Hint = ("search", "search")
_COMPILE: Hint = ("previous_kind next_kind", "compile")
_FIX: Hint = ("copy", "copy fix")
_TORCH: Hint = ("torch_text", "torch's text")
HINTS: dict[str, tuple[Hint, ...]] = {
    "overview": (
        ("down up", "move"),
        ("open", "open"),
        _PANES,
        _SEARCH,
        ("next_finding", "next finding"),
        _FIX,
    ),
    "source": (
        ("down up", "line"),
        _PANES,
        ("next_hit previous_hit", "counterpart"),
        ("previous_language next_language", "language"),
        ("previous_kind next_kind", "kernel"),
        ("layout", "layout"),
        ("zoom", "zoom"),
    ),
    "graph": (
        ("scroll_left down up scroll_right", "follow edges"),
        ("wider narrower", "zoom"),
        ("open", "open group"),
        ("order", "as list"),
        ("export", "export svg, png, dot"),
        ("weights", "weights"),
        ("unfold_all", "all groups"),
        ("=← =↑ =↓ =→", "pan"),
        _PANES,
        _SEARCH,
    ),
    "break": (
        ("previous_kind next_kind", "previous, next break"),
        ("open", "go to graph"),
        _FIX,
        _TORCH,
        _PANES,
    ),
    "recompiles": (
        ("previous_kind next_kind", "previous, next recompile"),
        ("open", "go to line"),
        _FIX,
        _TORCH,
        _PANES,
    ),
    "fusion": (
        ("previous_kind next_kind", "previous, next pair"),
        ("open", "unfold"),
        _PANES,
        ("copy", "copy id"),
        _SEARCH,
    ),
    "kernels": (
        ("down up", "kernel"),
        ("open", "beside its source"),
        ("raw", "raw"),
        _COMPILE,
        _PANES,
    ),
    "guards": (("open", "unfold"), _COMPILE, _PANES, _SEARCH),
    "memory": (("down up", "buffer"), ("order", "order: born, size, life"), _COMPILE, _SEARCH),
    "autograd": (("down up", "value"), _COMPILE, _PANES, _SEARCH),
    "profile": (
        ("open", "open region"),
        ("order", "order: Δ, line, time"),
        ("filter", "filter"),
        _FIX,
        ("times", "times"),
        ("previous_kind next_kind", "phase"),
        _PANES,
        ("export", "export"),
    ),
    "region": (
        ("open", "kernel's source"),
        ("previous_kind next_kind", "previous, next region"),
        ("times", "times"),
        _PANES,
        ("copy", "copy"),
    ),
    "account": (("down up", "move"), _PANES, ("copy", "copy"), ("export", "export")),
    "output": (("down up", "line"), _SEARCH),
    "decision": (("down up", "decision"), ("open", "its line"), _PANES, _COMPILE, _SEARCH),
    "settings": (
        ("open", "compile again so"),
        ("down up", "setting"),
        ("engine", "next run"),
        _PANES,
    ),
    "start": (("step", "step"), ("continue", "continue"), ("breakpoint", "breakpoint"), _PANES),
    "predict": (
        ("previous_kind next_kind", "previous, next pair"),
        _PANES,
        ("presenter", "presenter"),
    ),
    "score": (("down up", "move"), ("open", "go to the pair"), _PANES),
    "notes": (("down up", "note"), ("open", "go there"), ("note", "edit"), _PANES),
    "breakpoints": (("open", "on, off"), ("delete", "delete"), ("breakpoint", "another"), _PANES),
    "overrides": (
        ("delete", "delete"),
        ("undo", "undo"),
        ("what_if", "what-if"),
        ("write", "write"),
        ("keep", "keep"),
        _PANES,
    ),
    "steps": (("down up", "move"), ("raw", "raw"), _PANES, _COMPILE, _SEARCH),
    "differences": (
        ("next_hit previous_hit", "next, previous difference"),
        ("open", "in full"),
        _PANES,
        ("raw", "raw"),
        _SEARCH,
    ),
    "ranks": (("down up", "ranks"), ("open", "look at them"), _PANES, ("copy", "copy"), _SEARCH),
    "what-if": (("down up", "move"), _PANES, ("raw", "raw"), _SEARCH),
    "engines": (("down up", "lines"), ("engine", "other engine"), _PANES, ("raw", "raw"), _SEARCH),
}
"""Footers, the most useful keys first: a narrow screen drops keys from the end."""

DECIDE: tuple[Hint, ...] = (
    ("accept", "accept"),
    ("veto", "veto"),
    ("force", "force"),
    ("continue", "continue"),
    ("step", "next"),
    ("what_if", "what-if"),
    ("overrides", "overrides"),
    ("earlier later", "scrub"),
)
CHOOSE: tuple[Hint, ...] = (("accept", "accept"), ("veto", "choose otherwise"), *DECIDE[3:])
STEP: tuple[Hint, ...] = (
    ("step", "step"),
    ("over", "over"),
    ("out", "out"),
    ("line", "next line"),
    ("to_cursor", "run to cursor"),
    ("breakpoint", "breakpoint"),
    ("continue", "continue"),
    ("earlier later", "scrub"),
)
STAND: tuple[Hint, ...] = (
    ("step", "step"),
    ("next_decision", "next decision"),
    ("stage", "next stage"),
    ("breakpoint", "breakpoint"),
    ("continue", "continue"),
    _PANES,
    ("earlier later", "scrub"),
)
RUNNING: tuple[Hint, ...] = (
    ("pause", "interrupt"),
    ("stop", "stop"),
    ("breakpoint", "breakpoint"),
    _PANES,
    ("earlier later", "scrub"),
)
OVER: tuple[Hint, ...] = (
    ("keep", "keep overrides"),
    ("undo", "undo"),
    ("write", "write"),
    ("measure", "measure"),
    ("what_if", "what-if"),
    ("engine", "next run"),
    ("profile", "profile"),
    _PANES,
)
PAST: tuple[Hint, ...] = (
    ("earlier later", "record"),
    ("previous_stage next_stage", "stage"),
    ("live", "back to now"),
    ("step", "next stop"),
    _PANES,
    _SEARCH,
)
"""Footers of a driven compile, by where it waits; PAST, of a reader who went back in time."""

GOES: tuple[tuple[str, str], ...] = (
    ("overview", "Go to the overview"),
    ("source", "Go to source, graph and kernel"),
    ("steps", "Go to Dynamo's steps"),
    ("graph", "Go to the picture of the graph"),
    ("break", "Go to graph breaks"),
    ("recompiles", "Go to recompiles"),
    ("guards", "Go to guards"),
    ("autograd", "Go to what is kept for the backward"),
    ("fusion", "Go to fusion decisions"),
    ("kernels", "Go to the kernels"),
    ("memory", "Go to the memory plan"),
    ("profile", "Go to the profile: eager against compiled"),
    ("region", "Go to the region: kernels and operations side by side"),
    ("account", "Go to the account, the modes and the precision"),
    ("engines", "Go to both engines, lined up"),
    ("differences", "Go to what differs from the base"),
    ("ranks", "Go to the ranks: what they did differently"),
    ("what-if", "Go to the difference of two runs"),
    ("output", "Go to the program's output"),
    ("decision", "Go to the decisions"),
    ("notes", "Go to the notes"),
    ("score", "Go to the score of the guesses"),
    ("breakpoints", "Go to the breakpoints"),
    ("overrides", "Go to the overrides"),
    ("settings", "Go to the settings"),
)
"""(arrangement, its entry in the palette)."""
