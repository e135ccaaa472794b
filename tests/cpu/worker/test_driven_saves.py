"""What to save for the backward, asked of a person: the question shows the file of its layer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.compiler.protocol.decision import split_id
from tcw.compiler.trace import refs
from tcw.compiler.trace.provenance import Provenance
from tcw.compiler.trace.records import Decided, Graph, Settings
from tcw.compiler.trace.records.session import Engine
from tcw.viewers.navigator import Navigator
from tcw.viewers.panes.source import file_of
from tcw.viewers.panes.view import Derived, View
from tcw.viewers.recording import Recording
from tests.cpu.worker.driven import Person, person

LAYERS = """
import torch

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)

    def forward(self, x):
        y = torch.relu(self.inner(x))
        return (y * torch.sigmoid(y)).tanh().exp()
"""
MODEL = """
import torch
from layers import Layer

model = torch.nn.Sequential(Layer(), Layer())
example_inputs = (torch.randn(4, 8),)
"""


@pytest.mark.parametrize("engine", ["inductor", "tcw"])
def test_the_question_shows_the_line_of_its_own_file(engine: Engine, tmp_path: Path) -> None:
    layers = tmp_path / "layers.py"
    layers.write_text(LAYERS)
    model = tmp_path / "model.py"
    model.write_text(MODEL)
    settings = Settings(file=str(model), engine=engine, until="codegen")
    with person(settings) as one:
        waits = one.goes("any-decision")
        assert split_id(waits.decision)[1] == "save"
        assert waits.location is not None
        assert waits.location.file == str(layers)
        assert file_of(at_question(one)) == str(layers)
        one.until_end()
    joints = [graph for graph in one.all(Graph) if graph.kind == "joint"]
    assert len(joints) == 1


def at_question(one: Person) -> View:
    """The workbench's view, with the node of the decision that waits selected."""
    recording = Recording(list(one.records))
    view = View(Derived(recording, Provenance(recording.records)))
    (asked,) = (record for record in one.all(Decided) if record.open)
    Navigator(view).view.select(refs.node(asked.graph, asked.shown.origins[0]))
    return view
