"""Fusion: what was fused, what waits, what was rejected and by which rule; the open decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.cells import cell_len

from tcw.compiler.protocol.decision import FUSE, MOST_BETWEEN
from tcw.compiler.trace import refs
from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import Decided, Run, SchedulerNode
from tcw.compiler.trace.refs import Ref
from tcw.viewers.kit.cells import cut, pad, pad_left
from tcw.viewers.kit.spans import Line, Role, Span, text, width_of
from tcw.viewers.labels import operations_text
from tcw.viewers.panes.nests import computes, place_of
from tcw.viewers.panes.rows import BLANK, Content, Row, empty, text_row
from tcw.viewers.panes.targets import Fold, ToPair
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain
from tcw.viewers.summary.fusion import (
    PairResult,
    history,
    members_of,
    pair_asked,
    rule_words,
    saved_bytes,
    with_asked,
)
from tcw.viewers.words import bytes_text, number, plural

WITH_NODES = 70
"""From this width on the scheduler nodes of a pair are named."""
TESTS_FROM = 84
"""From this width on the number of tests is shown."""
NAMES = 34
"""Width of their names, in cells, if there is no more room."""
MOST_MEASURED = 400
"""Pairs whose names set the width."""
FEW = 4
"""Rejected pairs shown per rule before it is unfolded."""
PASSED = "allowed, but one side had already fused with another node"
GLYPHS: dict[str, tuple[str, Role]] = {
    "fused": ("✓", "good"),
    "asked": ("◆", "accent"),
    "queued": ("·", "dim"),
    "rejected": ("✗", "dim"),
    "passed": ("·", "dim"),
}
_ORDER = {verdict: place for place, verdict in enumerate(GLYPHS)}


def waiting_decision(view: View) -> Decided | None:
    """The decision on a pair that waits at the reader's place in time."""
    asked = view.asked
    return asked if asked is not None and asked.kind == FUSE else None


def graph_of(view: View) -> str:
    """The graph whose decisions are shown: that of the decision that waits, else the forward."""
    asked = waiting_decision(view)
    if view.question is not None:
        return _lowered(view, view.question.graph)
    return _lowered(view, asked.graph) if asked is not None else view.loop_graph()


def _lowered(view: View, graph: str) -> str:
    """The graph that the scheduler nodes of a decision's graph are recorded under."""
    lowered = f"{graph}/lowered"
    known = any(name == lowered for name, _ in view.recording.operations)
    return lowered if known else graph


def pairs_of(view: View) -> list[PairResult]:
    """The pairs of the graph in the order of the list: fused, asked, queued, rejected by rule; in
    each the ones that move most bytes first, or in the order in which they were decided."""
    graph = graph_of(view)
    found = {pair.id: pair for pair in view.derived.pairs.get(graph, ())}
    asked = waiting_decision(view)
    if asked is not None:
        found[asked.id] = with_asked(found.get(asked.id), asked, graph)
    question = view.question
    if question is not None and question.id not in found:
        found[question.id] = pair_asked(question.id, graph, question.first, question.second)
    pairs = [pair for pair in found.values() if _passes(view, pair)]
    if view.order != "time":
        pairs.sort(key=lambda pair: -(saved_bytes(pair) or 0))
    counts = Counter(pair.rule for pair in pairs if pair.verdict == "rejected")
    place = {rule: index for index, (rule, _) in enumerate(counts.most_common())}
    return sorted(pairs, key=lambda pair: (_ORDER[pair.verdict], place.get(pair.rule, 0)))


def _passes(view: View, pair: PairResult) -> bool:
    """Whether a pair concerns the nodes that the reader filters by."""
    words = view.pair_filter.casefold()
    if not words:
        return True
    said = f"{pair.id} {pair.first} {pair.second}".casefold()
    if words in said:
        return True
    nodes = (*nodes_of(view, pair.graph, pair.first), *nodes_of(view, pair.graph, pair.second))
    return any(words in name.casefold() for node in nodes for name in (*node.origins, node.label))


def chosen_pair(view: View) -> PairResult | None:
    """The current pair: the reader's, else the one that waits, else the first."""
    pairs = pairs_of(view)
    chosen = next((pair for pair in pairs if pair.id == view.pair), None)
    chosen = chosen or next((pair for pair in pairs if pair.verdict == "asked"), None)
    return chosen or (pairs[0] if pairs else None)


def label_of(view: View, graph: str, name: str) -> str:
    """`op9_op10_op11` -> `amax, amax, any`: of each node in a group, what it computes last."""
    words = [computes(view, node) for node in nodes_of(view, graph, name)]
    return ", ".join(words) or plain(name)


def between_words(view: View, graph: str, between: Sequence[str]) -> str:
    """The loops between two nodes, as the panes name them, each with its line:
    `exp :17, sum layers.py:18`; "" if none is recorded."""
    found = [
        computes(view, node) + place_of(view, node)
        for name in between[:MOST_BETWEEN]
        for node in nodes_of(view, _lowered(view, graph), name)
    ]
    more = ", …" if len(between) > MOST_BETWEEN else ""
    return plain(", ".join(dict.fromkeys(found))) + more if found else ""


def between_rows(view: View, graph: str, between: Sequence[str]) -> list[Row]:
    """The line of a bar that names them; none if nothing is between."""
    words = between_words(view, graph, between)
    return [text_row(("between  ", "dim"), words)] if words else []


def things_of(pair: PairResult) -> list[Ref]:
    """The scheduler nodes on both sides."""
    names = [*members_of(pair.first), *members_of(pair.second)]
    return [refs.operation(pair.graph, name) for name in names]


def nodes_of(view: View, graph: str, name: str) -> list[SchedulerNode]:
    """The scheduler nodes of a group: of `op9_op10`, or of a group that is known by the name of a
    node of the graph that it computes."""
    operations = view.recording.operations
    known = (operations.get((graph, part)) for part in members_of(name))
    nodes = [node for node in known if node is not None]
    if nodes:
        return nodes
    named = (node for (of, _), node in operations.items() if of == graph and name in node.origins)
    return list(named)[-1:]


def decisions(view: View, width: int) -> Content:
    """Every pair once: fused first, the open one, then the rejected by rule, the largest group
    first."""
    graph = graph_of(view)
    subject = base_graph(graph)
    if view.hidden:
        return Content("fusion", subject, rows=empty(width, "hidden until you choose"))
    pairs = pairs_of(view)
    if not pairs:
        return Content("fusion", subject, rows=_nothing(view, graph, width))
    rows: list[Row] = []
    told = _told_once(view, pairs)
    column = _column(view, told, width)
    groups: dict[str, list[PairResult]] = {}
    for pair in told:
        if pair.verdict in ("rejected", "passed"):
            groups.setdefault(pair.rule, []).append(pair)
        else:
            rows.append(_row(view, pair, column, width))
    for rule, members in groups.items():
        rows.extend(_rule(view, graph, rule, members, column, width))
    chosen = chosen_pair(view)
    start = str(ToPair(chosen.id)) if chosen else ""
    return Content("fusion", subject, _counts(view, pairs), rows, start, tracks=True)


def _column(view: View, pairs: list[PairResult], width: int) -> int:
    """Width of the names: more than most need only if nothing else is cut for it."""
    least = min(NAMES, max(12, width - (40 if width >= WITH_NODES else 24)))
    room = width - (3 + 16 + 8 + 7 + 20 if width >= TESTS_FROM else 40)
    if room <= least:
        return least
    longest = max(cell_len(_names(view, pair)) for pair in pairs[:MOST_MEASURED])
    return max(least, min(room, longest + 4))


def _names(view: View, pair: PairResult, room: int = 0) -> str:
    """`amax,exp + sum`. With little `room`, both sides are cut, so that the second remains."""
    first, second = (
        label_of(view, pair.graph, name).replace(", ", ",") for name in (pair.first, pair.second)
    )
    if room and cell_len(first) + cell_len(second) + 3 > room:
        half = (room - 3) // 2
        first = cut(first, max(half, room - 3 - cell_len(second)))
        second = cut(second, room - 3 - cell_len(first))
    return f"{first} + {second}"


def _told_once(view: View, pairs: list[PairResult]) -> list[PairResult]:
    """One row per two groups, although several of their nodes made a pair: the one that is looked
    at, else the one that was overruled, else the first."""
    found: dict[tuple[str, ...], PairResult] = {}

    def weight(pair: PairResult) -> int:
        overruled = pair.override is not None and pair.override.overridden
        return 2 * (pair.id == view.pair) + overruled

    for pair in pairs:
        key = (pair.verdict, pair.rule, pair.first, pair.second)
        known = found.get(key)
        if known is None or weight(pair) > weight(known):
            found[key] = pair
    return list(found.values())


def _counts(view: View, pairs: list[PairResult]) -> Line:
    fused = sum(pair.verdict == "fused" for pair in pairs)
    waiting = sum(pair.verdict in ("queued", "asked") for pair in pairs)
    words = f"{fused} fused · {number(len(pairs) - fused - waiting)} not"
    if waiting:
        words += f" · {number(waiting)} open"
    spans: list[Span] = []
    if view.pair_filter:
        spans.append(text(f"with {cut(view.pair_filter, 20)}   ", "accent"))
    return (*spans, (words, "dim"))


def _nothing(view: View, graph: str, width: int) -> list[Row]:
    if view.pair_filter:
        return empty(width, f"no pair involves {view.pair_filter}", "& and ⏎ shows all again")
    nodes = sum(node.graph == graph for node in view.recording.operations.values())
    name = base_graph(graph) or view.compile_id or "this recording"
    why = f"no pair to fuse in {plural(nodes, 'scheduler node')} of {name}"
    why = why if nodes else f"no fusion decision of {name} was recorded"
    return empty(width, why, view.not_reached("fusion"))


def _row(view: View, pair: PairResult, column: int, width: int, indent: int = 0) -> Row:
    glyph, role = GLYPHS[pair.verdict]
    quiet: Role = {"fused": "text", "asked": "strong"}.get(pair.verdict, "dim")  # type: ignore[assignment]
    names = _names(view, pair)
    room = column - (indent - 3 if indent else 0)
    shown = _names(view, pair, room - 1)
    lead: Span = (f" {glyph} ", role) if not indent else (" " * indent, "text")
    override = pair.override
    if override is not None:
        lead = (f"*{glyph} " if not indent else "*".rjust(indent - 1) + " ", "warn")
    left, right = operations_text(pair.first), operations_text(pair.second)
    size = saved_bytes(pair)
    kind = {"vertical": "chain", "horizontal": "beside", "": ""}[pair.kind]
    spans: list[Span] = [lead, text(pad(shown, room), quiet)]
    if width >= WITH_NODES:
        nodes = "" if names.startswith(f"{left} + ") else f"{left} {right}"
        spans.append(text(pad(cut(nodes, 15), 16), "dim"))
    spans.append((pad_left(bytes_text(size) if size is not None else "", 8), "dim"))
    if override is None or width >= WITH_NODES:
        spans.append((f"  {kind}", "dim"))
    if override is not None:
        note = f"  {override.wanted} refused" if override.refused else "  your choice"
        spans.append(text(note, "warn"))
    elif width >= TESTS_FROM and pair.tests:
        tests = f"{pair.tests} tests" if pair.tests > 1 else "1 test"
        spans.append((f"  round {pair.round}  {tests}" if pair.round else f"  {tests}", "faint"))
    if pair.verdict == "queued" and width_of(tuple(spans)) + 8 <= width:
        spans.append(("  queued", "faint"))
    return Row(body=tuple(spans), at=ToPair(pair.id), copies=pair.id, decision=pair.id)


def _rule(
    view: View, graph: str, rule: str, members: list[PairResult], column: int, width: int
) -> list[Row]:
    key = f"rule:{graph}:{rule}"
    opened = key in view.unfolded or len(members) <= FEW
    mark = "▾" if opened else "▸"
    reasons = dict.fromkeys(pair.reason for pair in members if pair.reason)
    words = rule_words(rule) if rule else PASSED
    note = f"   {next(iter(reasons))}" if rule and len(reasons) == 1 and width >= 76 else ""
    head = text_row(
        (" ✗ ", "bad") if rule else (" · ", "dim"),
        (f"{number(len(members))} ", "strong"),
        (words, "strong"),
        (note, "faint"),
        right=((f"{mark} ", "faint"),),
        key=key,
        opens=Fold(key),
    )
    shown = members if opened else members[:FEW]
    if not opened:
        shown += [pair for pair in members[FEW:] if pair.id == view.pair]
    rows = [BLANK, head, *(_row(view, pair, column, width, 5) for pair in shown)]
    if not opened and len(members) > len(shown):
        rest = f"     · {number(len(members) - len(shown))} more"
        rows.append(text_row((rest, "faint"), key=f"more:{key}", opens=Fold(key)))
    return rows


def _of_the_next_run(view: View, pair: PairResult) -> str:
    """The reader's choice for a pair, where the run that is shown does not have it; else ""."""
    wanted = view.overrides.get(pair.id, "")
    run = next((one for one in view.derived.trace.all(Run) if one.number == view.run), None)
    has = dict(run.settings.overrides).get(pair.id, "") if run is not None else wanted
    return plain(wanted) if wanted != has else ""


def history_words(view: View, pair: PairResult) -> str:
    """`round 1 apart: in a cycle · round 6 fused, since mean joined`; "" for a single round."""
    return plain(" · ".join(history(view.recording, pair)))


def verdict(view: View, width: int) -> list[Row]:
    """The bar below: the decision on the chosen pair, its rule and its numbers."""
    pair = chosen_pair(view)
    if pair is None or view.hidden:
        return []
    title = {
        "fused": "A and B were fused",
        "asked": "Fuse A and B?",
        "queued": "A and B may fuse; it is not decided yet",
        "passed": "A and B may fuse, but one side had already fused with another node",
        "rejected": f"A and B were kept apart: {rule_words(pair.rule)}",
    }[pair.verdict]
    wanted = _of_the_next_run(view, pair)
    if wanted and view.live and view.waiting is None:
        title = f"Run {view.run} goes on without your {wanted}, for comparison; in it {title}"
    elif wanted:
        title = f"{title}; your {wanted} is for the next run"
    chain = {
        "vertical": "B reads what A writes",
        "horizontal": "neither reads the other",
        "": "the engine's choice",
    }[pair.kind]
    tests = f"tested {plural(pair.tests, 'time')}" if pair.tests else ""
    if pair.last_test is not None and pair.round:
        tests += f", last in round {pair.round} ({pair.last_test.phase})"
    tests = history_words(view, pair) or tests
    rule: Line
    if pair.verdict == "rejected":
        reason = pair.reason or "no reason is given"
        rule = (("rule     ", "dim"), text(f"✗ {pair.rule}", "bad"), text(f"   {reason}", "text"))
    else:
        kind = f"{pair.kind}: " if pair.kind else ""
        mark: Span = ("· ", "dim") if wanted else ("✓ ", "good")
        rule = (("rule     ", "dim"), mark, (f"{kind}{chain}", "text"))
    score: list[Span] = [("score    ", "dim")]
    if pair.shared_bytes:
        score += [("shared bytes ", "text"), (bytes_text(pair.shared_bytes), "strong")]
    score.append((f"   {tests}", "faint"))
    if pair.score_text:
        score.append(text(f"   {pair.score_text}", "dim"))
    elif not pair.score and pair.verdict == "rejected":
        score.append(("   no score: only pairs that may fuse get one", "dim"))
    return [
        text_row(
            (title, "title"),
            right=() if view.presenting else (text(pair.id, "dim"), (" ", "text")),
            heading=True,
        ),
        text_row(*rule),
        *between_rows(view, pair.graph, pair.between),
        Row(body=tuple(score)),
    ]
