"""CUDA graphs without a GPU: what is recorded, replayed, and refused.

`Machine` records a call as a CUDA graph does: what replays it works on the same memory, and holds
no tensor.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.fx.experimental.proxy_tensor import make_fx

from tcw.compiler.engine import cuda_graphs
from tcw.compiler.engine.backend import UnknownOption, backend
from tcw.compiler.engine.cuda_graphs import obstacle
from tcw.compiler.engine.targets import MODES
from tcw.compiler.gpu.retarget import retarget
from tcw.compiler.rewrites.subject import Subject
from tcw.compiler.runtime.artifact import Artifact, Binding
from tcw.compiler.runtime.compiled import Compiled
from tcw.compiler.runtime.gpu.graph_replay import (
    ALIVE,
    MOVED,
    RECORDINGS,
    SIZES,
    About,
    CudaGraphs,
    NewRecording,
    Streams,
)


def on_its_memory(tensor: torch.Tensor) -> torch.Tensor:
    """Another tensor on the same memory, which does not keep it alive."""
    storage = tensor.untyped_storage()
    memory = (ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr())
    whole = torch.frombuffer(memory, dtype=torch.uint8).view(tensor.dtype)
    return whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


class Machine:
    """A device on which a graph is replayed by calling the function again."""

    def __init__(self) -> None:
        self.replays = 0
        self.fails = ""

    def capturing(self) -> bool:
        return False

    def reserved(self) -> int:
        return 1000 * self.replays

    def capture(self, call: Any, arguments: list[Any]) -> tuple[Callable[[], object], list[Any]]:
        if self.fails:
            raise RuntimeError(self.fails)
        given = [argument for argument in arguments if isinstance(argument, torch.Tensor)]
        before = [(one.untyped_storage(), one.untyped_storage().clone()) for one in given]
        same = [
            on_its_memory(argument) if isinstance(argument, torch.Tensor) else argument
            for argument in arguments
        ]
        outputs = list(call(arguments))
        for storage, kept in before:
            storage.copy_(kept)  # a capture runs nothing: a backward overwrites what it is given
        places = [
            on_its_memory(output) if isinstance(output, torch.Tensor) else None
            for output in outputs
        ]

        def replay() -> None:
            self.replays += 1
            for place, made in zip(places, call(list(same)), strict=True):
                if place is not None and place.data_ptr() != made.data_ptr():
                    place.copy_(made)

        return replay, outputs


class Called:
    """A graph's callable under test, and how often its function ran outside a replay."""

    def __init__(self, function: Callable[..., list[Any]], **about: Any) -> None:
        self.machine = Machine()
        self.said: list[str] = []
        self.launched = 0

        def call(arguments: list[Any]) -> list[Any]:
            given = list(arguments)
            arguments.clear()
            self.launched += 1
            return function(*given)

        self.made: list[NewRecording] = []
        self.graphs = CudaGraphs(
            call, About(**about), self.said.append, self.machine, self.made.append
        )

    def __call__(self, *given: Any) -> Any:
        arguments = list(given)
        outputs = self.graphs(arguments)
        assert arguments == [], "a boxed call empties its list"
        return outputs

    @property
    def recorded(self) -> int:
        return sum(map(len, self.graphs.recordings.values()))


def test_the_second_call_records_and_later_ones_replay() -> None:
    called = Called(lambda x: [x * 2])
    for number in range(5):
        (y,) = called(torch.full((3,), float(number)))
        assert y.tolist() == [2.0 * number] * 3
        del y
    assert called.recorded == 1
    assert called.machine.replays == 4


def test_each_recording_is_told_with_its_reason() -> None:
    called = Called(lambda x, w: [x * w], in_place=frozenset({1}))
    weights = [torch.full((3,), 2.0), torch.full((3,), 3.0)]
    for number in (0, 0, 1):
        called(torch.ones(3), weights[number])
    kept = called(torch.ones(3), weights[1])
    called(torch.ones(3), weights[1])
    assert [(one.again, one.reason) for one in called.made] == [(0, ""), (1, MOVED), (2, ALIVE)]
    assert all(one.seconds > 0 and one.bytes == 1000 for one in called.made)
    assert kept[0].tolist() == [3.0] * 3


def test_recordings_for_sizes() -> None:
    called = Called(lambda size, x: [x * 2], symbolic=True)
    for size in (2, 2, 3, 3, 2):
        called(size, torch.ones(size))
    assert [(one.sizes, one.again) for one in called.made] == [((2,), 0), ((3,), 0)]


def test_a_living_output_is_never_overwritten() -> None:
    called = Called(lambda x: [x + 1, x.sum()])
    kept = [called(torch.full((2,), float(i))) for i in range(8)]
    for number, (y, total) in enumerate(kept):
        assert y.tolist() == [number + 1.0] * 2
        assert total.item() == 2 * number
    assert called.recorded == RECORDINGS
    assert called.said == [f"outputs of its last {RECORDINGS} calls are alive"]


@pytest.mark.parametrize("hold", [lambda y: y[1:], lambda y: y.view(-1), lambda y: y.numpy()])
def test_a_part_of_an_output_holds_it(hold: Callable[[Any], Any]) -> None:
    called = Called(lambda x: [x + 1])
    called(torch.zeros(3))
    part = hold(called(torch.zeros(3))[0])
    called(torch.ones(3))
    assert float(part[0]) == 1.0


def test_a_loop_that_keeps_its_last_output_has_two_recordings() -> None:
    called = Called(lambda x: [x * 3])
    for number in range(10):
        y = called(torch.full((2,), float(number)))
    assert y[0].tolist() == [27.0, 27.0]
    assert called.recorded == 2
    assert called.machine.replays == 9


def test_a_written_input_is_written() -> None:
    def add(x: torch.Tensor) -> list[Any]:
        x.add_(1)
        return [x * 2]

    called = Called(add, written=frozenset([0]))
    x = torch.zeros(2)
    for number in range(1, 5):
        (y,) = called(x)
        assert x.tolist() == [number] * 2
        assert y.tolist() == [2 * number] * 2


def test_parameters_are_read_where_they_are_also_after_a_move() -> None:
    called = Called(lambda w, x: [w * x], in_place=frozenset([0]))
    w = torch.ones(2)
    for number in range(4):
        w.fill_(number)
        assert called(w, torch.full((2,), 2.0))[0].tolist() == [2 * number] * 2
    assert called.recorded == 1
    for number in range(RECORDINGS + 1):
        moved = torch.full((2,), float(number))
        assert called(moved, torch.ones(2))[0].tolist() == [number] * 2
        w = torch.cat((w, moved))  # keeps the memory of each
    assert called.recorded <= RECORDINGS


def test_outputs_in_an_input_s_memory_are_the_input_s() -> None:
    called = Called(lambda x, w: [x, x[1:], w, 7, None, x + w], in_place=frozenset([1]))
    w = torch.ones(3)
    for number in range(4):
        x = torch.arange(3.0) + number
        same, part, weight, seven, nothing, total = called(x, w)
        assert same is x
        assert weight is w
        assert part.data_ptr() == x[1:].data_ptr()
        assert (seven, nothing) == (7, None)
        assert total.tolist() == (x + 1).tolist()


def test_a_backward_reads_what_its_forward_saved_in_place() -> None:
    forward = Called(lambda x: [x * 2, x.cos()])
    backward = Called(lambda saved, g: [saved * g], saved=frozenset([0]))
    for number in range(8):
        x = torch.full((1 << 19,), float(number))
        y, saved = forward(x)
        assert torch.equal(backward(saved, y)[0], x.cos() * x * 2)
    assert backward.recorded == forward.recorded == 2
    (recordings,) = backward.graphs.recordings.values()
    assert [len(recording.addresses) for recording in recordings] == [2, 2]
    assert backward.said == []


def test_a_loss_that_lives_holds_nothing_else() -> None:
    called = Called(lambda x: [x.sum(), x * 2], loose=1)
    losses = [called(torch.full((1 << 12,), float(number)))[0] for number in range(6)]
    assert [loss.item() for loss in losses] == [number * 4096.0 for number in range(6)]
    assert called.recorded == 1
    assert called.said == []


def test_an_output_that_is_returned_twice_is_one_tensor() -> None:
    """Autograd keeps a gradient that nobody else has, and adds to it."""

    def twice(x: torch.Tensor) -> list[Any]:
        y = x + 1
        return [y, 3, y, x * 2]

    called = Called(twice)
    for number in range(3):
        first, three, second, other = called(torch.full((2,), float(number)))
        assert first is second
        assert three == 3
        assert first.tolist() == [number + 1] * 2
        assert other.tolist() == [number * 2] * 2


def test_large_saved_tensors_are_not_copied() -> None:
    backward = Called(lambda saved, g: [saved * g], saved=frozenset([0]))
    for _ in range(3):
        backward(torch.ones(1 << 19), torch.ones(1))
    assert backward.recorded == 0
    assert "not replayed" in backward.said[0]


def test_sizes_are_recorded_when_they_come_again() -> None:
    called = Called(lambda x: [x + 1], symbolic=True)
    for size in range(1, SIZES + 3):
        assert called(torch.zeros(size))[0].tolist() == [1.0] * size
    assert called.recorded == 0
    for size in range(1, SIZES + 3):
        assert called(torch.zeros(size))[0].tolist() == [1.0] * size
    assert called.recorded == SIZES
    assert called.said == [f"its sizes changed more than {SIZES} times"]


def test_what_cannot_be_captured_is_launched() -> None:
    called = Called(lambda x: [x + 1])
    called.machine.fails = "operation not permitted when stream is capturing\nmore"
    for _ in range(3):
        assert called(torch.zeros(1))[0].item() == 1
    assert called.said == ["operation not permitted when stream is capturing"]


def test_expanded_inputs() -> None:
    called = Called(lambda x: [x + 1])
    for number in range(3):
        x = torch.full((1, 4), float(number)).expand(3, 4)
        assert torch.equal(called(x)[0], x + 1)


def graph_of(function: Callable[..., Any], x: torch.Tensor) -> fx.GraphModule:
    """The graph as it would be on a GPU."""
    module = make_fx(function, tracing_mode="symbolic")(x)
    return retarget(
        module, [node.meta["val"] for node in module.graph.find_nodes(op="placeholder")]
    )[0]


def test_what_prevents_a_graph() -> None:
    x = torch.randn(4)
    assert obstacle(graph_of(lambda x: x.sin() + 1, x)) is None
    found = obstacle(graph_of(lambda x: x.nonzero(), x))
    assert found is not None
    assert found[0] == "incompatible ops (aten.nonzero.default)"
    found = obstacle(make_fx(torch.sin)(x))
    assert found is not None
    assert found[0].startswith("cpu device (")


def test_modes_are_torch_s() -> None:
    from torch._inductor import list_mode_options

    for mode, options in list_mode_options().items():
        assert MODES[mode].cuda_graphs == bool(options.get("triton.cudagraphs")), mode
        assert MODES[mode].tuned == bool(options.get("max_autotune")), mode
    with pytest.raises(Exception, match="no mode 'fast'") as caught:
        torch.compile(lambda x: x + 1, backend=backend, mode="fast")(torch.ones(1))
    assert isinstance(caught.value.__cause__ or caught.value, (UnknownOption, Exception))


def test_a_graph_on_the_cpu_runs_and_its_skip_is_recorded(tmp_path: Path) -> None:
    from tcw.compiler.trace.records import CudagraphSkip
    from tests.cpu.worker.recorded import recorded

    text = (
        "import torch\ndef model(x):\n    return x.sin() + 1\nexample_inputs = (torch.ones(4),)\n"
    )
    found = recorded(tmp_path, text, engine="tcw", mode="reduce-overhead", until="run")
    (skip,) = found.all(CudagraphSkip)
    assert skip.reason.startswith("cpu device (")
    assert skip.location is not None
    assert skip.location.line == 3


@pytest.mark.parametrize("kind", ["inference", "forward", "backward"])
def test_graphs_of_several_launches_are_replayed(
    monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    said: list[str] = []
    monkeypatch.setattr(cuda_graphs, "skipped", lambda reason, *_, **__: said.append(reason))
    module = graph_of(lambda x: (x.sin(), x.cos()), torch.randn(4))
    wrapper = "def call(args):\n    a = aten_sin(args[0])\n    b = aten_cos(args[0])\n"
    bindings = tuple(Binding(f"aten_{n}", "operation", f"aten.{n}.default") for n in ("sin", "cos"))
    artifact = Artifact(name="0/0", wrapper=wrapper, bindings=bindings, device=0)
    compiled = Compiled(lambda arguments: arguments, artifact, hit=False)
    made = cuda_graphs.replayed(compiled, Subject(module, graph=f"0/0/{kind}", kind=kind))
    assert made.replayed is not None
    assert said == []


class Net(nn.Module):
    """Two graphs; two of the parameters have one gradient, and batch norm writes its buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 8)
        self.third, self.fourth = nn.Parameter(torch.zeros(8)), nn.Parameter(torch.zeros(8))
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = F.gelu(self.first(x))
        torch._dynamo.graph_break()
        y = self.norm(torch.tanh(self.second(h) + self.third + self.fourth) + x)
        return (y - x.roll(1, 0)).square().mean()


@pytest.mark.parametrize("to_none", [True, False])
def test_training(monkeypatch: pytest.MonkeyPatch, to_none: bool) -> None:
    """With gradients that are added up over two calls and scaled in place."""
    machine = Machine()
    monkeypatch.setattr(Streams, "of", lambda index: machine)
    monkeypatch.setattr(cuda_graphs, "obstacle", lambda module: None)
    monkeypatch.setattr(cuda_graphs, "_launches", lambda artifact: 2)
    monkeypatch.setenv("TCW_STRICT", "1")
    torch._dynamo.reset()
    torch.manual_seed(0)
    models = [Net() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9) for model in models]
    calls = [models[0], torch.compile(models[1], backend=backend, mode="reduce-overhead")]
    losses: list[list[torch.Tensor]] = [[], []]
    for _ in range(6):
        for x in torch.randn(2, 32, 8):
            for side in range(2):
                losses[side].append(calls[side](x))
                losses[side][-1].backward()
        for side in range(2):
            torch.nn.utils.clip_grad_norm_(models[side].parameters(), 0.5)
            optimizers[side].step()
            optimizers[side].zero_grad(set_to_none=to_none)
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-4, atol=1e-5)
    for name, value in models[0].state_dict().items():
        found = models[1].state_dict()[name]
        torch.testing.assert_close(found, value, rtol=1e-3, atol=1e-5, msg=name)
    assert machine.replays >= 40
