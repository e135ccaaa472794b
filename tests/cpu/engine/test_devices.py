"""Graphs on a device that our loops do not support, with fake tensors: no GPU is needed."""

from __future__ import annotations

import torch
from torch import fx
from torch._subclasses import FakeTensor, FakeTensorMode

from compiler.control.decisions import Gate
from compiler.engine.compile import LOOPS_ON, compile_graph
from compiler.engine.graph_facts import devices
from compiler.engine.recording import listening
from compiler.loops.graph import Call
from compiler.lowering.driver import lower
from compiler.trace.records import Warned
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


def test_what_is_elsewhere_becomes_a_call() -> None:
    module = graph("cpu", "cuda:0")
    assert devices(module) == ["cpu", "cuda"]
    nodes = lower(module, "0/0/inference", LOOPS_ON).nodes
    assert [node.name for node in nodes if isinstance(node, Call)] == ["sin_default_1"]


def test_a_graph_that_is_elsewhere_runs_as_it_is_and_the_recording_says_why() -> None:
    with record([]) as recorded, listening(recorded.recorder, Gate()):
        compile_graph(graph("cuda:0"), (), kind="inference", graph="0/0/inference")
    assert [warned.message for warned in recorded.all(Warned)] == [
        "graph 0/0/inference runs on ATen: its tensors are on cuda, our loops run on the CPU"
    ]
