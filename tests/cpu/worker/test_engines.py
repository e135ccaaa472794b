"""`--engine tcw` and `--engine both` in a real worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.compiler.trace.records import (
    Decided,
    EnginePart,
    EngineSpeed,
    Failure,
    Graph,
    Kernel,
    Numerics,
    Speed,
    Warned,
)
from tcw.viewers.summary.engine_comparison import compare
from tests.cpu.worker.recorded import recorded

MODEL = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        weights = torch.softmax(x, dim=-1)
        return torch.nn.functional.layer_norm(weights + x, (16,))

model = Model()
example_inputs = (torch.linspace(-1, 1, 64).reshape(4, 16).requires_grad_(),)
"""
EXP_SUM = "tcw/0/0/forward/fuse/exp+sum_1"


def test_both_engines_end_to_end(tmp_path: Path) -> None:
    found = recorded(tmp_path, MODEL, until="run", grad="train", engine="both")
    assert found.end.status == "ok"
    assert not found.all(Failure)
    assert [part.engine for part in found.all(EnginePart)] == ["inductor", "tcw"] * 2
    both = found.recording
    graphs = [
        [(graph.id, graph.ops) for graph in part.all(Graph) if graph.kind == "captured"]
        for part in both.engines.values()
    ]
    assert graphs[0] == graphs[1] != []
    for part in both.engines.values():
        assert len(part.all(Speed)) == len(part.all(Numerics)) == 1
        assert part.numerics is not None
        assert part.numerics.within
        assert part.all(Kernel)
        assert part.all(Kernel)[0].id == "k0"
    (speed,) = found.all(EngineSpeed)
    assert (speed.first, speed.second) == ("inductor", "tcw")
    comparison = compare(both)
    assert comparison is not None
    assert {graph.graph for graph in comparison.graphs} == {"0/0/forward", "0/0/backward"}
    assert not [warned.message for warned in found.all(Warned)]


@pytest.mark.long
def test_calls_that_always_recompile_are_not_timed_in_eager(tmp_path: Path) -> None:
    """torch counts the code of both engines together, and runs it eagerly from its limit on."""
    text = MODEL.replace(
        "        weights =",
        "        self.calls += 1\n        x = x * self.calls\n        weights =",
    ).replace("    def forward", "    calls = 0\n\n    def forward")
    found = recorded(tmp_path, text, until="run", engine="both")
    assert found.end.status == "ok"
    assert not found.all(Speed)
    assert [warned.message for warned in found.all(Warned)] == [
        "speed not measured: the repeated calls recompile until torch's recompile limit"
    ]


def test_overrides(tmp_path: Path) -> None:
    overrides = {
        EXP_SUM: "apart",
        "tcw/0/0/forward/fuse/exp+sum_9": "apart",
        "tcw/0/0/joint/save/exp": "never",
    }
    found = recorded(
        tmp_path, MODEL, until="fusion", grad="train", engine="tcw", overrides=overrides
    )
    decided = {one.id: one for one in found.all(Decided)}
    assert decided[EXP_SUM].overridden
    assert decided[EXP_SUM].choice == "apart"
    said = [warned.message for warned in found.all(Warned) if warned.asked]
    assert f"override tcw/0/0/forward/fuse/exp+sum_9 met no decision; the closest is {EXP_SUM}" in (
        said
    )


def test_a_file_that_compiles_itself_is_compiled_by_the_engine_asked_for(tmp_path: Path) -> None:
    text = MODEL.replace("model = Model()", "model = torch.compile(Model())")
    found = recorded(tmp_path, text, until="lowering", engine="tcw")
    assert found.end.status == "ok"
    assert [graph.id for graph in found.all(Graph) if graph.kind == "lowered"]
    assert any("--engine tcw recompiled it" in warned.message for warned in found.all(Warned))


def test_a_script_can_name_the_backend(tmp_path: Path) -> None:
    text = """
import torch
compiled = torch.compile(lambda x: torch.sin(x) + 1, backend="tcw")
print(compiled(torch.zeros(3)).tolist())
"""
    found = recorded(tmp_path, text, until="run")
    assert found.end.status == "ok"
    assert found.all(Kernel)


@pytest.mark.parametrize("engine", ["tcw", "both"])
def test_an_engine_for_a_script_is_refused(tmp_path: Path, engine: str) -> None:
    """It was ignored: the script's own backend compiled, and the report named this engine."""
    text = """
import torch
compiled = torch.compile(lambda x: torch.sin(x) + 1, backend="eager")
compiled(torch.zeros(3))
"""
    found = recorded(tmp_path, text, until="run", engine=engine)
    assert found.failure.type == "ScriptBackend"
    assert found.failure.culprit == "user"
    assert 'backend="tcw"' in found.failure.hint
    assert not found.all(Graph)
