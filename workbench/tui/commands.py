"""Every key and what it does: one table for the keyboard, the footer, the help and the palette.

A key means the same everywhere. `gg` is the one sequence.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """`name` is the method of the screen, without `do_`."""

    name: str
    keys: tuple[str, ...]
    """Textual's names of keys."""
    shown: str
    """How the keys are written."""
    words: str
    """Verb first; the palette's entry."""


COMMANDS: tuple[Command, ...] = (
    Command("down", ("j", "down"), "j", "Move down"),
    Command("up", ("k", "up"), "k", "Move up"),
    Command("scroll_left", ("h", "left"), "h", "Scroll left"),
    Command("scroll_right", ("l", "right"), "l", "Scroll right"),
    Command("page_down", ("pagedown", "ctrl+d", "space"), "ctrl-d", "Move a page down"),
    Command("page_up", ("pageup", "ctrl+u"), "ctrl-u", "Move a page up"),
    Command("first", ("home",), "gg", "Go to the first row"),
    Command("last", ("G",), "G", "Go to the last row"),
    Command("open", ("enter",), "⏎", "Open what is selected"),
    Command("back", ("escape", "backspace"), "esc", "Go back"),
    Command("next_pane", ("tab",), "tab", "Go to the next pane"),
    Command("previous_pane", ("shift+tab",), "shift-tab", "Go to the previous pane"),
    Command("zoom", ("z",), "z", "Zoom this pane"),
    Command("layout", ("vertical_line",), "|", "Turn the layout: columns or rows"),
    Command("wider", ("plus", "equals_sign"), "+", "Give this pane more room"),
    Command("narrower", ("minus",), "−", "Give this pane less room"),
    Command("search", ("slash",), "/", "Search in this pane"),
    Command("next_hit", ("n",), "n", "Go to the next hit or counterpart"),
    Command("previous_hit", ("N",), "N", "Go to the previous hit or counterpart"),
    Command("next_finding", ("e",), "e", "Go to the next finding"),
    Command("previous_finding", ("E",), "E", "Go to the previous finding"),
    Command("next_kind", ("right_square_bracket",), "]", "Go to the next of this kind"),
    Command("previous_kind", ("left_square_bracket",), "[", "Go to the previous of this kind"),
    Command("next_language", ("right_parenthesis",), ")", "Show the next language or graph"),
    Command("previous_language", ("left_parenthesis",), "(", "Show the previous language or graph"),
    Command("order", ("o",), "o", "Order differently"),
    Command("raw", ("R",), "R", "Show kernels raw or tidied"),
    Command("torch_text", ("U",), "U", "Show torch's own text"),
    Command("times", ("C",), "C", "Show other times beside the source: compiled, eager, Δ"),
    Command("profile", ("V",), "V", "Go to the profile"),
    Command("engine", ("T",), "T", "Turn to the other engine or the next run"),
    Command("copy", ("y",), "y", "Copy this row or its fix"),
    Command("step", ("s",), "s", "Step to the next instruction, decision or stage"),
    Command("over", ("S",), "S", "Step over what is called"),
    Command("out", ("F",), "F", "Step out of the function"),
    Command("line", ("L",), "L", "Step to the next line"),
    Command("to_cursor", ("r",), "r", "Run to the cursor"),
    Command("continue", ("c",), "c", "Continue to the next breakpoint"),
    Command("next_decision", ("d",), "d", "Run to the next decision that matters"),
    Command("next_fusion", (), "", "Run to the next fusion decision"),
    Command("any_decision", (), "", "Run to the next decision of any kind"),
    Command("next_pass", ("P",), "P", "Run to the next pass"),
    Command("next_graph", ("H",), "H", "Run to the next graph"),
    Command("stage", ("t",), "t", "Run to the next stage"),
    Command("next_frame", (), "", "Run to the next frame"),
    Command("pause", ("i",), "i", "Interrupt: wait at the next place"),
    Command("stop", ("ctrl+c",), "ctrl-c", "Stop the recording; again, quit"),
    Command("breakpoint", ("b",), "b", "Break at the cursor, or choose where"),
    Command("breakpoints", ("B",), "B", "List breakpoints"),
    Command("delete", ("D", "delete"), "D", "Delete this breakpoint or override"),
    Command("accept", ("a",), "a", "Accept the engine's choice"),
    Command("veto", ("v",), "v", "Veto: choose otherwise"),
    Command("force", ("f",), "f", "Force the fusion"),
    Command("what_if", ("w",), "w", "What if: compile again with the overrides, and compare"),
    Command("measure", ("M",), "M", "Measure whole calls of both runs"),
    Command("keep", ("K",), "K", "Keep the overrides"),
    Command("undo", ("u",), "u", "Undo the last override"),
    Command("overrides", ("O",), "O", "List overrides"),
    Command("settings", ("comma",), ",", "Compile again with other settings"),
    Command("export", ("x",), "x", "Export the graph, or save a picture of the screen"),
    Command("picture", (), "", "Save a picture of the screen"),
    Command("weights", ("I",), "I", "Show or hide the weights in a graph"),
    Command("unfold_all", ("A",), "A", "Draw all of a graph, or fold it by module"),
    Command("close", ("Z",), "Z", "Close this pane"),
    Command("reset", (), "", "Put the panes back as they were"),
    Command("write", ("W",), "W", "Write the overrides to a file"),
    Command("later", ("greater_than_sign",), ">", "Go one record forward in time"),
    Command("earlier", ("less_than_sign",), "<", "Go one record back in time"),
    Command("next_stage", ("right_curly_bracket",), "}", "Go one stage forward in time"),
    Command("previous_stage", ("left_curly_bracket",), "{", "Go one stage back in time"),
    Command("live", ("end", "full_stop"), "end", "Go back to now"),
    Command("presenter", ("p",), "p", "Present: few large panes"),
    Command("predict", (), "", "Predict how pairs fuse, then see"),
    Command("note", ("m",), "m", "Note: write, edit or delete one on what is selected"),
    Command("notes", (), "", "List notes"),
    Command("filter", ("ampersand",), "&", "Filter regions of the profile, or fusion decisions"),
    Command("help", ("question_mark",), "?", "Show help"),
    Command("palette", ("colon",), ":", "Show all commands"),
    Command("quit", ("q",), "q", "Quit"),
)

BY_KEY: dict[str, Command] = {key: command for command in COMMANDS for key in command.keys}

Hint = tuple[str, str]

_PANES: Hint = ("tab", "pane")
_SEARCH: Hint = ("/", "search")
_COMPILE: Hint = ("[ ]", "compile")
_FIX: Hint = ("y", "copy fix")
_TORCH: Hint = ("U", "torch's text")
HINTS: dict[str, tuple[Hint, ...]] = {
    "overview": (
        ("j k", "move"), ("⏎", "open"), _PANES, _SEARCH, ("e", "next finding"), _FIX,
    ),
    "source": (
        ("j k", "line"), _PANES, ("n N", "counterpart"), ("( )", "language"), ("[ ]", "kernel"),
        ("|", "layout"), ("z", "zoom"),
    ),
    "graph": (
        ("h j k l", "follow edges"), ("+ −", "zoom"), ("⏎", "open group"), ("o", "as list"),
        ("x", "export svg, png, dot"),
        ("I", "weights"), ("A", "all groups"), ("← ↑ ↓ →", "pan"), _PANES, _SEARCH,
    ),
    "break": (("[ ]", "previous, next break"), ("⏎", "go to graph"), _FIX, _TORCH, _PANES),
    "recompiles": (("[ ]", "previous, next recompile"), ("⏎", "go to line"), _FIX, _TORCH, _PANES),
    "fusion": (
        ("[ ]", "previous, next pair"), ("⏎", "unfold"), _PANES, ("y", "copy id"), _SEARCH,
    ),
    "kernels": (("j k", "kernel"), ("⏎", "beside its source"), ("R", "raw"), _COMPILE, _PANES),
    "guards": (("⏎", "unfold"), _COMPILE, _PANES, _SEARCH),
    "memory": (("j k", "buffer"), ("o", "order: born, size, life"), _COMPILE, _SEARCH),
    "autograd": (("j k", "value"), _COMPILE, _PANES, _SEARCH),
    "profile": (
        ("⏎", "open region"), ("o", "order: Δ, line, time"), ("&", "filter"), _FIX,
        ("C", "times"), ("[ ]", "phase"), _PANES, ("x", "export"),
    ),
    "region": (
        ("⏎", "kernel's source"), ("[ ]", "previous, next region"), ("C", "times"), _PANES,
        ("y", "copy"),
    ),
    "account": (("j k", "move"), _PANES, ("y", "copy"), ("x", "export")),
    "output": (("j k", "line"), _SEARCH),
    "decision": (("j k", "decision"), ("⏎", "its line"), _PANES, _COMPILE, _SEARCH),
    "settings": (("⏎", "compile again so"), ("j k", "setting"), ("T", "next run"), _PANES),
    "start": (("s", "step"), ("c", "continue"), ("b", "breakpoint"), _PANES),
    "predict": (("[ ]", "previous, next pair"), _PANES, ("p", "presenter")),
    "score": (("j k", "move"), ("⏎", "go to the pair"), _PANES),
    "notes": (("j k", "note"), ("⏎", "go there"), ("m", "edit"), _PANES),
    "breakpoints": (("⏎", "on, off"), ("D", "delete"), ("b", "another"), _PANES),
    "overrides": (
        ("D", "delete"), ("u", "undo"), ("w", "what-if"), ("W", "write"), ("K", "keep"), _PANES,
    ),
    "steps": (("j k", "move"), ("R", "raw"), _PANES, _COMPILE, _SEARCH),
    "what-if": (("j k", "move"), _PANES, ("R", "raw"), _SEARCH),
    "engines": (("j k", "lines"), ("T", "other engine"), _PANES, ("R", "raw"), _SEARCH),
}  # fmt: skip
"""Footer, most useful first: whole keys are dropped from the end on a narrow screen."""

DECIDE: tuple[Hint, ...] = (
    ("a", "accept"), ("v", "veto"), ("f", "force"), ("c", "continue"), ("s", "next"),
    ("w", "what-if"), ("O", "overrides"), ("< >", "scrub"),
)  # fmt: skip
CHOOSE: tuple[Hint, ...] = (("a", "accept"), ("v", "choose otherwise"), *DECIDE[3:])
STEP: tuple[Hint, ...] = (
    ("s", "step"), ("S", "over"), ("F", "out"), ("L", "next line"), ("r", "run to cursor"),
    ("b", "breakpoint"), ("c", "continue"), ("< >", "scrub"),
)  # fmt: skip
STAND: tuple[Hint, ...] = (
    ("s", "step"), ("d", "next decision"), ("t", "next stage"), ("b", "breakpoint"),
    ("c", "continue"), _PANES, ("< >", "scrub"),
)  # fmt: skip
RUNNING: tuple[Hint, ...] = (
    ("i", "interrupt"), ("ctrl-c", "stop"), ("b", "breakpoint"), _PANES, ("< >", "scrub"),
)  # fmt: skip
OVER: tuple[Hint, ...] = (
    ("K", "keep overrides"), ("u", "undo"), ("W", "write"), ("M", "measure"), ("w", "what-if"),
    ("T", "next run"), ("V", "profile"), _PANES,
)  # fmt: skip
PAST: tuple[Hint, ...] = (
    ("< >", "record"), ("{ }", "stage"), ("end", "back to now"), ("s", "next stop"), _PANES,
    _SEARCH,
)  # fmt: skip
"""Footer of a driven compile, by what it stands at; and of a reader who went back in time."""

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
    ("what-if", "Go to the difference of two runs"),
    ("output", "Go to the program's output"),
    ("decision", "Go to the decisions"),
    ("notes", "Go to the notes"),
    ("score", "Go to the score of the guesses"),
    ("breakpoints", "Go to the breakpoints"),
    ("overrides", "Go to the overrides"),
    ("settings", "Go to the settings"),
)
"""Arrangements, as the palette offers them."""
