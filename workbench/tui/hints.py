"""What the footer, the help and the palette say: keys, named by their commands; a sentence for each
pane; the arrangements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from tcw.viewers.kit.cells import pad
from tcw.viewers.kit.spans import Line
from tcw.workbench.tui.commands import Commands

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
        "previous_language next_language: language | previous_kind next_kind: kernel | "
        "zoom"
    ),
    "graph": hints_of(
        "scroll_left down up scroll_right: follow edges | larger smaller: zoom | "
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


SENTENCES: dict[str, str] = {
    "spine": "The calls, the compiles that each triggered, and the stages of the selected one.",
    "overview": "The answer: was it faster, and where was the model cut?",
    "findings": "What needs attention, by measured cost, each with its fix.",
    "source": "Your source. Select a line to highlight what it became, in every pane.",
    "source-break": "The line where the graph breaks; the columns that Dynamo cannot trace.",
    "graph": "The FX graph, with the line that each node comes from. ( ) shows other stages of it.",
    "picture": "The graph: boxes are kernels and calls. j k follow edges, ⏎ opens a group.",
    "node": "The block under the cursor: what it reads and writes, and why it is one.",
    "kernel": "The generated code, with its source lines. ( ) other language, R raw.",
    "kernels": "The generated kernels and library calls of this compile, with their lines.",
    "break": "Why the graph ended here, and what to do; the best fix first.",
    "sides": "The graph before the break, the values that cross it, and the graph after it.",
    "cache": "Each call and the frame's cache entries: which was reused, which guards failed.",
    "causes": "One entry per cause, with every frame that it recompiled.",
    "why": "The guard that failed, what it expected and saw, and how to avoid it.",
    "guards": "The conditions under which this compile can be reused, by kind.",
    "loops-a": "The first of the two: what it computes, as a loop nest. Shared buffers are blue.",
    "loops-b": "The second of the two: what it computes, as a loop nest. Shared buffers are blue.",
    "became": "The group of A after fusion, and that of B if it is another.",
    "loops": "What the scheduler starts with: each node as a loop nest.",
    "beside": "The same kernel in the other language, or the loops that it was made from.",
    "fusion": "Every pair that the scheduler considered, once: fused, or why not.",
    "fusion-narrow": "The pairs; while a decision waits, the second of the two, and the pairs.",
    "score": "How many of your guesses were right; the wrong ones by rule.",
    "notes": "Every note in this trace, and what it is on. m edits, an empty one is deleted.",
    "memory": "The live range of each buffer; its height is its size. Takes over: memory reuse.",
    "autograd": "What the forward saves for the backward, and what is recomputed.",
    "source-step": "The line that Dynamo traces, the columns of the instruction tinted.",
    "bytecode": "The instructions that Dynamo traces. → is an inlined function. R shows all.",
    "stack": "Dynamo's symbolic stack, the top first. Bold: what the last instruction put there.",
    "locals": "The variables of the function, as Dynamo knows them. Bold: stored just now.",
    "frame": "Dynamo's stack, the top first, and the variables of the function.",
    "growing": "The FX graph so far. ▸ is what the current instruction will add.",
    "growing-guards": "The guards so far, the last first, by the line that installed them.",
    "profile": "From eager to compiled time, by region of your code: ± is the noise. ⏎ opens one.",
    "profile-why": "Why: the causes of this region, then all others, by cost. y copies the fix.",
    "region-eager": "The operations that eager runs for these lines. roof: share of the roofline.",
    "region-compiled": "The kernels and calls that replace them. ⏎ shows a kernel's source.",
    "account": "Where the time of one call goes, on both sides, and how much is unexplained.",
    "modes": "Ways to run this model, each against eager; what tcw tried, and the outcomes.",
    "precision": "Each kernel's error against float64, next to eager's.",
    "effects": "What this recording does differently, by cost. n next, ⏎ shows one in full.",
    "ranks": "The ranks' first difference, then those that did the same. ⏎ opens one.",
    "source-base": "The source before the change. A line highlights its counterpart after it.",
    "source-run": "The source after the change. A line highlights its counterpart before it.",
    "what-if": "What the change cost, measured in turn; ± is what the noise of this run hides.",
    "diff": "The code of the changed kernel: - before, + after. Indentation does not count.",
    "changed": "What changed. j k choose the kernel that is shown.",
    "engines": "Both engines on the same lines: loop nests, calls, time, memory. T: the other one.",
    "engine-a": "The code that the first engine made of the chosen lines.",
    "engine-b": "The code that the second engine made of the chosen lines.",
    "output": "What the program printed, and how it failed, in full. `!` marks stderr.",
    "breakpoints": "Where the compile stops by itself. ⏎ switches one on or off, D deletes it.",
    "settings": "How this run was compiled. ⏎ on another choice compiles again and compares.",
    "decisions": "What the engine decided in this graph, and the decision that is open.",
    "overrides": "What you decided otherwise. K keeps them, u undoes the last, W writes a file.",
}
_KEYS = hints_of(
    "down up scroll_left scroll_right: move, scroll sideways | first last: first, last row | "
    "open  back: one level in, out | next_pane =1–9: pane | "
    "previous_kind next_kind: next of this kind | "
    "previous_language next_language: language, kind of graph | "
    "next_finding previous_finding: next, previous finding | "
    "next_hit previous_hit: next hit, counterpart | search | palette: all commands | "
    "zoom  presenter: zoom, present | order | copy: copy the fix or the row | "
    "torch_text: torch's own text | raw: kernels raw or tidied | "
    "profile times: profile, times by line | engine: the other engine | "
    "what_if measure keep undo: what-if … undo | "
    "accept veto force: accept, veto, force | live: now | "
    "earlier later previous_stage next_stage: record, stage in time | quit | "
    "overrides write: overrides, write them"
)
_DRIVEN = hints_of(
    "step over out line: step, over, out, line | to_cursor continue: to the cursor, continue | "
    "next_decision next_pass next_graph stage: next decision … stage | "
    "breakpoint breakpoints: break here, breakpoints"
)
"""A blank more between two commands is shown."""
MOST_LINES = 22
"""Of the help: what a terminal of 24 lines shows."""
_BADGES: tuple[Line, ...] = (
    (("✗", "bad"), (" graph break, rejected   ", "dim"), ("↻", "warn"), (" recompile   ", "dim"),
     ("✓", "good"), (" served, fused", "dim")),
    (("≈18", "warn"), (" torch recorded no line; 18 is inferred   ", "dim"), ("▸", "faint"),
     (" folded", "dim")),
)  # fmt: skip


def help_lines(
    commands: Commands, pane: str, name: str, here: Sequence[Hint], driven: bool
) -> list[Line]:
    """What the pane is for, the keys that matter `here`, then all others, with those of a driven
    compile if there is one."""
    lines: list[Line] = [((name, "title"),), ((SENTENCES.get(pane, ""), "text"),), ()]
    known = {name for names, _ in here for name in names.split()}
    others = [
        (names, words)
        for names, words in (*_KEYS, *(_DRIVEN if driven else ()))
        if not known.issuperset(names.split())
    ]
    groups = [[(commands.keys(names), words) for names, words in hints] for hints in (here, others)]
    column = max(9, *(len(key) + 1 for cells in groups for key, _ in cells[::2]))
    for cells in groups:
        for (key, words), (other, more) in zip_longest(cells[::2], cells[1::2], fillvalue=("", "")):
            lines.append(
                (
                    (pad(key, column), "key"),
                    (pad(words, 27), "text"),
                    (pad(other, 9), "key"),
                    (more, "text"),
                )
            )
        lines.append(())
    return [*lines, *_BADGES][:MOST_LINES]
