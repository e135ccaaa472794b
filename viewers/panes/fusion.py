"""Fusion: what was fused, what was not and by which rule; both loop nests of the chosen pair."""

from __future__ import annotations

from compiler.trace import refs
from compiler.trace.records import FusionGroups, SchedulerNode
from compiler.trace.refs import Ref
from viewers.panes.names import operations_text
from viewers.panes.nests import computes, nests, traffic
from viewers.panes.rows import (
    BLANK,
    Content,
    Line,
    Role,
    Row,
    Span,
    empty,
    pad,
    pad_left,
    text,
    width_of,
)
from viewers.panes.view import View
from viewers.places import cut
from viewers.plain import plain
from viewers.summary import Pair, rule_words
from viewers.words import bytes_text, number, plural

FEW = 4
"""Rejected pairs that are shown of a rule before it is unfolded."""
GLYPHS: dict[str, tuple[str, Role]] = {
    "fused": ("✓", "good"),
    "passed": ("·", "dim"),
    "rejected": ("✗", "dim"),
}


def pairs_of(view: View) -> list[Pair]:
    """The pairs of the graph in the order of the list: fused, passed, rejected by rule."""
    pairs = view.facts.pairs.get(view.loop_graph(), ())
    rules = list(dict.fromkeys(pair.rule for pair in pairs if pair.verdict == "rejected"))
    counts = {rule: sum(pair.rule == rule for pair in pairs) for rule in rules}
    rules.sort(key=lambda rule: -counts[rule])
    order = {"fused": 0, "passed": 1, "rejected": 2}
    return sorted(
        pairs, key=lambda p: (order[p.verdict], rules.index(p.rule) if p.rule in rules else 0)
    )


def chosen_pair(view: View) -> Pair | None:
    pairs = pairs_of(view)
    return next((pair for pair in pairs if pair.id == view.pair), pairs[0] if pairs else None)


def label_of(view: View, graph: str, name: str) -> str:
    """`op9_op10_op11` -> `amax, amax, any`: of each node in a group, what it computes last."""
    words = [computes(view, node) for node in _nodes(view, graph, name)]
    return ", ".join(words) or plain(name)


def _parts(name: str) -> list[str]:
    return name.split("_") if all(p.startswith("op") for p in name.split("_")) else [name]


def things_of(pair: Pair) -> list[Ref]:
    """The scheduler nodes on both sides."""
    names = [*_parts(pair.first), *_parts(pair.second)]
    return [refs.operation(pair.graph, name) for name in names]


def decisions(view: View, width: int) -> Content:
    """Every pair once: fused first, then the rejected by rule, the largest group first."""
    graph = view.loop_graph()
    pairs = pairs_of(view)
    subject = graph.removesuffix("/lowered")
    if not pairs:
        nodes = sum(node.graph == graph for node in view.facts.operations.values())
        name = subject or view.compile_id or "this recording"
        why = f"no pair to fuse in {plural(nodes, 'scheduler node')} of {name}"
        why = why if nodes else f"no fusion decision of {name} was recorded"
        return Content("fusion", subject, rows=empty(width, why, view.not_reached("fusion")))
    rows: list[Row] = []
    column = min(34, max(18, width - 44))
    for pair in pairs:
        if pair.verdict != "rejected":
            rows.append(_row(view, pair, column, width))
    rejected: dict[str, list[Pair]] = {}
    for pair in pairs:
        if pair.verdict == "rejected":
            rejected.setdefault(pair.rule, []).append(pair)
    for rule, members in rejected.items():
        rows.extend(_rule(view, graph, rule, members, column, width))
    fused = sum(pair.verdict == "fused" for pair in pairs)
    words = f"{fused} fused · {number(len(pairs) - fused)} not"
    chosen = chosen_pair(view)
    start = f"pair:{chosen.id}" if chosen else ""
    return Content("fusion", subject, ((words, "dim"),), rows, start, tracks=True)


def _row(view: View, pair: Pair, column: int, width: int, indent: int = 0) -> Row:
    glyph, role = GLYPHS[pair.verdict]
    quiet: Role = "text" if pair.verdict == "fused" else "dim"
    first = label_of(view, pair.graph, pair.first).replace(", ", ",")
    second = label_of(view, pair.graph, pair.second).replace(", ", ",")
    lead: Span = (f" {glyph} ", role) if not indent else (" " * indent, "text")
    room = column - (indent - 3 if indent else 0)
    left, right = operations_text(pair.first), operations_text(pair.second)
    size = bytes_text(pair.shared_bytes) if pair.shared_bytes is not None else ""
    kind = {"vertical": "chain", "horizontal": "beside"}[pair.records[-1].kind]
    spans: list[Span] = [
        lead,
        text(pad(cut(f"{first} + {second}", room - 1), room), quiet),
        text(pad(cut(f"{left} {right}", 15), 16), "dim"),
        (pad_left(size, 8), "dim"),
        (f"  {kind}", "dim"),
    ]
    if width >= 76:
        tests = f"{pair.tests} tests" if pair.tests > 1 else "1 test"
        round_ = pair.records[-1].round
        spans.append((f"  round {round_}  {tests}" if round_ else f"  {tests}", "faint"))
    note = "  may fuse; fused elsewhere first"
    if pair.verdict == "passed" and width_of(tuple(spans)) + len(note) <= width:
        spans.append((note, "faint"))
    return Row(
        body=tuple(spans),
        key=f"pair:{pair.id}",
        opens=f"pair:{pair.id}",
        copies=pair.id,
    )


def _rule(
    view: View, graph: str, rule: str, members: list[Pair], column: int, width: int
) -> list[Row]:
    key = f"rule:{graph}:{rule}"
    opened = key in view.unfolded or len(members) <= FEW
    mark = "▾" if opened else "▸"
    reasons = dict.fromkeys(pair.reason for pair in members if pair.reason)
    words = rule_words(rule)
    note = f"   torch: {next(iter(reasons))}" if len(reasons) == 1 and width >= 76 else ""
    head = Row(
        body=(
            (" ✗ ", "bad"),
            (f"{number(len(members))} ", "strong"),
            text(words, "strong"),
            text(note, "faint"),
        ),
        right=((f"{mark} ", "faint"),),
        key=key,
        opens=f"fold:{key}",
    )
    shown = members if opened else members[:FEW]
    rows = [BLANK, head, *(_row(view, pair, column, width, 5) for pair in shown)]
    if not opened:
        rest = f"     · {number(len(members) - FEW)} more"
        rows.append(Row(body=((rest, "faint"),), key=f"more:{key}", opens=f"fold:{key}"))
    return rows


def loops(view: View, width: int, side: str) -> Content:
    """The loop nests of one half of the pair, `side` A or B."""
    pair = chosen_pair(view)
    if pair is None:
        return Content(side, rows=empty(width, "no pair to show"))
    name = pair.first if side == "A" else pair.second
    other = pair.second if side == "A" else pair.first
    nodes = _nodes(view, pair.graph, name)
    shared = _buffers(nodes) & _buffers(_nodes(view, pair.graph, other))
    rows = [BLANK, *nests(view, nodes, shared), *traffic(nodes, shared), BLANK]
    subject = label_of(view, pair.graph, name)
    return Content(side, subject, ((operations_text(name), "dim"),), rows)


def became(view: View, width: int) -> Content:
    """The group that A ended in, as it stood when fusion was over."""
    pair = chosen_pair(view)
    groups = [g for g in view.recording.all(FusionGroups) if pair and g.graph == pair.graph]
    if pair is None or not groups:
        return Content("became", rows=empty(width, "the final groups were not recorded"))
    found = {node: group for group in groups[-1].groups for node in group.nodes}
    first, second = (found.get(_parts(name)[0]) for name in (pair.first, pair.second))
    rows: list[Row] = []
    for group in dict.fromkeys(group for group in (first, second) if group is not None):
        nodes = _nodes(view, pair.graph, "_".join(group.nodes))
        inner = {b for node in nodes for b in node.reads} & {b for n in nodes for b in n.writes}
        if rows:
            words = f" apart from   {operations_text(group.name)}"
            rows += [BLANK, Row(body=(text(words, "dim"),))]
        rows += [BLANK, *nests(view, nodes, inner)]
    subject = operations_text(first.name) if first is not None else ""
    count = plural(len(first.nodes), "node") if first is not None else ""
    together = "1 group" if first is second else "2 groups"
    return Content("became", subject, ((f"{together} · {count}", "dim"),), rows)


def _nodes(view: View, graph: str, name: str) -> list[SchedulerNode]:
    known = (view.facts.operations.get((graph, part)) for part in _parts(name))
    return [node for node in known if node is not None]


def _buffers(nodes: list[SchedulerNode]) -> set[str]:
    return {buffer for node in nodes for buffer in (*node.reads, *node.writes)}


def verdict(view: View, width: int) -> list[Row]:
    """The bar below: the decision on the chosen pair, its rule and its numbers."""
    pair = chosen_pair(view)
    if pair is None:
        return []
    record = pair.records[-1]
    title = {
        "fused": "A and B were fused",
        "passed": "A and B may fuse; one of them fused elsewhere first",
        "rejected": f"A and B were kept apart: {rule_words(pair.rule)}",
    }[pair.verdict]
    chain = "B reads what A writes" if record.kind == "vertical" else "neither reads the other"
    tests = f"tested {plural(pair.tests, 'time')}"
    tests += f", last in round {record.round} ({record.phase})" if record.round else ""
    rule: Line
    if pair.verdict == "rejected":
        reason = pair.reason or "no reason is given"
        rule = (("rule     ", "dim"), text(f"✗ {pair.rule}", "bad"), text(f"   {reason}", "text"))
    else:
        rule = (("rule     ", "dim"), ("✓ ", "good"), (f"{record.kind}: {chain}", "text"))
    score: list[Span] = [("score    ", "dim")]
    if pair.shared_bytes is not None:
        score += [("shared bytes ", "text"), (number(pair.shared_bytes), "strong")]
    score.append((f"   {tests}", "faint"))
    if pair.score_text:
        score.append(text(f"   {pair.score_text}", "dim"))
    elif not pair.score:
        score.append(("   not scored: only a pair that may fuse is", "dim"))
    return [
        Row(
            body=(text(title, "title"),), right=(text(pair.id, "dim"), (" ", "text")), heading=True
        ),
        Row(body=(*rule,)),
        Row(body=tuple(score)),
    ]
