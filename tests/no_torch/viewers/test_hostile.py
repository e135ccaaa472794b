"""Hostile texts of every record in what is written: reports, JSON, drawings, overrides."""

from __future__ import annotations

import io
import json
import shutil
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.trace.records import AnyRecord, Graph
from tcw.viewers import json_report
from tcw.viewers.drawing.export import FORMATS, Format, export
from tcw.viewers.json_text import json_text
from tcw.viewers.recording import Recording
from tcw.viewers.text.explain import explain
from tcw.viewers.text.lines import write
from tcw.viewers.text.sections import SECTIONS
from tcw.workbench.tui.overriding import to_toml
from tests.block_trace import block_trace
from tests.long import mostly_long
from tests.no_torch.both_engines import both_engines_trace
from tests.no_torch.every_record import every_record
from tests.no_torch.hostile import EVIL, How, hostile
from tests.no_torch.viewers.panes.conftest import view_of

HOWS: tuple[How, ...] = ("added", "replaced", "long")


@pytest.mark.parametrize(
    ("how", "records"),
    mostly_long(
        [*((how, every_record) for how in HOWS), ("added", both_engines_trace)],
        [*((how, every_record) for how in HOWS if how != "long"), ("added", both_engines_trace)],
    ),
)
def test_reports(how: How, records, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("NO_COLOR", "1")
    recording = Recording(hostile(records(), how))
    for encoding in ("utf-8", "ascii"):
        raw = io.BytesIO()
        stream = io.TextIOWrapper(raw, encoding=encoding, newline="")
        write(explain(recording, show=SECTIONS), stream, 100)
        shown = raw.getvalue().decode(encoding)
        assert all(line.isprintable() for line in shown.split("\n"))
    assert json.loads(json_text(json_report.report(recording)))


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("form", FORMATS)
def test_drawings(how: How, form: Format, tmp_path: Path) -> None:
    if form != "dot" and not shutil.which("dot"):
        pytest.skip("Graphviz is not installed")
    records: list[AnyRecord] = hostile(block_trace(), how)
    graph = next(record for record in records if isinstance(record, Graph))
    view = view_of(records, graph.compile_id)
    path = tmp_path / f"graph.{form}"
    export(view, path, form)
    if form == "svg":
        svg = path.read_text()
        tags = {one.tag.rpartition("}")[2] for one in ElementTree.fromstring(svg).iter()}
        assert "script" not in tags
    elif form == "dot":
        text = path.read_text()
        assert all(line.removeprefix("\t").isprintable() for line in text.split("\n"))


TEXTS = st.one_of(st.sampled_from(EVIL), st.text(st.characters(codec="utf-8")))


@given(st.dictionaries(TEXTS, TEXTS, max_size=5))
def test_a_file_of_overrides_says_what_was_chosen(overrides: dict[str, str]) -> None:
    assert tomllib.loads(to_toml(overrides)) == overrides
