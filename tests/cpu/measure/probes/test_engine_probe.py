"""Graphs of our own engine, observed step by step in the user's call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from torch import fx, nn

import tcw.compiler.engine.compile as stages
import tcw.compiler.runtime.compiled as compiled_module
from tcw.compiler.control.gate import Gate
from tcw.compiler.control.hooks import Missing
from tcw.compiler.engine.backend import backend
from tcw.compiler.engine.recording import listening
from tcw.compiler.measure.compiled.engine_graphs import AtenGraph, EngineGraph, engine_graphs
from tcw.compiler.measure.probes.aten_probe import AtenProbe
from tcw.compiler.measure.probes.clock import HostClock, Reading
from tcw.compiler.measure.probes.device_clock import device_clock
from tcw.compiler.measure.probes.engine_probe import EngineProbe, engine_probe
from tcw.compiler.runtime.launcher import launcher
from tcw.compiler.runtime.store import usable_store
from tcw.compiler.runtime.toolchain import NoCompiler, find_compiler
from tcw.compiler.trace.records import Kernel
from tests.cpu.engine.random_programs import PROGRAMS, SHAPES, Step, run
from tests.cpu.recorded import record

pytestmark = pytest.mark.skipif(
    isinstance(find_compiler(), NoCompiler), reason="there is no C++ compiler"
)
Call = Callable[[Callable[..., Any]], Any]
"""Calls a model; returns tensors."""


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """Our errors are raised; one cache for all tests of this file."""
    folder: Path = tmp_path_factory.getbasetemp() / "engine-cache"
    folder.mkdir(mode=0o700, exist_ok=True)
    monkeypatch.setenv("TCW_STRICT", "1")
    monkeypatch.setenv("TCW_CACHE_DIR", str(folder))
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


class Probed:
    """A model compiled by our engine, called once, with the probes of its graphs."""

    def __init__(self, model: Callable[..., Any], call: Call, **options: Any) -> None:
        left: list[AtenGraph] = []
        self.call = call
        with engine_graphs(left_to_aten=left) as graphs:
            self.model = torch.compile(model, backend=backend, **options)
            call(self.model)
        self.graphs: list[EngineGraph] = graphs
        self.probes = [engine_probe(graph) for graph in (*graphs, *left)]

    def run(self) -> Any:
        return self.call(self.model)

    def timed(self) -> tuple[Any, dict[str, dict[int, Reading]]]:
        """The results of a call under probes; each graph's readings by step, with -1 for the whole
        graph."""
        clocks = [HostClock() for _ in self.probes]
        with ExitStack() as entered:
            for probe, clock in zip(self.probes, clocks, strict=True):
                entered.enter_context(probe.timing(clock, 100))
            answer = self.run()
        return answer, {
            probe.graph: {reading.key - 101: reading for reading in clock.readings()}
            for probe, clock in zip(self.probes, clocks, strict=True)
        }

    def check(self) -> None:
        """Every step has one reading, inside its graph, in order. The results are those of the
        calls before and after, bit for bit, and each node that lies in a buffer has ATen's
        value."""
        plain = self.run()
        timed, readings = self.timed()
        observed = self.compared()
        for other in (timed, observed, self.run()):
            for one, same in zip(plain, other, strict=True):
                assert torch.equal(one, same)
        for probe in self.probes:
            own = readings[probe.graph]
            assert sorted(own) == list(range(-1, len(probe.steps)))
            starts = [own[step.index].start for step in probe.steps]
            assert starts == sorted(starts)
            assert all(start >= own[-1].start for start in starts)
            assert all(one.ns >= 0 for one in own.values())
        for graph in self.graphs:
            assert graph.call == graph.compiled.call

    def compared(self) -> Any:
        """An observed call, with the observations of each graph: see `check`."""
        self.seen: dict[str, set[str]] = {}
        with ExitStack() as entered:
            for probe in self.probes:
                if isinstance(probe, EngineProbe):
                    entered.enter_context(self._observing(probe))
            return self.run()

    def _observing(self, probe: EngineProbe) -> Any:
        graph = next(one for one in self.graphs if one.graph == probe.graph)
        expected: dict[str, torch.Tensor] = {}
        seen = self.seen.setdefault(probe.graph, set())
        order: list[tuple[str, int]] = []

        def compare(tensors: dict[str, torch.Tensor]) -> None:
            given = {n: one for n, one in tensors.items() if isinstance(one, torch.Tensor)}
            for name, tensor in probe.memory.nodes(given).items():
                torch.testing.assert_close(tensor, expected[name], rtol=1e-4, atol=1e-4)
                seen.add(name)

        def before(step: Any, tensors: Any) -> None:
            if not order:
                arguments = list(graph.arguments or [])
                expected.update(values_of(graph.module, arguments))
            order.append(("before", step.index))
            compare(tensors)

        def see(step: Any, tensors: Any) -> None:
            order.append(("after", step.index))
            done = probe.memory.complete(step.index)
            compare({name: tensor for name, tensor in tensors.items() if name in done})
            if step.index == probe.steps[-1].index:
                assert order == [(when, s.index) for s in probe.steps for when in BOTH]

        return probe.observing(see, before)


BOTH = ("before", "after")


def values_of(module: fx.GraphModule, arguments: list[Any]) -> dict[str, torch.Tensor]:
    """ATen's value of each node that is a tensor."""
    found: dict[str, torch.Tensor] = {}

    class Kept(fx.Interpreter):
        def run_node(self, n: fx.Node) -> Any:
            value = super().run_node(n)
            if isinstance(value, torch.Tensor):
                found[n.name] = value.clone()
            return value

    with torch.no_grad():
        Kept(module).run(*[a.clone() if isinstance(a, torch.Tensor) else a for a in arguments])
    return found


class Mixed(nn.Module):
    """Loops, products, and loops that overwrite what they read."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.second(torch.relu(self.first(x * 2))), -1) + 1


def inference(*inputs: Any) -> Call:
    def call(model: Callable[..., Any]) -> Any:
        with torch.no_grad():
            answer = model(*inputs)
        return answer if isinstance(answer, tuple) else (answer,)

    return call


def test_loops_between_products() -> None:
    probed = Probed(Mixed(), inference(torch.randn(4, 16)))
    (probe,) = probed.probes
    kinds = [step.kind for step in probe.steps]
    assert (kinds.count("aten"), kinds.count("kernel")) == (2, 3)
    assert [step.index for step in probe.steps] == [0, 1, 2, 3, 4]
    probed.check()
    assert {"mul", "addmm", "relu", "addmm_1", "add"} <= probed.seen[probe.graph]


def test_a_graph_of_loops_alone_is_one_function() -> None:
    probed = Probed(lambda x: torch.softmax(x, -1).sum(), inference(torch.randn(8, 8)))
    assert {step.kind for step in probed.probes[0].steps} == {"kernel"}
    assert probed.graphs[0].compiled.artifact.entry
    probed.check()


def test_a_graph_of_products_alone_has_no_unit() -> None:
    probed = Probed(lambda x: x @ x, inference(torch.randn(8, 8)))
    assert [(step.kind, step.name) for step in probed.probes[0].steps] == [
        ("aten", "aten.mm.default")
    ]
    assert not probed.graphs[0].compiled.artifact.unit
    probed.check()


def test_forward_and_backward() -> None:
    model, x = Mixed(), torch.randn(4, 16)

    def call(compiled: Callable[..., Any]) -> Any:
        model.zero_grad()
        answer = compiled(x)
        answer.square().sum().backward()
        return (answer.detach(), *(parameter.grad.clone() for parameter in model.parameters()))

    probed = Probed(model, call)
    assert [probe.graph for probe in probed.probes] == ["0/0/forward", "0/0/backward"]
    probed.check()


def test_sizes_that_are_not_known() -> None:
    inputs = [torch.randn(6, 16)]
    probed = Probed(Mixed(), lambda model: inference(*inputs)(model), dynamic=True)
    probed.check()
    named = set(probed.seen[probed.probes[0].graph])
    assert {"mul", "relu", "addmm_1"} <= named
    inputs[0] = torch.randn(11, 16)
    probed.graphs[0].arguments = None
    assert torch.equal(probed.run()[0], probed.timed()[0][0])
    shapes: dict[str, tuple[int, ...]] = {}
    (probe,) = probed.probes
    assert isinstance(probe, EngineProbe)

    def see(step: Any, tensors: Any) -> None:
        shapes.update((n, tuple(node.shape)) for n, node in probe.memory.nodes(tensors).items())

    passed: dict[str, int] = {}

    def before(step: Any, tensors: Any) -> None:
        passed.update((name, tensor) for name, tensor in tensors.items() if isinstance(tensor, int))

    with probe.observing(see, before):
        probed.run()
    assert list(passed.values()) == [11]
    assert [shapes[name] for name in ("mul", "relu", "addmm_1")] == [(11, 16), (11, 32), (11, 16)]


def test_an_argument_that_is_written_in_place_is_written_once() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count.add_(1)
            return x * self.count

    model = Counting()
    probed = Probed(model, inference(torch.ones(8)))
    with probed.probes[0].observing(lambda step, tensors: None):
        observed = probed.run()[0]
    assert observed.tolist() == [2.0] * 8
    assert probed.timed()[0][0].tolist() == [3.0] * 8
    assert probed.run()[0].tolist() == [4.0] * 8


def test_what_a_step_overwrites_is_seen_before_it() -> None:
    probed = Probed(Mixed(), inference(torch.randn(4, 16)))
    (probe,) = probed.probes
    assert isinstance(probe, EngineProbe)
    lost: dict[str, tuple[str, ...]] = {}

    def see(step: Any, tensors: Any) -> None:
        about = probe.memory.steps[step.index]
        lost[step.name] = about.ends
        assert set(tensors) == {*about.reads, *about.writes} - {*about.ends} | {*about.writes}

    with probe.observing(see):
        probed.run()
    assert "addmm" in lost["nest_relu"]


def test_a_warm_start_is_looked_into_like_a_cold_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model, call = Mixed(), inference(torch.randn(4, 16))
    cold = Probed(model, call)
    torch._dynamo.reset()

    def never(*_: Any) -> Any:
        raise AssertionError("it was lowered again")

    monkeypatch.setattr(stages, "lower", never)
    warm = Probed(model, call)
    assert warm.graphs[0].compiled.hit
    assert warm.probes[0].steps == cold.probes[0].steps
    warm.check()


def test_steps_are_those_of_the_records(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TCW_CACHE_DIR", str(tmp_path))
    with record([]) as recorded, listening(recorded.recorder, Gate()):
        probed = Probed(Mixed(), inference(torch.randn(4, 16)))
    kernels = [kernel for kernel in recorded.all(Kernel) if kernel.graph == "0/0/inference/lowered"]
    (probe,) = probed.probes
    assert [step.name for step in probe.steps] == [kernel.name for kernel in kernels]
    assert [step.index for step in probe.steps] == [kernel.step for kernel in kernels]


def test_a_graph_that_was_left_to_aten() -> None:
    def positive(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        return y[y > 0].relu()  # as many as there are

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        probed = Probed(positive, inference(torch.randn(4, 16)))
    (probe,) = probed.probes
    assert isinstance(probe, AtenProbe)
    assert not probed.graphs
    names = [step.name for step in probe.steps]
    assert names[:3] == ["aten.mul.Tensor", "aten.gt.Scalar", "aten.index.Tensor"]
    assert "aten.sym_size.int" in names
    assert names[-1] == "aten.relu.default"
    probed.check()
    seen: list[tuple[str, list[str]]] = []
    with probe.observing(lambda step, tensors: seen.append((step.name, list(tensors)))):
        probed.run()
    assert seen[0] == ("aten.mul.Tensor", ["arg0_1", "mul"])
    assert [name for name, _ in seen] == [step.name for step in probe.steps]
    # a clock that reads ranges, as a device's does, has one for the graph and one per step
    with device_clock(device=False) as clock, probe.timing(clock, 100):
        probed.run()
    assert [reading.key for reading in clock.readings()] == [
        100,
        *(101 + step.index for step in probe.steps),
    ]


@pytest.mark.parametrize("make", [Mixed, lambda: lambda x: x * 3], ids=["mixed", "one segment"])
def test_a_clock_of_ranges_has_one_for_each_kernel_and_call(make: Callable[[], Any]) -> None:
    probed = Probed(make(), inference(torch.randn(4, 16)))
    (probe,) = probed.probes
    plain = probed.run()
    for _ in range(2):
        with device_clock(device=False) as clock, probe.timing(clock, 100):
            answer = probed.run()
        assert all(torch.equal(a, b) for a, b in zip(answer, plain, strict=True))
        keys = [reading.key for reading in clock.readings()]
        assert keys == [100, *(101 + step.index for step in probe.steps)]


def test_without_a_compiler_only_calls_into_aten_are_timed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    x = torch.randn(4, 16)
    found, loops = Probed(Mixed(), inference(x)), Probed(lambda x: x * 3, inference(x))
    monkeypatch.setenv("CXX", str(tmp_path / "none"))
    answer, readings = found.timed()
    assert torch.equal(answer[0], found.run()[0])
    (probe,) = found.probes
    aten = [step.index for step in probe.steps if step.kind == "aten"]
    assert sorted(readings[probe.graph]) == [-1, *aten]
    assert "CXX names" in probe.unmeasured
    (only,) = loops.timed()[1].values()
    assert sorted(only) == [-1]
    seen: list[int] = []
    with probe.observing(lambda step, tensors: seen.append(step.index)):
        found.run()
    assert seen == aten


def test_where_torch_lacks_what_the_launcher_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    probed = Probed(Mixed(), inference(torch.randn(4, 16)))
    monkeypatch.setattr(compiled_module, "launcher", lambda *_: Missing("for a test"))
    probed.check()


def test_what_an_observer_raises_is_raised_when_the_graph_has_run() -> None:
    probed = Probed(Mixed(), inference(torch.randn(4, 16)))
    plain = probed.run()[0]
    seen: list[int] = []

    def see(step: Any, tensors: Any) -> None:
        seen.append(step.index)
        if step.index == 2:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"), probed.probes[0].observing(see):
        probed.run()
    assert seen == [0, 1, 2]
    assert torch.equal(probed.run()[0], plain)


def test_memory_is_taken_and_given_back_as_always() -> None:
    """The launcher's pool gets as many requests, and has the same memory free."""

    def large(x: torch.Tensor) -> torch.Tensor:
        return torch.relu((x * 2) @ x) + 1

    probed = Probed(large, inference(torch.randn(600, 600)))
    made = launcher(find_compiler(), usable_store()[0])
    made.release_pool()  # what other tests left would be freed at some time
    probed.run()

    def asked(call: Callable[[], Any]) -> tuple[int, int, int]:
        before = made.pool()
        call()
        after = made.pool()
        return after.hits - before.hits, after.misses - before.misses, after.kept_bytes

    plain = asked(probed.run)
    probed.timed()
    assert asked(probed.timed) == plain
    assert asked(probed.compared) == plain
    assert asked(probed.run) == plain
    assert plain[0] + plain[1] > 0


@settings(
    max_examples=int(os.environ.get("TCW_RANDOM_GRAPHS", "5")),
    derandomize="TCW_RANDOM_GRAPHS" not in os.environ,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
@given(program=PROGRAMS, shape=SHAPES, seed=st.integers(0, 9))
def test_any_graph(program: list[Step], shape: list[int], seed: int) -> None:
    torch._dynamo.reset()
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    inputs = (
        x,
        x.sum(-1, keepdim=True),
        x.flip(0).mT if x.dim() > 1 and shape[-1] == shape[-2] else x,
    )

    def call(model: Callable[..., Any]) -> Any:
        with torch.no_grad():
            return model(program, *inputs)

    Probed(run, call, fullgraph=True, dynamic=False).check()
