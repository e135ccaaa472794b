from __future__ import annotations

import html
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import graphviz
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.trace.records import Graph, Node
from tcw.viewers.drawing import export as exporting
from tcw.viewers.drawing.export import FORMATS, ExportError, Format, escaped, export, suggested
from tcw.viewers.panes.view import View
from tests.conftest import Golden
from tests.no_torch.viewers.panes.conftest import view_of

HOSTILE = (
    "a" * 10_000,
    '"]; b0 -> b0 [label="',
    'quoted\\"]; b0 -> b0 [label=\\"',
    "</svg><script>alert(1)</script>",
    "back\\slash \\N \\l \\G \\",
    "new\nline\r\ttab\x00\x1b[31m",
    "<b>html</b>",
    "<<b>html</b>>",
    "{a|<port> b|{c}}",
    "&lt;b&gt; &amp; &#65;",
    "\u202e表 & ' ]]>",
)
needs_dot = pytest.mark.skipif(not shutil.which("dot"), reason="Graphviz is not installed")


def chain(names: tuple[str, ...]) -> View:
    nodes = tuple(
        Node(name=name, op="call_function", target=name, inputs=names[max(0, at - 1) : at])
        for at, name in enumerate(names)
    )
    return view_of(
        [Graph(id="0/0", kind="captured", compile_id="0/0", nodes=nodes, ops=len(names))]
    )


def texts(svg: str) -> list[str]:
    tree = ElementTree.fromstring(svg)
    return [element.text or "" for element in tree.iter() if element.tag.endswith("text")]


def test_dot(block: View, tmp_path: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")  # Graphviz is not needed
    path = tmp_path / "graph.dot"
    assert export(block, path, "dot") == f"{path}: 12 blocks"
    golden("drawing/block.dot", path.read_text())


@needs_dot
def test_graphviz_lays_out(block: View, tmp_path: Path) -> None:
    svg, png = tmp_path / "graph.svg", tmp_path / "graph.png"
    assert export(block, svg, "svg") == f"{svg}: 12 blocks"
    assert "k4 softmax" in texts(svg.read_text())
    assert "softmax" in svg.read_text().partition("xlink:title=")[2]
    export(block, png, "png")
    head = png.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    width, height = (int.from_bytes(head[at : at + 4]) for at in (16, 20))
    assert height > width > 100


@pytest.mark.parametrize("form", ["svg", "png"])
def test_without_graphviz_the_error_says_what_to_install(
    form: Format, block: View, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ExportError, match=rf"no {form.upper()}.*apt install graphviz"):
        export(block, tmp_path / f"graph.{form}", form)
    assert not list(tmp_path.iterdir())


@needs_dot
def test_hostile_names(tmp_path: Path) -> None:
    view = chain(HOSTILE)
    path = tmp_path / "graph.svg"
    export(view, path, "svg")
    svg = path.read_text()
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()}
    assert tags <= {"svg", "g", "title", "polygon", "path", "text", "a"}
    assert len(re.findall('class="node"', svg)) == len(HOSTILE)
    assert len(re.findall('class="edge"', svg)) == len(HOSTILE) - 1
    shown = [text.replace("\xa0", " ") for text in texts(svg)]
    for name in ("<b>html</b>", "<<b>html</b>>", "{a|<port> b|{c}}", "&lt;b&gt; &amp; &#65;"):
        assert name in shown
    assert "back\\slash \\N \\l \\G \\" in shown
    assert any("</svg>" in text for text in shown)
    assert len(svg) < 40_000


@given(st.text())
def test_a_label_ends_where_it_should(words: str) -> None:
    graph = graphviz.Digraph()
    graph.node("b0", escaped(words) + r"\l")
    inside = re.fullmatch(r'\tb0 \[label="((?:[^"\\]|\\.)*)\\l"\]\n', graph.body[0], re.DOTALL)
    assert inside is not None
    shown = re.sub(r"\\(.)", r"\1", inside[1], flags=re.DOTALL)
    assert html.unescape(shown) == words


def test_what_cannot_be_written_is_said(block: View, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"cannot write .*: no folder .*none"):
        export(block, tmp_path / "none" / "graph.dot", "dot")
    with pytest.raises(ExportError, match="no graph here"):
        export(view_of([]), tmp_path / "graph.dot", "dot")
    assert suggested(block) == "0-0-forward-lowered.svg"
    assert not list(tmp_path.iterdir())


def test_a_graph_that_is_too_large_is_not_laid_out(
    block: View, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "MOST", 10)
    with pytest.raises(ExportError, match=r"12 blocks are too many.*export it as DOT"):
        export(block, tmp_path / "graph.png", "png")
    export(block, tmp_path / "graph.dot", "dot")


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_is_written_over(block: View, tmp_path: Path, form: Format) -> None:
    if form != "dot" and not shutil.which("dot"):
        pytest.skip("Graphviz is not installed")
    model, link = tmp_path / "model.py", tmp_path / f"link.{form}"
    model.write_text("import torch\n")
    link.symlink_to(model)
    dangling = tmp_path / f"dangling.{form}"
    dangling.symlink_to("made")
    for path, why in ((model, "already exists"), (link, "link"), (dangling, "link")):
        with pytest.raises(ExportError, match=why):
            export(block, path, form)
    assert model.read_text() == "import torch\n"
    assert not (tmp_path / "made").exists()
    assert not [one for one in tmp_path.iterdir() if one.name.startswith(".tcw-")]
