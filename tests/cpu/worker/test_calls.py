"""What is called, and what is recorded of it: options, modes, stages, scripts, comparison."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from torch._C._dynamo import eval_frame

from tcw.compiler.trace.records import (
    CallEnd,
    CallStart,
    Engine,
    Environment,
    Graph,
    Kernel,
    Numerics,
    Output,
    Recompile,
    Speed,
    TensorMeta,
    Warned,
)
from tests.cpu.worker.recorded import recorded

NET = """
import torch

class Net(torch.nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)
        self.norm = torch.nn.BatchNorm1d(width)

    def forward(self, x, scale=1.0, *rest, key=None):
        x.add_(1)
        return {"y": self.norm(self.linear(x)) * scale, "n": x.shape[0]}

"""


def test_input_sets_of_every_form(tmp_path: Path) -> None:
    tail = """
    model = Net()
    x = torch.ones(2, 4)
    def example_inputs():
        return [(x,), {"x": x, "scale": 2.0}, ((x,), {"key": [1]}), (x, 2.0, x)]
    """
    found = recorded(tmp_path, NET + textwrap.dedent(tail))
    assert found.end.status == "ok"
    calls = found.all(CallStart)
    assert [call.call for call in calls] == [1, 2, 3, 4]
    assert [[argument.name for argument in call.arguments] for call in calls] == [
        ["x"],
        ["x", "scale"],
        ["x", "key"],
        ["x", "scale", "rest[0]"],
    ]
    assert calls[0].arguments[0].tensor == TensorMeta(
        shape=(2, 4), dtype="float32", stride=(4, 1), bytes=32
    )
    assert calls[1].arguments[1].value == "2.0"
    assert [call.call for call in found.all(CallEnd)] == [1, 2, 3, 4]


def test_model_and_inputs_from_the_command_line(tmp_path: Path) -> None:
    found = recorded(
        tmp_path,
        NET,
        model="Net(width=8).eval()",
        inputs=("f32[3,8]", "f32[5,8], scale=0.5, key=(i64[2](7), 'a')"),
        mark_dynamic=("x:0",),
    )
    assert found.end.status == "ok"
    first, second = found.all(CallStart)
    assert second.arguments[1].value == "0.5"
    assert second.arguments[0].tensor is not None
    assert second.arguments[0].tensor.shape == (5, 8)
    (end_1, end_2) = found.all(CallEnd)
    assert end_1.compiled == ("0/0",)
    assert first.call == 1
    assert not any(
        found.guard == "x.size(0)"
        for recompile in found.all(Recompile)
        for found in recompile.failed
    )
    assert end_2.call == 2


def test_marked_dynamic_is_compiled_once(tmp_path: Path) -> None:
    inputs = ("f32[3,4]", "f32[5,4]", "f32[9,4]")
    for marks, compiles in (((), 2), (("0:0",), 1)):
        found = recorded(tmp_path, NET, model="Net()", inputs=inputs, mark_dynamic=marks)
        assert sum(len(end.compiled) for end in found.all(CallEnd)) == compiles
        if marks:
            # torch 2.11 does not tell that an entry served which is in front already
            served = ("0/0",) if hasattr(eval_frame, "set_bytecode_debugger_callback") else ()
            assert [end.hits for end in found.all(CallEnd)] == [(), served, served]


def test_a_training_run_compares_gradients_state_and_changed_inputs(tmp_path: Path) -> None:
    tail = "model = Net()\nexample_inputs = [(torch.randn(6, 4),), (torch.randn(6, 4),)]\n"
    found = recorded(tmp_path, NET + tail, until="run", grad="train")
    assert found.end.status == "ok"
    (numerics,) = found.all(Numerics)
    # each call: y, the changed input, the gradients of weight and bias, twice, and the buffers
    assert numerics.compared == 2 * (1 + 1 + 4 + 3)
    assert numerics.within is True
    assert numerics.max_abs is not None
    assert numerics.max_abs < 1e-4
    (speed,) = found.all(Speed)
    assert speed.what == "forward + backward"
    assert speed.pairs >= 10
    assert [one.call for one in speed.sets] == [1]
    assert speed.compile_seconds < sum(end.seconds for end in found.all(CallEnd))
    assert {graph.kind for graph in found.all(Graph)} >= {"captured", "forward", "backward"}


def test_random_models_are_not_called_wrong(tmp_path: Path) -> None:
    text = """
        import torch
        def model(x):
            print("called")
            return torch.nn.functional.dropout(x, 0.5)
        example_inputs = (torch.ones(64, 64),)
    """
    found = recorded(tmp_path, textwrap.dedent(text), until="run")
    (numerics,) = found.all(Numerics)
    assert numerics.within is None
    assert numerics.note.startswith("random: not comparable (dropout at model.py:5); ")
    assert [(one.name, one.location.line) for one in numerics.random if one.location] == [
        ("dropout", 5)
    ]
    printed = {"stdout": "", "stderr": ""}
    for output in found.all(Output):
        printed[output.stream] += output.text
    # A torch that is built for CUDA says on stderr that there is none, where there is none.
    logged = [line for line in printed["stderr"].splitlines() if "No CUDA runtime" not in line]
    assert (printed["stdout"], logged) == ("called\n", [])


def test_random_numbers_outside_of_graphs_excuse_no_difference(tmp_path: Path) -> None:
    text = """
        import torch
        @torch.compiler.disable
        def noise(x):
            return torch.rand_like(x)
        def model(x):
            wrong = 1.0 if torch.compiler.is_compiling() else 0.0
            return noise(x) + wrong * x
        example_inputs = (torch.ones(8, 8),)
    """
    found = recorded(tmp_path, textwrap.dedent(text), until="run")
    (numerics,) = found.all(Numerics)
    assert numerics.within is False
    assert numerics.random == ()


@pytest.mark.parametrize("engine", ["inductor", "tcw"])
def test_numbers_that_torch_draws_for_numpy_are_named(tmp_path: Path, engine: Engine) -> None:
    text = """
        import numpy as np, torch
        def model(x):
            return x + torch.from_numpy(np.random.randn(4, 4)).float()
        example_inputs = (torch.ones(4, 4, requires_grad=True),)
    """
    found = recorded(tmp_path, textwrap.dedent(text), until="run", grad="train", engine=engine)
    (numerics,) = found.all(Numerics)
    assert numerics.within is None
    assert numerics.note.startswith(
        "random: not comparable (drawn by torch, not NumPy: randn at model.py:4); "
        "torch.compile draws NumPy's random numbers with torch's generator"
    )


def test_numbers_of_random_that_inductor_misreads_are_named(tmp_path: Path) -> None:
    text = """
        import random, torch
        def model(x):
            return x * random.uniform(1, 2)
        example_inputs = (torch.ones(4, 4),)
    """
    found = recorded(tmp_path, textwrap.dedent(text), until="run")
    (numerics,) = found.all(Numerics)
    if numerics.within:
        pytest.skip("this torch passes drawn numbers as it traced them")
    assert numerics.note == (
        "torch passes numbers that Python's random draws as float64 to code that Inductor compiles "
        "for float32 (random at model.py:4); draw them outside the compiled function"
    )


def test_inference_mode(tmp_path: Path) -> None:
    text = """
        import torch
        def model(x):
            print(torch.is_grad_enabled(), torch.is_inference_mode_enabled())
            return torch.sin(x)
        example_inputs = (torch.ones(2),)
    """
    found = recorded(tmp_path, textwrap.dedent(text), grad="inference")
    assert "".join(output.text for output in found.all(Output)) == "False True\n"


def test_until_autograd_makes_the_graphs_and_no_kernel(tmp_path: Path) -> None:
    tail = "model = Net()\nexample_inputs = (torch.randn(6, 4),)\n"
    found = recorded(tmp_path, NET + tail, until="autograd", grad="train")
    assert found.end.status == "ok"
    kinds = {graph.kind for graph in found.all(Graph)}
    assert {"captured", "joint", "forward", "backward"} <= kinds
    assert not found.all(Kernel)


def test_until_load(tmp_path: Path) -> None:
    found = recorded(tmp_path, NET + "model = Net()\nexample_inputs = (1,)\n", until="load")
    assert found.end.status == "ok"
    assert found.all(Environment)
    assert not found.all(CallStart)


def test_fullgraph_names_the_break(tmp_path: Path) -> None:
    text = """
        import torch
        def model(x):
            y = torch.sin(x)
            print(y.shape)
            return y
        example_inputs = (torch.ones(2),)
    """
    found = recorded(tmp_path, textwrap.dedent(text), fullgraph=True)
    assert found.failure.type == "Unsupported"
    assert found.failure.eager_fails is False
    assert found.line == 5
    assert found.failure.doing == "call 1, capture of 0/0"


def test_a_model_that_the_file_compiles(tmp_path: Path) -> None:
    tail = "model = torch.compile(Net(), backend='eager')\nexample_inputs = (torch.ones(2, 4),)\n"
    found = recorded(tmp_path, NET + tail, dynamic=True, until="build")
    assert found.end.status == "ok"
    assert any("its own options" in warned.message for warned in found.all(Warned))
    (call,) = found.all(CallStart)
    assert [argument.name for argument in call.arguments] == ["x"]


def test_a_module_that_the_file_compiles_in_place(tmp_path: Path) -> None:
    tail = (
        "model = Net()\nmodel.compile(backend='aot_eager')\nexample_inputs = (torch.ones(2, {}),)\n"
    )
    found = recorded(tmp_path, NET + tail.format(4))
    assert found.end.status == "ok"
    assert {graph.kind for graph in found.all(Graph)} == {"captured"}
    found = recorded(tmp_path, NET + tail.format(5), until="build")
    assert found.failure.eager_fails is True
    assert "shapes cannot be multiplied" in found.failure.message


def test_a_script_runs_as_it_is(tmp_path: Path) -> None:
    text = """
        import sys, torch
        assert vars(sys.modules["__main__"]) is globals()
        @torch.compile(backend="eager")
        def f(x):
            return torch.sin(x)
        def main():
            for n in (2, 3, 3):
                f(torch.ones(n))
            print("arguments", sys.argv[1:])
            sys.exit(0)
        if __name__ == "__main__":
            main()
    """
    found = recorded(tmp_path, textwrap.dedent(text), arguments=("a", "-b"))
    assert found.end.status == "ok"
    assert "arguments ['a', '-b']" in "".join(output.text for output in found.all(Output))
    assert [graph.call for graph in found.all(Graph)] == [1, 2]
    assert found.end.calls == 3


def test_a_script_that_compiles_nothing(tmp_path: Path) -> None:
    found = recorded(tmp_path, "import torch\nf = torch.compile(torch.sin)\n")
    assert found.end.status == "ok"
    (warned,) = found.all(Warned)
    assert "called nothing compiled" in warned.message


def test_a_script_that_fails(tmp_path: Path) -> None:
    text = "import sys, torch\ntorch.compile\nsys.exit('no')\n"
    found = recorded(tmp_path, text)
    assert (found.end.status, found.end.exit_code) == ("exited", 1)
    assert found.line == 3


def test_caches_are_of_this_recording_alone(tmp_path: Path) -> None:
    text = (
        "import os, torch\n"
        "from torch._inductor.runtime.cache_dir_utils import cache_dir\n"
        "os.makedirs(cache_dir() + '/kept')\n"
        "print(cache_dir())\n"
        "print(os.environ['TRITON_CACHE_DIR'])\n"
        "model, example_inputs = torch.sin, (torch.ones(2),)\n"
    )
    run = recorded(tmp_path, text)
    printed = "".join(output.text for output in run.all(Output)).split()
    assert len(printed) == 2
    for folder in printed:
        assert Path(folder).parent.name.startswith("tcw-")
        assert not Path(folder).parent.exists()


SCRIPT = """
import subprocess, torch
start = subprocess.Popen.__init__
def counted(self, arguments, *rest, **options):
    print("started", arguments)
    start(self, arguments, *rest, **options)
subprocess.Popen.__init__ = counted

def step(x):
    return torch.sin(x) * 2

x = torch.ones(4, requires_grad=True)
ways = [
    torch.compile(step),
    torch.compile(step, mode="max-autotune-no-cudagraphs"),
    torch.compile(step, backend="inductor", options={"max_autotune": True}),
]
for compiled in ways:
    torch._dynamo.reset()
    out = compiled(x)
    out.sum().backward()
    assert torch.allclose(out, step(x))
"""


@pytest.mark.parametrize("until", ["capture", "autograd"])
def test_a_script_of_its_own_stops_early_too(tmp_path: Path, until: str) -> None:
    found = recorded(tmp_path, SCRIPT, until=until)
    assert found.end.status == "ok", found.records
    assert [output.text for output in found.all(Output)] == []
    kinds = {graph.kind for graph in found.all(Graph)}
    traced = {"joint", "forward", "backward"} if until == "autograd" else set()
    assert kinds == {"captured"} | traced
    assert sum(graph.kind == "captured" for graph in found.all(Graph)) == 3
    assert [warned.message for warned in found.all(Warned)] == []


def test_inductor_in_a_backend_of_the_script_is_told(tmp_path: Path) -> None:
    text = """
        import torch
        from torch._inductor.compile_fx import compile_fx
        def mine(graph, inputs):
            return compile_fx(graph, inputs, inner_compile=lambda graph, *a, **k: graph)
        torch.compile(lambda x: x.sin().cos(), backend=mine)(torch.ones(2))
        torch._dynamo.utils.counters["inductor"]["counted"] += 1
    """
    found = recorded(tmp_path, textwrap.dedent(text), until="capture")
    assert found.end.status == "ok"
    (warned,) = found.all(Warned)
    assert "a backend of its own" in warned.message


def test_a_model_that_counts_outside_of_itself_is_not_called_wrong(tmp_path: Path) -> None:
    text = """
        import torch
        count = {"n": 0}
        def model(x):
            count["n"] += 1
            return x * count["n"]
        example_inputs = [(torch.ones(4),), (torch.ones(4),)]
    """
    # each call compiles anew, which our engine does in less time
    found = recorded(tmp_path, textwrap.dedent(text), until="run", engine="tcw")
    (numerics,) = found.all(Numerics)
    assert numerics.within is None
    assert numerics.note.startswith("not comparable: eager returns a different result each time")
