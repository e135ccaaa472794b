"""Where the source pane opens."""

from __future__ import annotations

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import AnyRecord, Source, Text
from tcw.compiler.trace.writer import text_hash
from tcw.viewers.panes import source
from tcw.viewers.panes.view import View
from tests.no_torch import traces
from tests.no_torch.viewers.panes.conftest import view_of

PROSE = '"""A docstring.\n\nOf several lines.\n"""\n'


def opened(code: str) -> list[AnyRecord]:
    body = PROSE + code
    return [
        *traces.opening()[:2],
        Text(hash=text_hash(body), body=body),
        Source(file=traces.FILE, text=text_hash(body)),
    ]


def starts_at(view: View) -> int:
    content = source.content(view, 60)
    assert content.centred
    return refs.split_source(content.start)[1]


def test_a_file_opens_at_its_module() -> None:
    code = "import torch\n\nclass Options:\n    pass\n\n"
    code += "class Net(torch.nn.Module):\n    pass\n\nmodel = Net()\n"
    assert starts_at(view_of(opened(code))) == 10


def test_a_file_that_defines_no_module_opens_where_it_makes_its_model() -> None:
    code = "import lib\n\ndef helper():\n    model = 1\n\nmodel = lib.Net()\n"
    assert starts_at(view_of(opened(code))) == 10
    assert starts_at(view_of(opened("def model(x):\n    return x\n"))) == 5


def test_a_file_that_was_compiled_opens_at_its_first_node(block: View) -> None:
    assert starts_at(block) == 17


def test_lines_are_shown_as_they_are_indented(block: View) -> None:
    file = block.derived.main_file
    shown = ["".join(words for words, _ in row.body) for row in source.content(block, 80).rows]
    assert shown == list(block.recording.source(file))
    assert any(line.startswith("        ") for line in shown)
