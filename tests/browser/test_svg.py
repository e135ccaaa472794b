"""Exported screens in a browser: every cell in its place, and nothing in them runs."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import msgspec
import pytest

from tcw.compiler.trace.records import AnyRecord, Source, Text
from tcw.compiler.trace.writer import text_hash
from tcw.workbench.tui.picture import picture
from tests.block_trace import block_trace
from tests.browser.conftest import Dump
from tests.no_torch.tui.conftest import Open, Reader, encoded

PICTURES = sorted((Path(__file__).parents[2] / "docs" / "pictures").glob("*.svg"))

MEASURE = """<script>
const cells = document.querySelectorAll('svg text');
const frame = document.querySelector('svg').getBoundingClientRect();
const out = [...cells].filter(t => t.getBoundingClientRect().right > frame.right + 1);
const said = {texts: cells.length, out: out.map(t => t.textContent), scripts: window.ran || 0};
document.title = JSON.stringify(said);
</script>"""


def page(folder: Path, svg: str) -> Path:
    path = folder / "page.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><title></title>{svg}{MEASURE}")
    return path


def measured(document: str) -> dict[str, object]:
    title = re.search(r"<title>(.*?)</title>", document, re.DOTALL)
    assert title is not None
    found: dict[str, object] = json.loads(html.unescape(title[1]))
    return found


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.stem)
def test_a_picture_of_the_readme_is_drawn_whole(picture: Path, dump: Dump, tmp_path: Path) -> None:
    svg = picture.read_text()
    found = measured(dump(page(tmp_path, svg)))
    assert found["out"] == []
    assert int(str(found["texts"])) > 100
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", svg), "it would load something"


async def test_markup_in_a_source_file_is_text(
    dump: Dump, open_trace: Open, tmp_path: Path
) -> None:
    attack = "x = '</text><script>window.ran = 1</script><image href=x onerror=window.ran=1>'"
    path = tmp_path / "attack.tcw"
    path.write_bytes(encoded(_with_source(block_trace(), attack)))
    async with open_trace(path, (120, 40)) as reader:
        await _source(reader)
        assert "<script>" in reader.text()
        svg = picture(reader.app)
    found = measured(dump(page(tmp_path, svg)))
    assert found["scripts"] == 0
    assert found["out"] == []


async def _source(reader: Reader) -> None:
    await reader.choose("go to source")
    await reader.press("z", "g", "g")


def _with_source(records: list[AnyRecord], line: str) -> list[AnyRecord]:
    """The trace with a source whose every line is `line`."""
    source = next(record for record in records if isinstance(record, Source))
    body = "\n".join([line] * 40)
    changed: list[AnyRecord] = []
    for record in records:
        if record is source:
            changed.append(Text(hash=text_hash(body), body=body))
            changed.append(msgspec.structs.replace(source, text=text_hash(body)))
        else:
            changed.append(record)
    return changed
