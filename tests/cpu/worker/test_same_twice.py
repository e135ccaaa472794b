"""Two runs of one model differ in nothing, through the command line: nor do they if a comment and
an unused function are added above the model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cpu.command_line import ROOT, tcw

SAMPLES = sorted(path for path in (ROOT / "sample_models").glob("*.py") if path.stem[0] != "_")
TRANSFORMERS = ("bert", "llama", "t5", "whisper", "mixtral", "mamba")
TRAINED = ("training_step", "troubled_block")
CHEAP = (("softmax_layernorm", "inductor"),)
"""What plain pytest compiles, and does not build."""

ABOVE = "# a comment\n\n\ndef unused(x):\n    return x + 1\n\n\n"
TRANSFORMER = """\
import sys

sys.path.insert(0, {root!r})
import torch
from tests.cpu.transformer_models import RECIPES

torch.manual_seed(0)
recipe = RECIPES[{name!r}]()
model = recipe.model.eval()
example_inputs = recipe.inputs(2)
"""


def _source(name: str) -> str:
    if name in TRANSFORMERS:
        return TRANSFORMER.format(root=str(ROOT), name=name)
    return (ROOT / "sample_models" / f"{name}.py").read_text()


@pytest.mark.parametrize(
    ("name", "engine", "until"),
    [
        *(
            pytest.param(name, engine, "run", marks=pytest.mark.long)
            for name in (*(path.stem for path in SAMPLES), *TRANSFORMERS)
            for engine in ("tcw", "inductor")
        ),
        *((name, engine, "codegen") for name, engine in CHEAP),
    ],
)
def test_two_runs_differ_in_nothing(name: str, engine: str, until: str, tmp_path: Path) -> None:
    source, file = _source(name), tmp_path / "model.py"
    options = ["--engine", engine, "--quiet", "--train" if name in TRAINED else "--no-grad"]
    options += ["--until", until]
    for trace, text in (("a.tcw", source), ("b.tcw", source), ("c.tcw", ABOVE + source)):
        file.write_text(text)
        done = tcw(tmp_path, "explain", "model.py", *options, "--trace", trace)
        assert done.code == 0, done.err or done.out
    for other in ("a.tcw", "b.tcw", "c.tcw"):
        done = tcw(tmp_path, "diff", "a.tcw", other, "--json")
        assert done.code == 0, done.err
        found = json.loads(done.out)
        # a time has no place here, and rounding may fall differently on other input
        empty = ("effects", "settings", "breaks", "recompiles", "decisions", "kernels")
        assert {key: found[key] for key in empty} == {key: [] for key in empty}, other
        counted = [one for one in found["figures"] if one["unit"] in ("count", "bytes")]
        assert counted
        assert all(one["before"] == one["after"] for one in counted), (other, counted)
        assert found["same"], other
