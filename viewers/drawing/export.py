"""Writes the current graph to a file: DOT, and SVG and PNG as Graphviz lays them out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from tcw.compiler.trace.output_file import safe_name, write
from tcw.compiler.trace.output_file import words as words_of_error
from tcw.viewers.drawing.blocks import diagram
from tcw.viewers.drawing.diagram import Diagram
from tcw.viewers.kit.colours import LIGHT, fill_of
from tcw.viewers.panes.picture import words_of
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain

if TYPE_CHECKING:
    from graphviz import Digraph  # imported where it is used: few sessions export a graph

Format = Literal["svg", "png", "dot"]
FORMATS: tuple[Format, ...] = get_args(Format)
MOST = 400
"""Maximum number of blocks that Graphviz lays out: 1,000 take it half a minute."""
TOOLTIP = 400
"""Characters of a block's tooltip, the names of its nodes."""
INSTALL = "it needs Graphviz's dot: apt install graphviz (DOT is written without it)"


class ExportError(Exception):
    """Nothing was written; the message says why and what to do."""


def suggested(view: View) -> str:
    """A name for the file: `0-0-forward-lowered.svg`."""
    graph = view.graph()
    name = graph.id if graph is not None else "graph"
    return f"{safe_name(name, 'graph', gap='-')}.svg"


def export(view: View, path: Path, form: Format) -> str:
    """Write the current drawing of the graph to `path`, a new file; returns what was written, in
    words. Raises `ExportError`."""
    drawn = diagram(view)
    if drawn is None or not drawn.blocks:
        raise ExportError("there is no graph here to export")
    graph = dot(drawn)
    content = graph.source.encode() if form == "dot" else _laid_out(graph, drawn, form)
    try:
        write(path, content)
    except OSError as error:
        raise ExportError(f"cannot write {path}: {words_of_error(error)}") from error
    return f"{path}: {len(drawn.blocks):,} blocks"


def _laid_out(graph: Digraph, drawn: Diagram, form: Format) -> bytes:
    from graphviz import CalledProcessError, ExecutableNotFound

    if len(drawn.blocks) > MOST:
        many = f"{len(drawn.blocks):,} blocks are too many to lay out"
        raise ExportError(f"{many}: fold some of them, or export it as DOT")
    try:
        laid_out: bytes = graph.pipe(format=form, quiet=True)
    except ExecutableNotFound as error:
        raise ExportError(f"no {form.upper()}: {INSTALL}") from error
    except CalledProcessError as error:
        raise ExportError(f"dot failed with exit code {error.returncode}") from error
    return laid_out


def dot(drawn: Diagram) -> Digraph:
    """The diagram in Graphviz's language. Names in it are data: none is read as markup."""
    from graphviz import Digraph

    graph = Digraph(
        name=escaped(plain(drawn.graph.id)),
        graph_attr={
            "bgcolor": LIGHT["background"],
            "ranksep": "0.35",
            "nodesep": "0.3",
            # fewer rounds of its optimiser: a tenth of the time, hardly longer lines
            **dict.fromkeys(("nslimit", "nslimit1"), "1"),
            "mclimit": "0.2",
        },
        node_attr={
            "shape": "box",
            "style": "filled,rounded",
            "color": "#00000000",
            "fontname": "monospace",
            "fontsize": "11",
            "fontcolor": LIGHT["text"],
        },
        edge_attr={"color": LIGHT["dim"], "arrowsize": "0.6"},
    )
    for number, block in enumerate(drawn.blocks):
        label = "".join(escaped(line.strip()) + r"\l" for line in words_of(block))
        names = ", ".join(drawn.graph.nodes[i].name[:TOOLTIP] for i in block.nodes[:40])
        tooltip = escaped(plain(names[:TOOLTIP]))
        graph.node(f"b{number}", label, fillcolor=LIGHT[fill_of(block.hue)], tooltip=tooltip)
    graph.edges((f"b{first}", f"b{second}") for first, second in drawn.edges)
    return graph


def escaped(words: str) -> str:
    """The words as a label has them: no `\\N` or `\\l`, no `<html>`, no `&entity;`, no quote that
    ends it."""
    from graphviz import escape

    label: str = escape(words.replace("&", "&amp;"))
    return label
