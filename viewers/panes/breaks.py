"""A graph break: why, what to do, and the graphs on either side with what crosses between them."""

from __future__ import annotations

from rich.cells import cell_len

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import Crossing, FixTrial, Graph, GraphBreak, Node
from tcw.viewers.kit.cells import cut, pad, wrap
from tcw.viewers.kit.lines import line
from tcw.viewers.kit.spans import Role, Span, text
from tcw.viewers.labels import line_text, short_target
from tcw.viewers.panes.rows import BLANK, Content, Row, empty, text_row, text_rows
from tcw.viewers.panes.targets import ToCompile
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain
from tcw.viewers.summary.breaks import BreakSite
from tcw.viewers.summary.calls import Piece
from tcw.viewers.tables.findings import advice_lines, shown_advice
from tcw.viewers.words import bytes_text, plural, shape_text

LABEL = 7
ALL = "   U shows all"


def site_of(view: View) -> BreakSite | None:
    sites = view.summary.breaks
    return sites[min(view.site, len(sites) - 1)] if sites else None


def explanation(view: View, width: int) -> Content:
    """The pane below the source: what happened here, and each fix."""
    site = site_of(view)
    if site is None:
        return Content("break", rows=_none(view, width))
    count = len(view.summary.breaks)
    rows = [BLANK, *_headline(site, width), BLANK]
    first = site.records[0]
    told = first.explanation.split("\n\n")[0] or site.reason
    why = first.explanation if view.torch_text else told
    room = width - LABEL - 3
    rows.extend(_labelled("why", wrap(why, room)[: None if view.torch_text else 3], "text"))
    for number, advice in enumerate((a for a in site.advice if a.by == "tcw"), start=1):
        label, fix, role = shown_advice(advice, view.recording.all(FixTrial))
        lines = advice_lines([fix], 1, width - 1, pad(label, LABEL), role)
        rows += text_rows(lines, width, key=f"fix:{number}", copies=advice.code)
    rows.extend(_torch(view, site, room))
    if first.inside is not None:
        name = view.derived.names.place(first.inside.file, first.inside.line)
        said = f"{name} {first.inside.function}, where torch reports it"
        rows.extend(_labelled("inside", wrap(plain(said), room), "dim"))
    if first.url:
        shown = first.url.partition("://")[2] or first.url
        url = line((pad("more", LABEL), "dim"), (shown, "faint"), hang=LABEL)
        rows += text_rows([url], width, key="url", copies=first.url, indent=1)
    return Content("break", f"{min(view.site, count - 1) + 1} of {count}", rows=rows, start="fix:1")


def _headline(site: BreakSite, width: int) -> list[Row]:
    where = ", ".join(site.compile_ids[:4])
    times = "once" if site.count == 1 else f"{site.count} times"
    outcome = {"skip-frame": " · the whole frame runs in Python", "error": " · stops the compile"}
    head = line(
        ("✗ ", "bad"),
        (f"{site.gb} " if site.gb else "", "bad"),
        (site.type, "strong"),
        (f"   {where} · {times}{outcome.get(site.outcome, '')}", "dim"),
        hang=2,
    )
    return text_rows([head], width, key="site", indent=1)


def _torch(view: View, site: BreakSite, room: int) -> list[Row]:
    """torch's own words: one line, or all of them after `U` and in a page."""
    first = site.records[0]
    hints = first.hints
    if view.torch_text or view.in_page:
        rows = _labelled("torch", wrap(first.explanation, room), "dim")
        for hint in hints:
            rows.extend(_labelled("hint", wrap(hint, room), "dim"))
        return [*rows, *_labelled("context", wrap(first.context, room), "faint")]
    if not hints:
        return []
    words = cut(f"“{plain(hints[0]).splitlines()[0]}”", room - cell_len(ALL))
    return _labelled("torch", [words + ALL], "dim", "torch")


def _labelled(label: str, lines: list[str], role: Role, key: str = "") -> list[Row]:
    return [
        text_row(
            (pad("" if index else label, LABEL), "dim"),
            (row, role),
            gutter=((" ", "text"),),
            key=key if not index else "",
        )
        for index, row in enumerate(lines)
    ]


def _none(view: View, width: int) -> list[Row]:
    count = plural(view.summary.compiles, "compile")
    if view.recording.end is None:
        return empty(width, f"no graph break in {count} so far")
    return empty(width, f"no graph breaks in {count}")


def sides(view: View, width: int) -> Content:
    """The graph before the break, what crosses, the graph that resumes after it."""
    site = site_of(view)
    if site is None:
        return Content("graph", "either side of the break", rows=_none(view, width))
    record = next((r for r in site.records if r.compile_id == view.compile_id), site.records[0])
    before = view.derived.pieces.get(record.compile_id)
    after = _resumed(view, site, record)
    rows = [BLANK, *_side(view, before, width), _rule(width, "✗")]
    rows.extend(_crossing(record, site, after))
    if after is not None:
        rows += [_rule(width, ""), *_side(view, after, width)]
    rows += _without(before, after)
    return Content("graph", "either side of the break", rows=rows)


def _resumed(view: View, site: BreakSite, record: GraphBreak) -> Piece | None:
    lines = {site.place.line, *(frame.line for frame in record.stack)}
    pieces = [p for p in view.derived.pieces.values() if p.resumes_at in lines]
    same = [piece for piece in pieces if piece.call == record.call]
    return next(iter(same or pieces), None)


def _side(view: View, piece: Piece | None, width: int) -> list[Row]:
    if piece is None:
        return [text_row((" this part was not compiled", "dim"))]
    name = f"→ line {piece.resumes_at}" if piece.resumes_at else piece.function
    facts = f"{plural(piece.ops, 'op')}  {plural(piece.guards, 'guard')}"
    head = text_row(
        (f"{piece.compile_id} ", "accent"),
        (name, "strong"),
        gutter=((" ", "text"),),
        right=(text(facts, "dim"), (" ", "text")),
        at=ToCompile(piece.compile_id),
    )
    graph = view.recording.graphs.get(piece.compile_id)
    if graph is None:
        return [head]
    nodes = [node for node in graph.nodes if node.op.startswith("call")]
    longest = max((len(node.name) for node in nodes), default=0)
    shown = nodes if len(nodes) <= 12 else [*nodes[:3], *nodes[-8:]]
    rows = [_node(graph, node, min(longest, 16), width) for node in shown]
    if len(shown) < len(nodes):
        more = f"     · {len(nodes) - len(shown)} more"
        rows.insert(3, text_row((more, "faint"), key="more", opens=ToCompile(piece.compile_id)))
    return [head, *rows]


def _node(graph: Graph, node: Node, longest: int, width: int) -> Row:
    ref = refs.node(graph.id, node.name)
    spans: list[Span] = [
        text(pad(node.name, longest), "text"),
        (" = ", "dim"),
        text(_call(node), "text"),
    ]
    shape = ""
    if node.value is not None:
        boolean = node.value.dtype == "bool"
        shape = "bool" if boolean and not node.value.shape else shape_text(node.value.shape)
    return Row(
        gutter=((line_text(node.location, node.inferred), "faint"),),
        body=tuple(spans),
        right=(text(" " + shape, "dim"), (" ", "text")) if width >= 40 else (),
        ref=ref,
        key=ref,
    )


_SIGNS = {"gt": ">", "lt": "<", "ge": ">=", "le": "<=", "eq": "==", "add": "+", "sub": "-",
          "mul": "*", "truediv": "/", "matmul": "@"}  # fmt: skip


def _call(node: Node) -> str:
    """`max_1 > 8`, `layer_norm(l_x_)`: tensors only, parameters left out."""
    name = short_target(node.target)
    sign = _SIGNS.get(name)
    parts = node.args.split(", ")
    if sign and len(parts) == 2:
        return f"{parts[0]} {sign} {parts[1]}"
    inputs = [one for one in node.inputs if "parameters" not in one]
    return f"{name}({', '.join(inputs)})"


def _rule(width: int, glyph: str) -> Row:
    stroke = "─" * max(0, width - 3 - len(glyph))
    return text_row((glyph + stroke, "bad" if glyph else "faint"), gutter=((" ", "text"),))


def _crossing(record: GraphBreak, site: BreakSite, after: Piece | None) -> list[Row]:
    tensors = [value for value in record.crossing if value.tensor is not None]
    others = [value for value in record.crossing if value.tensor is None]
    rows = []
    if tensors:
        rows.append(_fact("crosses", "   ".join(_value(value) for value in tensors)))
    if others:
        shown = "   ".join(f"{value.name} {value.kind}".strip() for value in others[:4])
        more = f" and {len(others) - 4} more" if len(others) > 4 else ""
        rows.append(_fact("crosses" if not tensors else "", shown + more, "dim"))
    if site.outcome == "skip-frame":
        rows.append(_fact("crosses", "nothing: the whole function runs in Python", "dim"))
    elif not record.crossing:
        rows.append(_fact("crosses", "not recorded", "dim"))
    if site.host_waits:
        scalars = [value.name for value in tensors if value.tensor and not value.tensor.shape]
        what = scalars[-1] if scalars else "the tensor's data"
        rows.append(_fact("host", f"waits for {what}, then goes on"))
    if after is not None:
        rows.append(_fact("resume", f"line {after.resumes_at}, as frame {after.compile_id}"))
    elif site.outcome == "break":
        rows.append(_fact("resume", "no compile that resumes here was recorded", "dim"))
    return rows


def _value(value: Crossing) -> str:
    assert value.tensor is not None
    return f"{value.name} {bytes_text(value.tensor.bytes)}"


def _fact(label: str, words: str, role: Role = "text") -> Row:
    return text_row((pad(label, 9), "dim"), (words, role), gutter=(("   ", "text"),))


def _without(before: Piece | None, after: Piece | None) -> list[Row]:
    if before is None or after is None:
        return []
    words = f"1 graph of {before.ops + after.ops} ops in place of {before.ops} + {after.ops}"
    return [
        BLANK,
        text_row(("without this break", "strong"), gutter=((" ", "text"),)),
        text_row((words, "dim"), gutter=(("   ", "text"),)),
    ]
