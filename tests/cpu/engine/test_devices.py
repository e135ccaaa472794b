"""Where a graph's loops run, by the devices of its tensors: fake ones, so no GPU is needed."""

from __future__ import annotations

import pytest
import torch
from torch import fx
from torch._subclasses import FakeTensor, FakeTensorMode

from tcw.compiler.control.gate import Gate
from tcw.compiler.engine.compile import compile_graph
from tcw.compiler.engine.recording import listening
from tcw.compiler.engine.targets import Cpu, Gpu, devices, target_of
from tcw.compiler.loops.graph import Call
from tcw.compiler.lowering.driver import lower
from tcw.compiler.trace.records import Warned
from tests.cpu.recorded import record


def graph(*places: str) -> fx.GraphModule:
    """`sin` of an input on each of these devices."""
    made = fx.Graph()
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        found = []
        for index, place in enumerate(places):
            fake = FakeTensor(mode, torch.empty(4, device="meta"), torch.device(place))
            source = made.placeholder(f"x{index}")
            source.meta["val"] = fake
            found.append(made.call_function(torch.ops.aten.sin.default, (source,)))
            found[-1].meta["val"] = FakeTensor(
                mode, torch.empty(4, device="meta"), torch.device(place)
            )
    made.output(tuple(found))
    return fx.GraphModule({}, made)


@pytest.fixture(autouse=True)
def hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (9, 0))


def test_what_is_elsewhere_becomes_a_call() -> None:
    module = graph("cpu", "cuda:0")
    assert devices(module) == [torch.device("cpu"), torch.device("cuda:0")]
    for place, call in (("cpu", "sin_default_1"), ("cuda:0", "sin_default")):
        nodes = lower(module, "0/0/inference", torch.device(place)).nodes
        assert [node.name for node in nodes if isinstance(node, Call)] == [call]


def test_loops_run_on_the_gpu_if_there_is_one() -> None:
    assert isinstance(target_of(graph("cpu")), Cpu)
    for places in (("cuda:0",), ("cpu", "cuda:0")):
        target = target_of(graph(*places))
        assert isinstance(target, Gpu)
        assert (target.device, target.architecture.name) == (torch.device("cuda:0"), "sm_90")


@pytest.mark.parametrize(
    ("places", "why"),
    [
        (("meta",), "its tensors are on meta, our loops run on CPUs and GPUs"),
        (("cuda:0", "cuda:1"), "its tensors are on cuda:0 and cuda:1: loops run on one of them"),
    ],
)
def test_a_graph_that_is_elsewhere_runs_as_it_is_and_the_recording_says_why(
    places: tuple[str, ...], why: str
) -> None:
    with record([]) as recorded, listening(recorded.recorder, Gate()):
        compile_graph(graph(*places), (), kind="inference", graph="0/0/inference")
    assert [warned.message for warned in recorded.all(Warned)] == [
        f"tcw cannot compile graph 0/0/inference, which runs on ATen: {why}"
    ]


def test_a_gpu_that_we_do_not_know_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (7, 5))
    assert (
        target_of(graph("cuda:0")) == "no code is written for sm_75: sm_80, sm_90, sm_100 are known"
    )
