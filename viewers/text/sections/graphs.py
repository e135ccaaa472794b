"""`--show graphs`: how the first call was cut, and every captured graph node by node."""

from __future__ import annotations

from tcw.compiler.trace.records import Graph, Node
from tcw.viewers.kit.lines import BLANK, TextLine, line
from tcw.viewers.kit.table import Cell, heading, table
from tcw.viewers.summary.calls import Piece
from tcw.viewers.summary.findings import crossing_text
from tcw.viewers.text.sections import SectionView
from tcw.viewers.words import plural, tensor_text


def section(view: SectionView) -> list[TextLine]:
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
    return lines + table([_row(view, node) for node in graph.nodes], "reffe", view.width, 2)


def _row(view: SectionView, node: Node) -> list[Cell]:
    place = node.location
    mark = "≈" if node.inferred else ""
    return [
        (f"{mark}{place.line}" if place else "", "dim"),
        (node.name, "accent"),
        f"{node.target}({node.args})" if node.op.startswith("call") else node.op,
        tensor_text(node.value) if node.value else "",
        (node.module, "dim"),
    ]
