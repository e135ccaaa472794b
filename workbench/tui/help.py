"""Help for each pane: a sentence, the keys that matter there, the badges."""

from __future__ import annotations

from tcw.viewers.kit.cells import pad
from tcw.viewers.kit.spans import Line
from tcw.workbench.tui.commands import Commands

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
_KEYS: tuple[tuple[str, str, str, str], ...] = (
    ("down up scroll_left scroll_right", "move, scroll sideways", "first last", "first, last row"),
    ("open  back", "one level in, out", "next_pane =1–9", "pane"),
    ("previous_kind next_kind", "next of this kind", "previous_language next_language",
     "language, kind of graph"),
    ("next_finding previous_finding", "next, previous finding", "next_hit previous_hit",
     "next hit, counterpart"),
    ("search", "search", "palette", "all commands"),
    ("zoom  layout", "zoom, turn the layout", "wider narrower", "more, less room"),
    ("copy", "copy the fix or the row", "order", "order"),
    ("raw", "kernels raw or tidied", "torch_text", "torch's own text"),
    ("engine", "the other engine", "profile times", "profile, times by line"),
    ("step over out line", "step, over, out, line", "to_cursor continue",
     "to the cursor, continue"),
    ("next_decision next_pass next_graph stage", "next decision … stage",
     "breakpoint breakpoints", "break here, breakpoints"),
    ("accept veto force", "accept, veto, force", "what_if measure keep undo",
     "what-if, measure, keep, undo"),
    ("earlier later previous_stage next_stage", "record, stage in time", "live", "now"),
    ("overrides write", "overrides, write them", "quit", "quit"),
)  # fmt: skip
"""Commands and what they do, twice on a line. A blank more between two is shown."""
_BADGES: tuple[Line, ...] = (
    (("✗", "bad"), (" graph break, rejected   ", "dim"), ("↻", "warn"), (" recompile   ", "dim"),
     ("✓", "good"), (" served, fused", "dim")),
    (("≈18", "warn"), (" torch recorded no line; 18 is inferred   ", "dim"), ("▸", "faint"),
     (" folded", "dim")),
)  # fmt: skip


def lines(commands: Commands, pane: str, name: str) -> list[Line]:
    """At most twenty."""
    found: list[Line] = [((name, "title"),), ((SENTENCES.get(pane, ""), "text"),), ()]
    column = max(9, *(len(commands.keys(key)) + 1 for key, *_ in _KEYS))
    for key, words, other, more in _KEYS:
        found.append(
            (
                (pad(commands.keys(key), column), "key"),
                (pad(words, 26), "text"),
                (pad(commands.keys(other), 9), "key"),
                (more, "text"),
            )
        )
    return [*found, (), *_BADGES]
