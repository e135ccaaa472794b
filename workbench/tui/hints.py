"""The footer's keys, named by their commands; and the arrangements in the palette."""

from __future__ import annotations

Hint = tuple[str, str]
"""(names of commands, what they do here). A name with `=` in front is a key without a command."""


def hints_of(text: str) -> tuple[Hint, ...]:
    """`down up: move | search`: the hints, with their words if these are not the command's name."""
    parts = (part.partition(": ") for part in text.split(" | "))
    return tuple((names, words or names) for names, _, words in parts)


HINTS = {
    "overview": hints_of(
        "down up: move | open | next_pane: pane | search | next_finding: next finding | "
        "copy: copy fix"
    ),
    "source": hints_of(
        "down up: line | next_pane: pane | next_hit previous_hit: counterpart | "
        "previous_language next_language: language | previous_kind next_kind: kernel | layout | "
        "zoom"
    ),
    "graph": hints_of(
        "scroll_left down up scroll_right: follow edges | wider narrower: zoom | "
        "open: open group | order: as list | export: export svg, png, dot | weights | "
        "unfold_all: all groups | =← =↑ =↓ =→: pan | next_pane: pane | search"
    ),
    "break": hints_of(
        "previous_kind next_kind: previous, next break | open: go to graph | copy: copy fix | "
        "torch_text: torch's text | next_pane: pane"
    ),
    "recompiles": hints_of(
        "previous_kind next_kind: previous, next recompile | open: go to line | copy: copy fix | "
        "torch_text: torch's text | next_pane: pane"
    ),
    "fusion": hints_of(
        "previous_kind next_kind: previous, next pair | open: unfold | next_pane: pane | "
        "copy: copy id | search"
    ),
    "kernels": hints_of(
        "down up: kernel | open: beside its source | raw | previous_kind next_kind: compile | "
        "next_pane: pane"
    ),
    "guards": hints_of(
        "open: unfold | previous_kind next_kind: compile | next_pane: pane | search"
    ),
    "memory": hints_of(
        "down up: buffer | order: order: born, size, life | previous_kind next_kind: compile | "
        "search"
    ),
    "autograd": hints_of(
        "down up: value | previous_kind next_kind: compile | next_pane: pane | search"
    ),
    "profile": hints_of(
        "open: open region | order: order: Δ, line, time | filter | copy: copy fix | times | "
        "previous_kind next_kind: phase | next_pane: pane | export"
    ),
    "region": hints_of(
        "open: kernel's source | previous_kind next_kind: previous, next region | times | "
        "next_pane: pane | copy"
    ),
    "account": hints_of("down up: move | next_pane: pane | copy | export"),
    "output": hints_of("down up: line | search"),
    "decision": hints_of(
        "down up: decision | open: its line | next_pane: pane | previous_kind next_kind: compile | "
        "search"
    ),
    "settings": hints_of(
        "open: compile again so | down up: setting | engine: next run | next_pane: pane"
    ),
    "start": hints_of("step | continue | breakpoint | next_pane: pane"),
    "predict": hints_of(
        "previous_kind next_kind: previous, next pair | next_pane: pane | presenter"
    ),
    "score": hints_of("down up: move | open: go to the pair | next_pane: pane"),
    "notes": hints_of("down up: note | open: go there | note: edit | next_pane: pane"),
    "breakpoints": hints_of("open: on, off | delete | breakpoint: another | next_pane: pane"),
    "overrides": hints_of("delete | undo | what_if: what-if | write | keep | next_pane: pane"),
    "steps": hints_of(
        "down up: move | raw | next_pane: pane | previous_kind next_kind: compile | search"
    ),
    "differences": hints_of(
        "next_hit previous_hit: next, previous difference | open: in full | next_pane: pane | "
        "raw | search"
    ),
    "ranks": hints_of("down up: ranks | open: look at them | next_pane: pane | copy | search"),
    "what-if": hints_of("down up: move | next_pane: pane | raw | search"),
    "engines": hints_of("down up: lines | engine: other engine | next_pane: pane | raw | search"),
}
"""Footers, the most useful keys first: a narrow screen drops keys from the end."""

DECIDE = hints_of(
    "accept | veto | force | continue | step: next | what_if: what-if | overrides | "
    "earlier later: scrub"
)
CHOOSE = (("accept", "accept"), ("veto", "choose otherwise"), *DECIDE[3:])
STEP = hints_of(
    "step | over | out | line: next line | to_cursor: run to cursor | breakpoint | continue | "
    "earlier later: scrub"
)
STAND = hints_of(
    "step | next_decision: next decision | stage: next stage | breakpoint | continue | "
    "next_pane: pane | earlier later: scrub"
)
RUNNING = hints_of("pause: interrupt | stop | breakpoint | next_pane: pane | earlier later: scrub")
OVER = hints_of(
    "keep: keep overrides | undo | write | measure | what_if: what-if | engine: next run | "
    "profile | next_pane: pane"
)
PAST = hints_of(
    "earlier later: record | previous_stage next_stage: stage | live: back to now | "
    "step: next stop | next_pane: pane | search"
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
