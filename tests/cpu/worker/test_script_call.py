"""A call that a script makes of what it compiles, recorded as that of a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.compiler.trace.records import (
    CallEnd,
    CallStart,
    Failure,
    Graph,
    Source,
    Warned,
)
from tcw.viewers.recording import Recording
from tests.cpu.worker.recorded import recorded

SCRIPT = """
import torch

class Net(torch.nn.Module):
    def forward(self, x, scale=1.0):
        return torch.relu(x) * scale

@torch.compile(dynamic=False)
def function(x):
    return x.exp()

def main():
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        {calls}
    raise RuntimeError("the script went on")

if __name__ == "__main__":
    main()
"""
CALLS = {
    "module": ("net = torch.compile(Net()); [net(torch.ones(4, n), scale=2.0) for n in (2, 3)]", 2),
    "decorated": ("function(torch.ones(4, 2))", 1),
    "in place": ("net = Net(); net.compile(); net(torch.ones(4, 2))", 1),
    "lambda": ("torch.compile(lambda x: x + 1)(torch.ones(4, 2))", 1),
}


def called(folder: Path, text: str, wanted: int) -> Recording:
    settings = {"script_call": True, "profiled_call": wanted, "until": "capture", "grad": "grad"}
    return recorded(folder, text, name="script.py", **settings).recording


@pytest.mark.parametrize("form", CALLS)
def test_the_wanted_call_is_recorded_alone(tmp_path: Path, form: str) -> None:
    calls, wanted = CALLS[form]
    made = called(tmp_path, SCRIPT.format(calls=calls), wanted)
    assert made.failure is None, made.failure
    assert made.end is not None
    assert made.end.status == "ok"
    assert len(made.all(CallStart)) == len(made.all(CallEnd)) == 1
    assert any(graph.kind == "captured" for graph in made.all(Graph))
    (said,) = (warned.message for warned in made.all(Warned) if "is a script" in warned.message)
    assert f"call {wanted} of what it compiles" in said
    assert "at line 14 under torch.no_grad() with autocast to torch.bfloat16" in said
    if form == "module":
        (start,) = made.all(CallStart)
        assert start.arguments[0].tensor is not None
        assert start.arguments[0].tensor.shape == (4, 3)
        assert made.all(Source)


def test_a_script_that_makes_no_such_call_says_what_to_do(tmp_path: Path) -> None:
    text = "import torch\nf = torch.compile(torch.relu)\nf(torch.ones(2))\n"
    (failure,) = called(tmp_path, text, 3).all(Failure)
    assert "call 3 of what it compiles was to be profiled, and it made only 1" in failure.message
    assert failure.hint.endswith("tcw profile script.py --model EXPR --inputs 'f32[8,64]'")
