"""Sections about capture: breaks, recompiles, guards, graphs, instructions."""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.trace.records import DynamicSize, FrameStart, Graph, Guards, Node, Step
from tcw.viewers.collected import grouped
from tcw.viewers.kit.lines import BLANK, TextLine, apart, line, prose
from tcw.viewers.kit.table import Cell, heading, table
from tcw.viewers.summary.breaks import BreakSite
from tcw.viewers.summary.calls import Piece
from tcw.viewers.summary.findings import crossing_text, recompile_title
from tcw.viewers.summary.function_names import FunctionNames
from tcw.viewers.summary.guard_groups import Condition, GuardGroups, guard_groups
from tcw.viewers.summary.recompiles import RecompileCause
from tcw.viewers.tables.findings import advice_lines, place_lines
from tcw.viewers.tables.guard_lines import (
    GuardRow,
    check_words,
    condition_rows,
    guards_lines,
    kinds_lines,
    single_rows,
)
from tcw.viewers.text.sections import SectionView
from tcw.viewers.words import indent, listed, plural, seconds_text, tensor_text


def breaks(view: SectionView) -> list[TextLine]:
    """Every site with torch's explanation, what crosses it, and all advice."""
    sites = view.summary.breaks
    compiles = len({piece.compile_id for call in view.summary.calls for piece in call.pieces})
    if not sites:
        none = heading("breaks", f"no graph breaks in {plural(compiles, 'compile')}")
        return [none, *_skipped(view)]
    head = heading("breaks", plural(len(sites), "site"))
    return [head, *apart(_site(view, site) for site in sites), *_skipped(view)]


def _skipped(view: SectionView) -> list[TextLine]:
    """Frames that Dynamo left to Python, each function and reason once."""
    frames = view.summary.skipped
    if not frames:
        return []
    rows: dict[tuple[str, str], list[Cell]] = {}
    for frame in frames:
        where = view.names.place(frame.location.file, frame.location.line)
        reason = " ".join(frame.reason.split())
        rows[where, reason] = [(where, "dim"), frame.function, reason]
    lines = table(list(rows.values()), "elf", view.width, 2)
    return [BLANK, heading("left to Python", plural(len(rows), "function")), *lines]


def _site(view: SectionView, site: BreakSite) -> list[TextLine]:
    code = f"  {site.gb}" if site.gb else ""
    where = ", ".join(site.compile_ids)
    lines = [line(("✗ ", "bad"), (site.title, "strong"), code, ("  " + where, "dim"), hang=4)]
    lines += place_lines(site.place, view.names, 2, view.width)
    record = site.records[0]
    for frame in record.stack[:-1]:
        name = view.names.place(frame.file, frame.line)
        lines.append(line(("  from ", "dim"), f"{name}  {frame.function}", fixed=True))
    if site.inside is not None:
        name = view.names.place(site.inside.file, site.inside.line)
        lines.append(
            line(("  inside ", "dim"), f"{name}  {site.inside.function}, where torch reports it")
        )
    for value in record.crossing:
        what = tensor_text(value.tensor) if value.tensor else value.kind or "no tensor"
        lines += table([[("crosses", "dim"), value.name, what]], "llf", view.width, 2)
    if site.host_waits:
        lines.append(
            line(("  host     ", "dim"), "Python reads the tensor's data and waits for it")
        )
    if record.type != site.title:
        lines += prose("torch    ", record.type, 2)
    lines += prose("why      ", record.explanation, 2)
    lines += prose("context  ", record.context, 2)
    lines += advice_lines(site.advice, 2, view.width)
    said = {advice.text for advice in site.advice}
    for hint in record.hints:
        lines += prose("hint     ", hint, 2) if hint not in said else []
    if record.url:
        lines.append(line(("  " + record.url, "dim"), fixed=True))
    return lines


def recompiles(view: SectionView) -> list[TextLine]:
    """Each cause with every frame it recompiled."""
    causes = view.summary.recompiles
    if not causes:
        calls = sum(1 for call in view.summary.calls if call.number)
        return [heading("recompiles", f"none in {plural(calls, 'call')}")]
    took = seconds_text(view.summary.recompile_seconds)
    head = heading("recompiles", f"{plural(len(causes), 'cause')}, {took}")
    return [head, *apart(_cause(view, cause) for cause in causes)]


def _cause(view: SectionView, cause: RecompileCause) -> list[TextLine]:
    cost = seconds_text(cause.seconds)
    lines = [line(("↻ ", "warn"), (recompile_title(cause), "strong"), f"  {cost}", hang=4)]
    rows: list[list[Cell]] = [
        [
            (f"call {frame.call}" if frame.call else "", "dim"),
            f"{frame.instead_of} → {frame.compile_id}",
            frame.function,
            frame.change.text,
            (seconds_text(frame.seconds), "warn"),
        ]
        for frame in cause.frames
    ]
    lines += table(rows, "llffr", view.width, 2)
    if cause.place is not None:
        lines += place_lines(cause.place, view.names, 2, view.width)
    for failed in cause.frames[0].record.failed:
        facts = [failed.kind, f"{plural(failed.tested, 'guard')} held" if failed.tested else ""]
        tail = "  " + ", ".join(filter(None, facts))
        head = f"  {failed.entry} failed  "
        lines.append(line((head, "dim"), failed.guard, (tail, "dim"), hang=len(head)))
    lines += advice_lines(cause.advice, 2, view.width)
    return lines


def guards(view: SectionView) -> list[TextLine]:
    """The conditions under which each compiled frame can be reused.

    First those that a caller can change, one by one; then the others, one line per kind.
    `--show guards=all` lists each of those too.
    """
    records = view.recording.all(Guards)
    if not records:
        return [heading("guards", "none recorded")]
    blocks = []
    last: dict[str, Guards] = {}
    for record in records:
        frame = record.compile_id.partition("/")[0]
        blocks.append(_compile(view, record, last.get(frame)))
        last[frame] = record
    return apart(blocks)


def _compile(view: SectionView, record: Guards, before: Guards | None) -> list[TextLine]:
    """The guards of one compile; for a recompile, those that differ from the compile before it."""
    groups = guard_groups(view.recording, record)
    cost = ""
    if record.check_us is not None:
        cost = f", {check_words(record.check_us)}"
    starts = view.recording.all(FrameStart)
    wrapped = (
        start.called for start in starts if start.compile_id == record.compile_id and start.wrapped
    )
    names = FunctionNames(view.recording)
    function = names.of(record.compile_id, next(wrapped, record.function))
    lines = [
        heading(
            f"guards {record.compile_id} {function}".rstrip(), plural(record.count, "guard") + cost
        )
    ]
    if record.dynamic:
        sizes = ", ".join(_dynamic(size) for size in record.dynamic)
        lines.append(line(("  dynamic    ", "dim"), sizes, hang=13))
    conditions = groups.conditions
    if before is not None and view.detail != "all":
        earlier = guard_groups(view.recording, before)
        known = {(condition.name, condition.value) for condition in earlier.conditions}
        conditions = tuple(
            condition for condition in conditions if (condition.name, condition.value) not in known
        )
    lines += _rows(view, condition_rows(conditions))
    same = len(groups.conditions) - len(conditions)
    if view.detail == "all":
        lines += _all(view, groups)
    elif before is not None:
        rest = sum(len(group.guards) for group in groups.kinds)
        what = [f"{plural(same, 'condition')} as in {before.compile_id}"]
        what += [f"{plural(rest, 'guard')} by kind"] if rest else []
        lines.append(line((f"  {', and '.join(what)}", "dim")))
    elif groups.kinds:
        lines.append(line("  and guards that hold unless code or modules change:"))
        lines += kinds_lines(groups.kinds, view.width, 2)
    return lines


def _dynamic(size: DynamicSize) -> str:
    """`x.size(0) (s77, at least 2)`."""
    least, most = size.lower, size.upper
    bounds = ""
    if least is not None and most is not None:
        bounds = f", {least} to {most}"
    elif least is not None:
        bounds = f", at least {least}"
    elif most is not None:
        bounds = f", at most {most}"
    return f"{size.name} ({size.symbol}{bounds})"


def _all(view: SectionView, groups: GuardGroups) -> list[TextLine]:
    """Every guard, including flags that were folded into one row."""
    together: list[Condition] = [
        condition for condition in groups.conditions if len(condition.guards) > 1
    ]
    lines = []
    for condition in together:
        lines += [
            BLANK,
            line((f"  {condition.name}", "dim")),
            *_rows(view, single_rows(condition.guards)),
        ]
    for group in groups.kinds:
        head = f"  {len(group.guards)} {group.kind}"
        lines += [BLANK, line((head, "dim"), f"  {group.words}", hang=4)]
        lines += _rows(view, single_rows(group.guards))
    return lines


def _rows(view: SectionView, rows: Sequence[GuardRow]) -> list[TextLine]:
    return [
        text_line for lines in guards_lines(rows, view.names, view.width, 2) for text_line in lines
    ]


def graphs(view: SectionView) -> list[TextLine]:
    """How the first call was cut, and every captured graph node by node."""
    summary = view.summary
    if summary.cut is None:
        return [heading("graphs", "none: torch.compile was given nothing to compile")]
    when = f"call {summary.cut.number}" if summary.cut.number else "this run"
    pieces = [piece for piece in summary.cut.pieces if piece.ops or piece.cuts]
    graphs = sum(1 for piece in summary.cut.pieces if piece.ops)
    lines = [heading("graphs", f"{when} is cut into {plural(graphs, 'graph')}")]
    for piece in pieces:
        lines += _piece(view, piece)
    for graph in view.recording.graphs.values():
        if graph.kind == "captured":
            lines += [BLANK, *_graph(view, graph)]
    return lines


def _piece(view: SectionView, piece: Piece) -> list[TextLine]:
    name = f"→ {piece.resumes_at}" if piece.resumes_at else piece.function
    facts = f"{plural(piece.ops, 'op')} · {plural(piece.guards, 'guard')}"
    lines = [line(("  " + piece.compile_id, "accent"), f" {name}  ", (facts, "dim"), fixed=True)]
    for cut in piece.cuts:
        place = view.names.place(cut.place.file, cut.place.line)
        notes = [crossing_text(cut.crossings), "the host waits" if cut.host_waits else ""]
        tail = " · ".join(note for note in notes if note)
        lines.append(
            line(
                ("      ✗ ", "bad"),
                f"{place}  ",
                (cut.place.text.strip(), "strong"),
                f"  {tail}",
                fixed=True,
            )
        )
    return lines


def _graph(view: SectionView, graph: Graph) -> list[TextLine]:
    lines = [heading(f"graph {graph.id}", plural(graph.ops, "op"))]
    return lines + table([_node(view, node) for node in graph.nodes], "reffe", view.width, 2)


def _node(view: SectionView, node: Node) -> list[Cell]:
    place = node.location
    mark = "≈" if node.inferred else ""
    return [
        (f"{mark}{place.line}" if place else "", "dim"),
        (node.name, "accent"),
        f"{node.target}({node.args})" if node.op.startswith("call") else node.op,
        tensor_text(node.value) if node.value else "",
        (node.module, "dim"),
    ]


def steps(view: SectionView) -> list[TextLine]:
    """The instructions Dynamo interpreted, with their lines and new nodes."""
    steps = view.recording.all(Step)
    if not steps:
        return [heading("steps", "not recorded: --record steps")]
    attempts = grouped(((step.compile_id, step.attempt), step) for step in steps)
    return apart(
        [
            heading(f"steps {compile_id} attempt {attempt + 1}", plural(len(found), "instruction")),
            *table([_step(view, step) for step in found], "rfefl", view.width, 2),
        ]
        for (compile_id, attempt), found in attempts.items()
    )


def _step(view: SectionView, step: Step) -> list[Cell]:
    added = f"+ {listed(step.nodes)}" if step.nodes else ""
    where = view.names.place(step.location.file, step.location.line)
    return [
        (str(step.ip), "dim"),
        indent(step.depth) + f"{step.opcode} {step.argument}".rstrip(),
        (where, "dim"),
        (added, "good"),
        (f"{step.guards} guards", "dim"),
    ]
