"""The decision that waits, with the keys that answer it, and the list of a compile's decisions."""

from __future__ import annotations

from tcw.compiler.protocol.decision import APART, FUSE, RECOMPUTE, SAVE, Decision, split_id
from tcw.compiler.trace import refs
from tcw.compiler.trace.records import Decided, SchedulerNode
from tcw.viewers.kit.cells import pad, wrap
from tcw.viewers.kit.spans import Line, Role, Span, text, width_of
from tcw.viewers.kit.table import Cell, table
from tcw.viewers.panes.fusion import between_rows
from tcw.viewers.panes.rows import BLANK, Content, Row, empty, text_row
from tcw.viewers.panes.targets import ToDecision
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain
from tcw.viewers.summary.fusion import Sides, rule_words, sides_of
from tcw.viewers.words import bytes_text, domain_text, listed, number, plural

ENGINES = {"inductor": "Inductor", "tcw": "tcw"}


LINES = 3
"""Maximum number of lines about what a choice means."""
NARROW = 100
"""Below this width only the essentials are shown."""


def rows(view: View, width: int) -> list[Row]:
    """The bar for the decision that waits; empty if none does."""
    asked = view.asked
    if asked is None:
        return []
    refused = _refused(view, asked, width)
    title = text(question(asked), "title")
    right: Line = (text(f"{asked.id}   ", "dim"), text(f"decision {count(view)}  ", "dim"))
    if width_of((title, *right)) + 3 > width:
        right = right[1:]
    return [
        text_row(title, right=right, heading=True),
        *_rules(view, asked, width),
        text_row(_label("numbers"), *_numbers(asked)),
        *_means(view, asked, width),
        *([refused] if refused is not BLANK or width >= NARROW else []),
        Row(body=buttons(asked, width)),
    ]


def question(asked: Decided) -> str:
    """`Fuse A and B?`; the user's or torch's names in it are plain already."""
    what = plain(names(asked.id))
    if asked.kind == FUSE:
        return (
            f"Fuse A and B?   {what}"
            if asked.shown.first and asked.shown.second
            else f"Fuse {what}?"
        )
    if asked.kind == SAVE:
        return f"Save {what} for the backward, or compute it again?"
    if asked.kind == "lowering":
        return f"Lower {what} to loops, or call ATen?"
    if asked.kind == "inline":
        return f"Compute {what} where it is read?"
    return f"{plain(asked.kind)} of {what}: which?"


def names(id: str) -> str:
    """`tcw/0/0/forward/fuse/exp+sum_1` -> `exp + sum_1`."""
    return " + ".join(split_id(id)[2])


def count(view: View) -> int:
    """The number of this decision among those asked in the run."""
    return view.recording.decisions.times_asked


def _owner(id: str) -> str:
    """Who chose the default."""
    name = id.partition("/")[0]
    return ENGINES.get(name, plain(name))


def _label(words: str) -> Span:
    return (pad(words, 9), "dim")


def sides(view: View, asked: Decided) -> tuple[list[SchedulerNode], list[SchedulerNode]]:
    """The scheduler nodes of both sides, as far as they were recorded."""
    known = {
        node.name: node
        for (graph, _), node in view.recording.operations.items()
        if graph == asked.graph or graph.startswith(asked.graph + "/")
    }
    first, second = (
        [known[name] for name in side if name in known]
        for side in (asked.shown.first, asked.shown.second)
    )
    return first, second


def _rules(view: View, asked: Decided, width: int) -> list[Row]:
    """What the two sides show, then the engine's rule and reason."""
    first, second = sides(view, asked)
    checks = []
    if first and second:
        found = sides_of(first, second)
        ticks = _checks(found, {node.device for node in (*first, *second)})
        checks = [text_row(_label("rule"), *ticks, *_chain(found, ticks, width))]
    spans: list[Span] = []
    agreed = asked.default not in (APART, RECOMPUTE)
    mark: Span = ("✓ ", "good") if agreed else ("✗ ", "bad")
    said = rule_words(asked.rule) if asked.rule else ""
    if said or asked.reason:
        spans += [mark, text(said, "strong"), text(f"   {asked.reason}", "text")]
    if not spans:
        spans.append(("the engine gives no rule for it", "dim"))
    row = text_row(_label("" if checks else "rule"), *spans)
    return [*checks, row, *between_rows(view, asked.graph, asked.between)]


def _checks(found: Sides, devices: set[str]) -> Line:
    """What the two sides show: their domain, shared data, device."""
    spans: list[Span] = []
    one, other = found.domains
    if one and other:
        shown, beside = map(domain_text, (one, other))
        if one == other:
            spans += [_tick(True), text(f"same domain {shown}   ")]
        else:  # whether that keeps them apart is for the engine's rule to say
            spans += [("· ", "dim"), text(f"domains {shown} and {beside}   ")]
    shared = bool(found.shared)
    spans += [_tick(shared), ("shared data   " if shared else "no shared data   ", "text")]
    spans += [_tick(len(devices) == 1), ("same device   ", "text")]
    return tuple(spans)


def _chain(found: Sides, ticks: Line, width: int) -> Line:
    """The relation of B to A, if there is room for it."""
    words = "B reads what A writes" if found.chained else "neither reads the other"
    spans: Line = (("→ ", "dim"), (words, "dim"))
    return spans if width_of((_label(""), *ticks, *spans)) < width else ()


def _tick(good: bool) -> Span:
    return ("✓ ", "good") if good else ("✗ ", "bad")


def _numbers(asked: Decided) -> Line:
    spans: list[Span] = []
    for name, value in sorted(asked.numbers.items(), key=lambda pair: not pair[1]):
        words = plain(name.replace("_", " "))
        whole = int(value) == value
        shown = number(int(value)) if whole else f"{value:g}"
        if name.endswith("bytes") and whole:
            shown = bytes_text(int(value))
        spans += [(f"{words} ", "text" if value else "faint")]
        spans += [(shown, "strong" if value else "faint"), ("   ", "text")]
    return tuple(spans) or (("none are given", "dim"),)


def _means(view: View, asked: Decided, width: int) -> list[Row]:
    """What the choices mean here (of a fusion: keeping apart), and what both sides share; on
    separate lines if one is too narrow for both."""
    spans: list[Span] = []
    shared = (
        sides_of(*sides(view, asked)).shared if width >= NARROW or not asked.shown.means else []
    )
    if shared:
        spans += [("both touch ", "dim"), text(listed(shared), "shared"), ("   ", "text")]
    if not asked.shown.means:
        return [text_row(_label("means"), *spans) if spans else BLANK]
    about = f"{APART}: " if asked.kind == FUSE else ""
    means: Line = (text(about, "dim"), text(asked.shown.means))
    if width_of((_label("means"), *spans, *means)) < width:
        return [text_row(_label("means"), *spans, *means)]
    lead = width_of((_label(""), means[0]))
    first, *rest = wrap(asked.shown.means, width - lead - 2)[: LINES if width >= NARROW else 1]
    rows = [text_row(_label("means"), means[0], first)]
    rows += [text_row(" " * lead, line) for line in rest]
    return [*rows, *([text_row(_label(""), *spans)] if spans else [])]


def _refused(view: View, asked: Decided, width: int) -> Row:
    refused = view.refused
    if refused is None:
        return BLANK
    words = f"✗ {plain(refused.choice)} refused: rule {plain(refused.rule)}"
    reason = f": {refused.reason}" if refused.reason else ""
    line = wrap(words + reason, 10_000)[0]
    still = "   the decision is still open" if width >= NARROW else "   it is still open"
    return text_row((line, "bad"), (still, "dim"))


def buttons(asked: Decided, width: int) -> Line:
    """` a accept   v veto   f force `, each with what it does here; faint where it does nothing."""
    narrow = width < NARROW
    owner = "" if narrow else f"{_owner(asked.id)}'s choice: "
    spans: list[Span] = [(" a accept ", "turn")]
    spans.append(text(f"  {owner}{asked.default}{_gap(narrow)}", "dim"))
    if asked.kind == FUSE:
        rejected = asked.default == APART
        rules = {forbidden.choice: plain(forbidden.rule) for forbidden in asked.forbidden}
        does = "keep apart" if narrow else "keep apart, on every path"
        against = f"rule {rules.get(APART)}" + ("" if narrow else " forbids it")
        against = "apart already" if rejected else against
        spans += _button("v veto", not rejected and APART not in rules, does, against, narrow)
        able = rejected and FUSE not in rules
        why = "only for a rejected pair"
        if FUSE in rules:
            why = f"rule {rules[FUSE]}" + ("" if narrow else " forbids it")
        does = "fuse" if narrow else "fuse them nevertheless"
        spans += _button("f force", able, does, why, narrow)
        return tuple(spans)
    others = [choice for choice in asked.choices if choice != asked.default]
    if len(others) == 1:
        rule = next(
            (forbidden.rule for forbidden in asked.forbidden if forbidden.choice == others[0]), ""
        )
        spans += _button(f"v {plain(others[0])}", not rule, "", f"rule {plain(rule)} forbids it")
    elif others:
        spans += _button("v other", True, " · ".join(plain(choice) for choice in others), "")
    else:
        spans.append(("there is no other choice", "faint"))
    return tuple(spans)


def _gap(narrow: bool) -> str:
    return "   " if narrow else "     "


def _button(words: str, able: bool, does: str, why: str, narrow: bool = False) -> list[Span]:
    role: Role = "button" if able else "off"
    said = (does if able else why) + _gap(narrow)
    return [(f" {words} ", role), (f"  {said}", "dim" if able else "faint")]


def choice_of(decision: Decided | Decision, key: str) -> str:
    """What `v` or `f` chooses; "" if there are several others to choose from."""
    if decision.kind == FUSE:
        return APART if key == "v" else FUSE
    others = [choice for choice in decision.choices if choice != decision.default]
    return others[0] if len(others) == 1 else ""


NAMES = 36
"""Cells of the names before the rule goes."""


def decisions(view: View, width: int) -> Content:
    """The decisions of a compile, of any kind, in the order of making; the open one last."""
    prefix, asked = view.compile_id + "/", view.asked
    decided = view.recording.decisions.decided.values()
    last = [one for one in decided if one.graph.startswith(prefix)]
    shown = [one for one in last if asked is None or one.id != asked.id]
    every = [*shown, *([asked] if asked is not None else [])]
    if not every:
        why = f"no decision of {view.compile_id or 'this recording'} was recorded"
        return Content("decisions", rows=empty(width, why, view.not_reached("fusion")))
    cells = [_cells(one, one is asked) for one in every]
    rows = [
        text_row(
            *line.spans,
            at=ToDecision(one.id),
            selects=refs.node(_lowered(one.graph), split_id(one.id)[2][0]),
            copies=one.id,
        )
        for one, line in zip(every, table(cells, "llelf", width - 1, 1, (4,), NAMES), strict=True)
    ]
    overruled = sum(one.overridden for one in last)
    said = [plural(len(shown), "decision")] if shown else []
    said += [f"{overruled} overridden"] if overruled else []
    said += ["1 open"] if asked is not None else []
    right: Line = ((" · ".join(said), "dim"),)
    start = str(ToDecision(asked.id)) if asked is not None else ""
    return Content("decisions", view.compile_id, right, rows, start, tracks=True)


def _cells(decided: Decided, waits: bool) -> list[Cell]:
    """Mark, kind, names, choice, and the rule if there is room."""
    mark: Span = ("✗", "bad") if decided.refused else ("·", "faint")
    mark = ("*", "accent") if decided.overridden and not decided.refused else mark
    mark = ("◆", "accent") if waits else mark
    role: Role = "strong" if waits else "text" if decided.overridden else "dim"
    choice: Cell = (
        f"{decided.default}?" if waits else decided.choice,
        "text" if role == "dim" else "strong",
    )
    rule = rule_words(decided.rule) if decided.rule else ""
    return [mark, (decided.kind, "dim"), (names(decided.id), role), choice, (rule, "faint")]


def _lowered(graph: str) -> str:
    return graph if graph.endswith("/lowered") else f"{graph}/lowered"
