from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.trace.records import Graph, Node
from tcw.viewers.drawing.dot import escaped
from tcw.viewers.drawing.export import FORMATS, ExportError, Format, export, suggested
from tcw.viewers.panes.view import View
from tests.conftest import Golden
from tests.no_torch.viewers.panes.conftest import view_of

HOSTILE = (
    "a" * 10_000,
    '"]; b0 -> b0 [label="',
    "</svg><script>alert(1)</script>",
    "back\\slash \\N \\l \\",
    "new\nline\r\ttab\x00\x1b[31m",
    "<b>html</b>",
    "\u202e表 & ' ]]>",
)


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


def test_our_svg(block: View, tmp_path: Path, golden: Golden) -> None:
    path = tmp_path / "graph.svg"
    said = export(block, path, "svg", own=True)
    assert said == f"{path}: 12 blocks, laid out by tcw"
    golden("drawing/block.svg", path.read_text())
    assert "k4 softmax" in texts(path.read_text())


def test_dot(block: View, tmp_path: Path, golden: Golden) -> None:
    export(block, tmp_path / "graph.dot", "dot")
    golden("drawing/block.dot", (tmp_path / "graph.dot").read_text())


@pytest.mark.skipif(not shutil.which("dot"), reason="Graphviz is not installed")
@pytest.mark.parametrize("form", ["svg", "png"])
def test_graphviz_lays_out_where_it_is(form: Format, block: View, tmp_path: Path) -> None:
    path = tmp_path / f"graph.{form}"
    assert export(block, path, form).endswith("laid out by Graphviz")
    if form == "svg":
        assert "k4 softmax" in texts(path.read_text())


def test_without_graphviz_we_draw(
    block: View, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = pytest.importorskip("PIL.Image")
    monkeypatch.setenv("PATH", "")
    for form in ("svg", "png"):
        assert export(block, tmp_path / f"graph.{form}", form).endswith("laid out by tcw")  # type: ignore[arg-type]
    with image.open(tmp_path / "graph.png") as picture:
        assert picture.width > 300
        assert picture.height > picture.width


@pytest.mark.parametrize("form", FORMATS)
def test_hostile_names(form: Format, tmp_path: Path) -> None:
    path = tmp_path / f"graph.{form}"
    if form == "png":
        pytest.importorskip("PIL")
    export(chain(HOSTILE), path, form, own=True)
    if form == "svg":
        svg = path.read_text()
        assert "<script" not in svg
        assert any("</svg>" in text for text in texts(svg))
        assert len(svg) < 30_000
    elif form == "dot" and shutil.which("dot"):
        done = subprocess.run(["dot", "-Tsvg", path], capture_output=True, check=True)
        assert not done.stderr
        nodes = re.findall(rb'class="node"', done.stdout)
        assert len(nodes) == len(HOSTILE)
        assert len(re.findall(rb'class="edge"', done.stdout)) == len(HOSTILE) - 1


@given(st.text())
def test_a_quoted_string_ends_where_it_should(words: str) -> None:
    inside = escaped(words)
    assert not re.search(r'(?<!\\)(\\\\)*"', inside)
    assert re.sub(r"\\(.)", r"\1", inside, flags=re.DOTALL) == words


def test_what_cannot_be_written_is_said(block: View, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"cannot write .*: no folder .*none"):
        export(block, tmp_path / "none" / "graph.dot", "dot")
    with pytest.raises(ExportError, match="no graph here"):
        export(view_of([]), tmp_path / "graph.dot", "dot")
    assert suggested(block) == "0-0-forward-lowered.svg"
    assert not list(tmp_path.iterdir())


def test_a_png_that_would_be_too_large_is_not_drawn(
    block: View, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("PIL")
    monkeypatch.setattr("tcw.viewers.drawing.png.PIXELS", 1000)
    with pytest.raises(ExportError, match="export it as SVG"):
        export(block, tmp_path / "graph.png", "png", own=True)


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_is_written_over(block: View, tmp_path: Path, form: Format) -> None:
    model, link = tmp_path / "model.py", tmp_path / f"link.{form}"
    model.write_text("import torch\n")
    link.symlink_to(model)
    dangling = tmp_path / f"dangling.{form}"
    dangling.symlink_to("made")
    for path, why in ((model, "already exists"), (link, "link"), (dangling, "link")):
        with pytest.raises(ExportError, match=why):
            export(block, path, form, own=True)
    assert model.read_text() == "import torch\n"
    assert not (tmp_path / "made").exists()
    assert not [one for one in tmp_path.iterdir() if one.name.startswith(".tcw-")]
