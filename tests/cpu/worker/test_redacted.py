"""A real recording, redacted: nothing of its source is left that is no word of Python or torch."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tcw.compiler.trace.redaction.names import public_words
from tcw.viewers.recording import Recording
from tests.cpu.command_line import tcw

MODEL = '''\
"""Brewing marmalade in Zanzibar."""
import torch
import torch.nn as nn

PASSPHRASE = "open sesame"


@torch.library.custom_op("acmelib::stir_kumquat", mutates_args=())
def stir_kumquat(pulp: torch.Tensor, vigour: float) -> torch.Tensor:
    return pulp * vigour


@stir_kumquat.register_fake
def _(pulp, vigour):
    return torch.empty_like(pulp)


class ZanzibarMixer(nn.Module):
    def __init__(self, breadth=24):
        super().__init__()
        self.kumquatProjection = nn.Linear(breadth, breadth)
        self.lemon_norm = nn.LayerNorm(breadth)
        self.recipes = nn.ModuleDict({"quince_jelly": nn.Linear(breadth, breadth)})
        self.flavour = "bitter"
        self.pepper = 0.0371

    def forward(self, marmalade, sweetness=0.8125):
        broth = torch.relu(self.kumquatProjection(marmalade)) * sweetness
        broth = stir_kumquat(broth, 3.625)
        print("tasting", tuple(broth.shape))
        if self.flavour == "bitter" and broth.sum() > 1234.5:
            broth = broth * self.pepper
        return self.recipes["quince_jelly"](self.lemon_norm(broth)).softmax(-1)


torch.manual_seed(0)
zanzibar_instance = ZanzibarMixer().eval()
model = zanzibar_instance
example_inputs = [(torch.randn(4, 24), 0.8125), (torch.randn(6, 24), 0.4375)]
'''
CONSTANTS = ("0.0371", "0.8125", "0.4375", "3.625", "1234.5")


def secrets() -> set[str]:
    """Identifiers and strings of the source that are no words of Python or torch, lower case."""
    found = set()
    for node in ast.walk(ast.parse(MODEL)):
        for name in ("id", "arg", "attr", "name", "asname"):
            found |= set((getattr(node, name, None) or "").split("."))
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {node.value, *node.value.replace(".", "").split()}
    words = {one for one in found if isinstance(one, str) and len(one) > 2}
    return {word.lower() for word in words - public_words() - {"and", "Zanzibar.", "Brewing"}}


@pytest.mark.parametrize("engine", ["tcw", pytest.param("inductor", marks=pytest.mark.long)])
def test_nothing_of_the_source_is_left(engine: str, tmp_path: Path) -> None:
    folder = tmp_path / "zanzibar_kitchen"
    folder.mkdir()
    (folder / "marmalade_model.py").write_text(MODEL)
    options = ("--engine", engine, "--no-grad", "--trace", "run.tcw")
    done = tcw(folder, "explain", "marmalade_model.py", *options)
    assert done.code == 0, done.err
    assert "tasting" in (folder / "run.tcw").read_text()
    done = tcw(folder, "export", "run.tcw", "--redact", "-o", "redacted.tcw")
    assert done.code == 0, done.err
    assert "redacted: without the text of source files" in done.err
    text = (folder / "redacted.tcw").read_text().lower()
    for constant in CONSTANTS:  # by themselves: a time may have the same digits in it
        assert not re.search(rf"(?<![\d.]){re.escape(constant)}(?!\d)", text), constant
    wanted = secrets() | {"kumquat_projection", "zanzibar", "marmalade", str(tmp_path).lower()}
    assert {"open sesame", "quince_jelly", "kumquatprojection", "stir_kumquat"} < wanted
    assert {one: text[text.index(one) - 80 :][:160] for one in wanted if one in text} == {}
    before, after = (Recording.open(folder / one) for one in ("run.tcw", "redacted.tcw"))
    assert not after.losses
    assert [len(graph.nodes) for graph in after.graphs.values()] == [
        len(graph.nodes) for graph in before.graphs.values()
    ]
    assert after.kernels.keys() == before.kernels.keys()
