"""One block of the picture: what it reads and writes, what it costs, why it is one."""

from __future__ import annotations

from collections import Counter

from tcw.compiler.trace.records import MemoryPlan, Node, WhatIf
from tcw.viewers.collected import whole_sum
from tcw.viewers.drawing.blocks import diagram
from tcw.viewers.drawing.diagram import Block, Diagram, input_name
from tcw.viewers.kit.cells import cut, pad
from tcw.viewers.kit.colours import fill_of
from tcw.viewers.kit.spans import Line, text
from tcw.viewers.labels import CALLED, is_view, operations_text, short_target
from tcw.viewers.panes.profile_source import kernel_seconds
from tcw.viewers.panes.rows import BLANK, Content, Row, empty, prose_rows, text_row
from tcw.viewers.panes.targets import ToView
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain
from tcw.viewers.summary.fusion import rule_words
from tcw.viewers.words import (
    NOT_MEASURED,
    bytes_text,
    numbers_text,
    plural,
    seconds_text,
    shape_text,
    tensor_text,
)

LABEL = 9
MOST = 4
"""Values that are listed; the rest are counted."""


def content(view: View, width: int) -> Content:
    drawn = diagram(view)
    block = block_of(view, drawn)
    if drawn is None or block is None:
        rows = empty(width, "no block of a graph is selected")
        return Content("node", rows=rows)
    rows = [BLANK, _title(drawn, block, width), *_lines(view, drawn, block), BLANK]
    rows += _values("reads", _read(view, drawn, block), width)
    rows += _values("writes", _written(view, drawn, block), width)
    rows += _inside(view, drawn, block)
    rows += _domain(view, drawn, block)
    if block.kind in ("group", "call", "op"):
        rows.append(_time(view, block))
        rows.append(_eager(view, block))
    rows += _why(view, drawn, block, width)
    rows += _legend(drawn, width)
    rows += [BLANK, *(text_row((f" {part}", "faint")) for part in drawn.words.split(", "))]
    return Content("node", rows=rows, still=True)


def block_of(view: View, drawn: Diagram | None) -> Block | None:
    """The current block: the one under the picture's cursor while it is a counterpart of
    the selection, else the first that shows the selection."""
    if drawn is None or not drawn.blocks:
        return None
    own = next((b for b in drawn.blocks if b.key == view.block), None)
    shown = drawn.blocks_of(view.ref)
    if own is not None and (not view.ref or drawn.blocks.index(own) in shown):
        return own
    if shown:
        return drawn.blocks[shown[0]]
    lit = (number for ref in view.lit for number in drawn.blocks_of(ref))
    first = next(lit, None)
    return own or (drawn.blocks[first] if first is not None else drawn.blocks[0])


def _title(drawn: Diagram, block: Block, width: int) -> Row:
    kernel, _, words = block.title.partition(" ") if block.kernel else ("", "", block.title)
    if block.kernel and kernel != block.kernel:
        kernel, words = "", block.title
    spans: Line = (
        (" ", "text"),
        *([text(f"{kernel}  ", "accent")] if kernel else []),
        text(cut(plain(words), width - len(kernel) - 4), "strong"),
    )
    return Row(body=spans, key="title", copies=block.title)


def _lines(view: View, drawn: Diagram, block: Block) -> list[Row]:
    nodes = [drawn.graph.nodes[index] for index in block.nodes]
    lines = [n.location.line for n in nodes if n.location is not None]
    inferred = any(node.inferred for node in nodes)
    count = plural(sum(node.op.startswith("call") for node in nodes), "op")
    if block.kind in ("input", "weight"):
        count = {"input": "an input", "weight": "a weight"}[block.kind]
    where = f", lines {numbers_text(lines)}" if len(set(lines)) > 1 else ""
    where = where or (f", line {lines[0]}" if lines else "")
    rows = [text_row((f" {count}{where}{' ≈' if inferred else ''}", "dim"))]
    if block.kind == "op" and nodes[0].value is not None:
        rows.append(text_row(" ", (tensor_text(nodes[0].value), "dim")))
    if block.kernel and block.kind == "op":
        kernel = view.recording.kernels.get(block.kernel)
        words = f" in {view.derived.called.title(kernel) if kernel else block.kernel}"
        rows.append(text_row((words, "dim")))
    return rows


def _time(view: View, block: Block) -> Row:
    """The time of the group's kernel, if a comparison of two runs timed it alone."""
    seconds = kernel_seconds(view, block.kernel) if block.kind in ("group", "call") else None
    if seconds is not None:
        return _fact("time", seconds_text(seconds), f"{block.kernel}, in the call")
    for what_if in reversed(view.derived.trace.all(WhatIf)):
        before = what_if.base == view.run and what_if.base_kernels == (block.kernel,)
        after = what_if.run == view.run and what_if.run_kernels == (block.kernel,)
        timed = what_if.before if before else what_if.after if after else None
        if timed is not None and block.kernel and what_if.scope == "kernel":
            spread = f"±{seconds_text(timed.spread)}"
            return _fact("time", seconds_text(timed.median), f"{spread}, {block.kernel} alone")
    return _fact("time", NOT_MEASURED, quiet=True)


def _eager(view: View, block: Block) -> Row:
    """Eager's time for the region of the block's kernel."""
    profile = view.derived.profile
    steps = profile.index.steps_of_kernel.get(block.kernel, ()) if profile else ()
    row = None
    if profile is not None and steps:
        region = profile.region_of(steps[0].id)
        row = profile.row_of(region.id) if region is not None else None
    if row is None or block.kind == "op":
        return _fact("eager", NOT_MEASURED, quiet=True)
    if row.eager is None:
        return _fact("eager", "nothing: only under capture", quiet=True)
    region_words = plain(row.label) + (f" ×{row.count}" if row.count > 1 else "")
    return _fact("eager", seconds_text(row.eager.median), region_words)


def _fact(label: str, words: str, more: str = "", quiet: bool = False) -> Row:
    tail: Line = (text(f"  {more}", "dim"),) if more else ()
    name = (f" {pad(label, LABEL)}", "dim")
    return text_row(name, (words, "dim" if quiet else "text"), *tail)  # type: ignore[arg-type]


def _values(label: str, values: list[tuple[str, int | None, str]], width: int) -> list[Row]:
    if not values:
        return []
    names = [cut(plain(name), max(8, width - LABEL - 14)) for name, _, _ in values[:MOST]]
    column = max(len(name) for name in names) + 2
    rows = []
    for at, (name, (_, size, note)) in enumerate(zip(names, values, strict=False)):
        words = bytes_text(size)
        rows.append(_fact("" if at else label, pad(name, column) + words, note))
    if len(values) > MOST:
        known = [size for _, size, _ in values if size is not None]
        total = f", {bytes_text(sum(known))} in all" if len(known) == len(values) else ""
        rows.append(_fact("", f"and {len(values) - MOST} more{total}", quiet=True))
    return rows


def _size(node: Node) -> int | None:
    if node.value is not None:
        return node.value.bytes
    return whole_sum(value.bytes for value in node.values if value is not None)


def _read(view: View, drawn: Diagram, block: Block) -> list[tuple[str, int | None, str]]:
    """Values from outside, each once, read through views."""
    known = view.recording.nodes(drawn.graph.id)
    own = {drawn.graph.nodes[index].name for index in block.nodes}
    found: dict[str, Node] = {}
    waiting = [name for index in block.nodes for name in drawn.graph.nodes[index].inputs]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop(0)
        node = known.get(name)
        if node is None or name in own or name in seen:
            continue
        seen.add(name)
        if is_view(node) and name not in drawn.of_node:
            waiting.extend(node.inputs)
        else:
            found[name] = node
    return [(_name(view, drawn, node), _size(node), "") for node in found.values()]


def _name(view: View, drawn: Diagram, node: Node) -> str:
    if node.op in ("placeholder", "get_attr"):
        return input_name(view, drawn.graph, node)
    return node.name


def _written(view: View, drawn: Diagram, block: Block) -> list[tuple[str, int | None, str]]:
    """What is read outside, or returned."""
    nodes = [drawn.graph.nodes[index] for index in block.nodes]
    own = {node.name for node in nodes}
    outside: set[str] = set()
    returned: set[str] = set()
    values: list[Node] = []
    for node in nodes:
        users = [drawn.graph.nodes[index] for index in drawn.users.get(node.name, ())]
        parts = [user for user in users if short_target(user.target) == "getitem"]
        values += parts if parts and len(parts) == len(users) else [node]
    for node in values:
        waiting, seen = [node.name], {node.name}
        while waiting:
            for index in drawn.users.get(waiting.pop(), ()):
                user = drawn.graph.nodes[index]
                if user.op == "output":
                    returned.add(node.name)
                elif user.name in own or user.name in seen:
                    continue
                elif is_view(user) and user.name not in drawn.of_node:
                    waiting.append(user.name)
                else:
                    outside.add(node.name)
                seen.add(user.name)
    if block.kind in ("input", "weight"):
        return [(_name(view, drawn, n), _size(n), "") for n in nodes]
    return [
        (node.name, _size(node), "returned" if node.name in returned else "")
        for node in values
        if node.name in outside | returned
        and (len(nodes) == 1 or not is_view(node) or node not in nodes)
    ]


def _inside(view: View, drawn: Diagram, block: Block) -> list[Row]:
    """Buffers that only the group itself reads."""
    operations = view.recording.operations
    graph = drawn.graph.id
    own = [operations[graph, name] for name in block.operations if (graph, name) in operations]
    if len(own) < 2 or block.kind != "group":
        return []
    written = {buffer for node in own for buffer in node.writes}
    others = [node for key, node in operations.items() if key[0] == graph and node not in own]
    read = {buffer for node in others for buffer in node.reads}
    plans = [p for p in view.recording.all(MemoryPlan) if p.graph == graph]
    sizes = {b.name: b for b in plans[-1].buffers} if plans else {}
    kept = {name for name, b in sizes.items() if b.kind in ("output", "saved")}
    inner = sorted(written - read - kept, key=lambda name: (len(name), name))
    if not inner:
        return []
    known = [sizes[name].bytes for name in inner if name in sizes]
    total = sum(size for size in known if size is not None)
    more = bytes_text(total) if known and len(known) == len(inner) else ""
    names = operations_text("_".join(name.replace("buf", "op") for name in inner))
    return [_fact("inside", names.replace("op", "buf", 1), more)]


def _domain(view: View, drawn: Diagram, block: Block) -> list[Row]:
    graph = drawn.graph.id
    nodes = [view.recording.operations.get((graph, name)) for name in block.operations]
    node = next((n for n in nodes if n is not None and n.domain), None)
    reduced = next((n for n in nodes if n is not None and n.kind == "reduction" and n.domain), None)
    if reduced is not None and len(reduced.domain) > 1:
        rows = "×".join(str(size) for size in reduced.domain[:-1])
        return [_fact("domain", f"{rows} rows × {reduced.domain[-1]}")]
    return [_fact("domain", shape_text(node.domain))] if node is not None else []


def _why(view: View, drawn: Diagram, block: Block, width: int) -> list[Row]:
    """The decisions that made the group, and those that ended it."""
    heading = [BLANK, text_row((" why here", "strong"))]
    if block.kind == "module":
        words = f"folded by module: {plural(len(drawn.graph.nodes), 'node')} do not fit; ⏎ opens it"
        return [*heading, *prose_rows(words, width)]
    if block.kind == "call":
        kernel = view.recording.kernels.get(block.kernel)
        called = CALLED["aten" if kernel is None else kernel.language]
        return [*heading, text_row((f" {called}: never fused", "dim"))]
    own = set(block.operations)
    if not own:
        return []
    pairs = view.derived.pairs.get(drawn.graph.id, ())
    parts = [(pair, set(pair.first.split("_")), set(pair.second.split("_"))) for pair in pairs]
    inner = [p for p, a, b in parts if p.verdict == "fused" and a <= own and b <= own]
    edge = [p for p, a, b in parts if p.verdict == "rejected" and (a <= own) != (b <= own)]
    rows = list(heading)
    if inner:
        rows.append(text_row((" ✓ ", "good"), f"{len(inner)} of its pairs fused"))
    for rule, count in Counter(pair.rule for pair in edge).most_common(3):
        words = f"{count} {rule_words(rule)}"
        rows.append(text_row((" ✗ ", "dim"), (cut(plain(words), width - 4), "dim")))
    if not inner and not edge:
        rows.append(text_row((" no pair with it was tried", "dim")))
        return rows
    rows.append(
        text_row(
            (" ⏎ ", "key"), ("opens the decisions", "dim"), key="decisions", opens=ToView("fusion")
        )
    )
    return rows


def _legend(drawn: Diagram, width: int) -> list[Row]:
    if not drawn.legend:
        return []
    rows = [BLANK, text_row((" groups", "strong"))]
    for hue, words, count in drawn.legend[:24]:
        name = pad(cut(plain(words), width - 13), max(8, width - 13))
        rows.append(text_row("  ", ("   ", fill_of(hue)), f"  {name}", (f"{count:>4}", "dim")))
    if len(drawn.legend) > 24:
        rows.append(text_row((f"  and {len(drawn.legend) - 24} more", "faint")))
    return rows
