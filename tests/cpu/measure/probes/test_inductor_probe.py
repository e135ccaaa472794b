"""Graphs that Inductor compiled, observed while they run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from tcw.compiler.inductor import codegen, memory_plan
from tcw.compiler.measure.compiled.alone import NotAlone, copied
from tcw.compiler.measure.compiled.inductor_graphs import InductorGraph, inductor_graphs
from tcw.compiler.measure.compiled.named_graphs import named_graphs
from tcw.compiler.measure.probes.clock import HostClock, Reading
from tcw.compiler.measure.probes.code_probe import cost_of_marks, spans
from tcw.compiler.measure.probes.inductor_probe import InductorProbe
from tcw.compiler.measure.probes.steps import GraphStep, kernel_of_steps
from tcw.compiler.trace.matching import root_graph
from tcw.compiler.trace.records import Kernel
from tests.cpu.recorded import record


class Trained(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(16, 32)
        self.second = torch.nn.Linear(32, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.sort(torch.relu(self.first(x)), -1)[0]
        return torch.softmax(self.second(h), -1)


def branches(x: torch.Tensor) -> torch.Tensor:
    y: torch.Tensor = torch.cond(
        x.sum() > 0, lambda t: (t.sin() @ t).relu(), lambda t: (t.cos() + 1) @ t, (x,)
    )
    return torch.softmax(y, -1)


@dataclass
class Compiled:
    graphs: dict[str, InductorGraph]
    kernels: list[Kernel]

    def probe(self, graph: str) -> InductorProbe:
        return InductorProbe(graph, self.graphs[graph])

    def called(self, graph: str) -> Any:
        """A call as AOTAutograd makes it, on the first arguments."""
        live = self.graphs[graph]
        assert live.arguments is not None
        with torch.no_grad():
            return live.module.call(copied(live.arguments))


@pytest.fixture(scope="module")
def compiled() -> Any:
    hooks = [codegen.HOOK, memory_plan.HOOK]
    with record(hooks) as recorded, inductor_graphs() as found:
        torch.manual_seed(0)
        torch.compile(Trained())(torch.randn(4, 16)).square().sum().backward()
        with torch.no_grad():
            torch.compile(branches)(torch.ones(8, 8))
        kernels = recorded.all(Kernel)
        named = named_graphs(found, kernels)
        assert not named.lost
        yield Compiled(named.graphs, kernels)


FORWARD, BACKWARD, BRANCHES = "0/0/forward", "0/0/backward", "1/0/inference"
EACH = pytest.mark.parametrize("graph", [FORWARD, BACKWARD, BRANCHES])


def timed(compiled: Compiled, graph: str, base: int = 100) -> list[Reading]:
    clock = HostClock()
    with compiled.probe(graph).timing(clock, base):
        compiled.called(graph)
    return clock.readings()


@EACH
def test_every_step_is_a_kernel_that_was_recorded(compiled: Compiled, graph: str) -> None:
    steps = compiled.probe(graph).steps
    own = [kernel for kernel in compiled.kernels if root_graph(kernel.graph)[0] == graph]
    found = kernel_of_steps(steps, own)
    of_id = {kernel.id: kernel for kernel in own}
    # each step has one, and each kernel a step
    assert sorted(found) == [step.index for step in steps]
    assert {kernel.id for kernel in own} == set(found.values())
    # a condition reads a tensor on the host before it calls a branch
    condition = ("Conditional", "Switch")  # from torch 2.14 on
    for index, id in found.items():
        name = steps[index].name
        assert of_id[id].name in (condition if name == "aten.item" else (name,))


@EACH
def test_each_run_is_read_whole_and_step_by_step(compiled: Compiled, graph: str) -> None:
    readings = timed(compiled, graph)
    assert readings[0].key == 100
    inside = readings[1:]
    expected = [101 + step.index for step in compiled.probe(graph).steps]
    if graph == BRANCHES:
        other = [s.index + 101 for s in compiled.probe(graph).steps if "false" in s.within]
        assert len(other) == 2
        expected = [key for key in expected if key not in other]
    assert [reading.key for reading in inside] == expected
    ends = [reading.start + reading.ns for reading in inside]
    assert all(end <= after.start for end, after in zip(ends, inside[1:], strict=False))


@EACH
def test_a_probed_graph_answers_what_it_answers_alone(compiled: Compiled, graph: str) -> None:
    live = compiled.graphs[graph]
    plain = compiled.called(graph)
    assert live.call == live.generated
    with compiled.probe(graph).timing(HostClock(), 0):
        assert live.call != live.generated
        probed = compiled.called(graph)
    assert live.call == live.generated
    for one, other in zip(pytree.tree_leaves(plain), pytree.tree_leaves(probed), strict=True):
        assert torch.equal(one, other) if isinstance(one, torch.Tensor) else one is other


def test_a_step_shows_what_it_read_and_what_it_wrote(compiled: Compiled) -> None:
    told: list[tuple[str, str, dict[str, Any]]] = []

    def keep(when: str) -> Any:
        def see(step: GraphStep, tensors: Mapping[str, Any]) -> None:
            told.append((when, step.name, {name: t.clone() for name, t in tensors.items()}))

        return see

    probe = compiled.probe(FORWARD)
    with probe.observing(keep("after"), before=keep("before")):
        compiled.called(FORWARD)
    assert [(when, name) for when, name, _ in told] == [
        (when, step.name) for step in probe.steps for when in ("before", "after")
    ]
    # a linear layer in place of its kernel: from the inputs that it had
    arguments = compiled.graphs[FORWARD].arguments
    assert arguments is not None
    seen = dict(told[0][2])
    weight, bias, x = (seen[f"primals_{number}"] for number in (1, 2, 3))
    (name,) = seen.keys() - {"primals_1", "primals_2", "primals_3"}
    assert torch.allclose(told[1][2][name], torch.nn.functional.linear(x, weight, bias))
    # each result of a call that returns several, by the name that the wrapper gives it later
    after_sort = next(t for when, name, t in told if when == "after" and "sort" in name)
    before_sort = next(t for when, name, t in told if when == "before" and "sort" in name)
    shapes = [tuple(t.shape) for name, t in after_sort.items() if name not in before_sort]
    assert shapes.count((4, 32)) >= 4  # values and indices, each by two names


def test_what_is_seen_may_fail_and_the_graph_is_as_it_was(compiled: Compiled) -> None:
    def see(step: GraphStep, tensors: Mapping[str, Any]) -> None:
        raise ValueError("planned")

    with (
        pytest.raises(ValueError, match="planned"),
        compiled.probe(FORWARD).observing(see),
    ):
        compiled.called(FORWARD)
    assert compiled.called(FORWARD)


def test_a_kernel_that_fails_leaves_the_readings_before_it(compiled: Compiled) -> None:
    live = compiled.graphs[BACKWARD]
    first, *_, last = [
        step for step in InductorProbe(BACKWARD, live).steps if step.kind == "kernel"
    ]
    original = getattr(live.module, last.name)
    clock = HostClock()

    def fails(*arguments: Any) -> None:
        raise ValueError("planned")

    setattr(live.module, last.name, fails)
    try:
        with (
            pytest.raises(ValueError, match="planned"),
            InductorProbe(BACKWARD, live).timing(clock, 100),
        ):
            compiled.called(BACKWARD)
    finally:
        setattr(live.module, last.name, original)
    keys = [reading.key for reading in clock.readings()]
    assert 101 + first.index in keys
    assert 101 + last.index not in keys


def test_a_graph_that_cannot_be_taken_apart_is_timed_whole(tmp_path: Any) -> None:
    class Module:
        def __init__(self) -> None:
            file = tmp_path / "wrapper.py"
            file.write_text("call = _wrap_func(module.inductor_entry_cpp)\n", encoding="utf-8")
            self.__file__ = str(file)
            self.call = lambda arguments: [sum(arguments)]

    live = InductorGraph(Module())
    probe = InductorProbe("0/0/forward", live)
    assert probe.steps == []
    assert probe.unmeasured == "it was timed whole: its wrapper is C++ code"
    clock = HostClock()
    with probe.timing(clock, 7):
        assert live.module.call([1, 2]) == [3]
    assert [reading.key for reading in clock.readings()] == [7]
    with pytest.raises(NotAlone, match=r"C\+\+"), probe.observing(lambda step, tensors: None):
        pass


def test_marks_nest_and_what_was_never_stopped_is_left_out() -> None:
    assert spans([(1, 10), (2, 20), (3, 30), (-3, 35), (-1, 50)]) == [(0, 10, 50), (2, 30, 35)]
    own, pair = cost_of_marks()
    assert 0 < own < pair


def test_another_clock_is_started_and_stopped_with_the_same_keys(compiled: Compiled) -> None:
    said: list[tuple[str, int]] = []

    class Other:
        def start(self, key: int) -> None:
            said.append(("start", key))

        def stop(self, key: int) -> None:
            said.append(("stop", key))

        def add(self, key: int, start: int, ns: int) -> None:
            raise AssertionError

        def readings(self) -> list[Reading]:
            return []

    with compiled.probe(FORWARD).timing(Other(), 100):
        compiled.called(FORWARD)
    keys = [101 + step.index for step in compiled.probe(FORWARD).steps]
    steps = [(what, key) for key in keys for what in ("start", "stop")]
    assert said == [("start", 100), *steps, ("stop", 100)]
