"""The eager call under a probe: the same results, each operation with its line, module and part."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from tcw.compiler.measure.probes.clock import HostClock
from tcw.compiler.measure.probes.eager_probe import EagerProbe, call_cost, made_by
from tcw.compiler.trace.records.profile import EagerOperation
from tests.cpu.models import Mlp, line

HERE = __file__


def place(name: str) -> int:
    """Number of the line marked `# @name` in this file."""
    with open(HERE) as stream:
        return next(
            number for number, text in enumerate(stream, 1) if text.endswith(f"# @{name}\n")
        )


def step(model: Callable[..., Any], *inputs: Any, probe: EagerProbe | None = None) -> list[Any]:
    """Forward, a loss and a backward, from cleared gradients and one random state."""
    torch.manual_seed(7)
    parameters = [*model.parameters()] if isinstance(model, nn.Module) else []
    for parameter in parameters:
        parameter.grad = None
    if probe is None:
        probe = EagerProbe(model, 1)
    with probe.during("forward"):
        outputs = model(*inputs)
    with probe.during("forward", "loss"):
        loss = outputs.float().mean()
    with probe.during("backward"):
        loss.backward()
    return [outputs, *[parameter.grad for parameter in parameters]]


def described(model: Callable[..., Any], *inputs: Any) -> list[EagerOperation]:
    probe = EagerProbe(model, 1)
    with probe.describing():
        step(model, *inputs, probe=probe)
    return probe.operations


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x  # @square

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * gradient  # @square_backward


class Region(nn.Module):
    def __init__(self, again: bool) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)
        self.again = again

    def region(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(self.inner(x)).exp()  # @region

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.region, x, use_reentrant=self.again)


class Regions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Region(False), Region(True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


class Odd(nn.Module):
    """In place, views, out=, random numbers, indices, a custom function."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.table = nn.Embedding(10, 8)
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        h = self.linear(x).mul_(2)
        h = F.dropout(h + self.table(places), 0.5, training=True)
        h[:, 0] = 1.0
        h = self.norm(h)
        total = torch.zeros(4, dtype=h.dtype)
        with torch.no_grad():
            torch.sum(h, dim=1, out=total)
        return Square.apply(h) + torch.rand_like(h) + total[:, None]


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Any, ...]]]] = {
    "mlp": (Mlp, lambda: (torch.randn(4, 32),)),
    "regions": (Regions, lambda: (torch.randn(4, 8, requires_grad=True),)),
    "odd": (Odd, lambda: (torch.randn(4, 8), torch.tensor([1, 2, 2, 9]))),
    "transformer": (
        lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True),
        lambda: (torch.randn(2, 5, 16),),
    ),
    "lstm": (lambda: _First(nn.LSTM(8, 8, batch_first=True)), lambda: (torch.randn(2, 3, 8),)),
}


class _First(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)[0]


@pytest.mark.parametrize("name", MODELS)
def test_a_probed_call_gives_the_plain_call_s_results(name: str) -> None:
    make, inputs_of = MODELS[name]
    torch.manual_seed(0)
    original, inputs = make(), inputs_of()
    plain, probed = copy.deepcopy(original), copy.deepcopy(original)
    probe = EagerProbe(probed, 1)
    expected = step(plain, *inputs)
    with probe.describing():
        found = [step(probed, *inputs, probe=probe)]
    clock = HostClock()
    expected_again = step(plain, *inputs)
    with probe.timing(clock):
        found.append(step(probed, *inputs, probe=probe))
    assert probe.differs == ""
    assert [reading.key for reading in clock.readings()] == list(range(len(probe.operations)))
    for ours, theirs in zip(found, (expected, expected_again), strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert torch.equal(a, b)
    for (name, a), b in zip(probed.state_dict().items(), plain.state_dict().values(), strict=True):
        assert torch.equal(a, b), name


def test_lines_modules_and_phases() -> None:
    operations = described(Mlp(), torch.randn(4, 32))
    where = {
        (operation.phase, operation.operation): (operation.module, operation.location.line)
        for operation in operations
        if operation.location is not None
    }
    assert where["forward", "aten.gelu.default"] == ("", line("gelu"))
    assert where["backward", "aten.gelu_backward.default"] == ("", line("gelu"))
    assert where["forward", "aten.native_layer_norm.default"] == ("norm", line("norm"))
    assert where["backward", "aten.native_layer_norm_backward.default"] == ("norm", line("norm"))
    assert where["backward", "aten._softmax_backward_data.default"] == ("", line("softmax"))
    named = {operation.id: operation.operation for operation in operations}
    assert {
        (named[operation.of], operation.operation)
        for operation in operations
        if "backward" in operation.operation
    } == {
        ("aten._softmax.default", "aten._softmax_backward_data.default"),
        ("aten.gelu.default", "aten.gelu_backward.default"),
        ("aten.native_layer_norm.default", "aten.native_layer_norm_backward.default"),
    }
    parts = Counter((operation.phase, operation.part) for operation in operations)
    assert set(parts) == {
        ("forward", "model"),
        ("forward", "loss"),
        ("backward", "loss"),
        ("backward", "model"),
        ("backward", "gradients"),
    }
    assert parts["backward", "gradients"] == 6  # one per parameter
    assert [operation.id for operation in operations[:2]] == ["e0", "e1"]


def test_arguments_read_as_in_a_call() -> None:
    model = Mlp()
    probe = EagerProbe(model, 1)
    with probe.describing(), torch.no_grad():
        model(torch.randn(4, 32))
    texts = {operation.operation: operation.arguments for operation in probe.operations}
    assert texts["aten.addmm.default"] == "f32[32], f32[4, 64], f32[64, 32]"
    assert texts["aten._softmax.default"] == "f32[4, 32], -1, False"
    assert texts["aten.native_layer_norm.default"] == "f32[4, 32], [32], f32[32], f32[32], 1e-05"
    views = {operation.operation for operation in probe.operations if not operation.launches}
    assert views == {"aten.t.default"}


def test_inference_mode_shows_the_operations_of_composite_ones() -> None:
    model = Mlp()
    x = torch.randn(4, 32)

    def operations(context: Callable[[], Any]) -> list[str]:
        probe = EagerProbe(model, 1)
        with probe.describing(), context():
            model(x)
        return [operation.operation for operation in probe.operations]

    assert operations(torch.inference_mode) == operations(torch.no_grad)
    assert "aten.addmm.default" in operations(torch.inference_mode)


def test_what_a_checkpoint_computes_again_is_where_it_was() -> None:
    operations = described(Regions(), torch.randn(4, 8, requires_grad=True))
    for phase in ("forward", "backward"):
        found = {
            (operation.module, operation.operation)
            for operation in operations
            if operation.phase == phase
            and operation.location
            and operation.location.line == place("region")
        }
        assert found >= {
            (module, operation)
            for module in ("first", "second")
            for operation in ("aten.sin.default", "aten.exp.default")
        }
        assert found >= {
            ("first.inner", "aten.addmm.default"),
            ("second.inner", "aten.addmm.default"),
        }
    assert all(
        operation.module
        for operation in operations
        if operation.part == "model" and operation.location
    )


def test_the_backward_of_a_custom_function_has_its_own_lines() -> None:
    operations = described(Odd(), torch.randn(4, 8), torch.tensor([1, 2, 2, 9]))
    lines = {
        (operation.phase, operation.operation)
        for operation in operations
        if operation.location and operation.location.line == place("square_backward")
    }
    assert lines == {("backward", "aten.mul.Tensor")}


def test_another_way_through_the_model_is_told() -> None:
    class Changing(nn.Module):
        more = False

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.sin().cos() if self.more else x.sin()

    model = Changing()
    probe = EagerProbe(model, 1)
    x = torch.randn(3)
    with probe.describing():
        model(x)
    model.more = True
    with probe.timing(HostClock()):
        model(x)
    assert probe.differs == "operation 1 was nothing when described, and is aten.cos.default"
    model.more = False
    with probe.timing(HostClock()):
        model(x)
    assert probe.differs  # one of the calls did
    with probe.describing():
        model(x)
    assert probe.differs == ""


def test_a_call_that_raises_leaves_no_mode_and_no_hooks() -> None:
    class Failing(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.mm(x, x)

    hooks = torch.nn.modules.module._global_forward_hooks
    model, x = Failing(), torch.randn(2, 3)
    probe = EagerProbe(model, 1)
    with pytest.raises(RuntimeError), probe.describing():
        model(x)
    assert not hooks
    with pytest.raises(RuntimeError), probe.timing(HostClock()):
        model(x)
    assert torch._C._len_torch_dispatch_stack() == 0


def test_higher_order_operators_are_operations() -> None:
    class Chooses(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))

    model, x = Chooses(), torch.ones(3)
    probe = EagerProbe(model, 1)
    with probe.describing(), torch.no_grad():
        found = model(x)
    assert torch.equal(found, x.sin())
    assert probe.operations[-1].operation == "cond"
    assert probe.operations[-1].flops is None


def test_tensors_live_no_longer_than_without_a_probe() -> None:
    import weakref

    class Drops(nn.Module):
        alive: Callable[[], object] = staticmethod(lambda: None)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            big = x * 2
            Drops.alive = weakref.ref(big)
            y = big + 1
            del big
            assert Drops.alive() is None
            return y

    model = Drops()
    probe = EagerProbe(model, 1)
    with probe.describing(), torch.no_grad():
        model(torch.randn(3))
    with probe.timing(HostClock()), torch.no_grad():
        model(torch.randn(3))


def test_what_the_call_itself_costs_is_known() -> None:
    assert 0 < call_cost(200) < 1_000_000


def test_flops_are_torch_s() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(36, 8, bias=False)
    )
    x = torch.randn(2, 3, 7, 7)
    counter = FlopCounterMode(display=False)
    with counter:
        step(model, x)
    expected = {str(one): count for one, count in counter.get_flop_counts()["Global"].items()}
    found: Counter[str] = Counter()
    for one in described(model, x):
        name = one.operation.rpartition(".")[0]
        if name in expected:
            found[name] += one.flops or 0
    assert found == expected


def test_nodes_are_named_after_operations() -> None:
    assert made_by("AddmmBackward0", "aten.addmm.default")
    assert made_by("NativeLayerNormBackward0", "aten.native_layer_norm.default")
    assert not made_by("MulBackward0", "aten.addmm.default")
    assert not made_by("torch::autograd::CopyBackwards", "aten._to_copy.default")


def test_a_backward_in_another_thread_finds_the_forward() -> None:
    """As on a GPU, whose thread numbers its nodes separately."""
    import threading

    from torch.utils._python_dispatch import _get_current_dispatch_mode

    model = Regions()
    probe = EagerProbe(model, 1)
    x = torch.randn(4, 8, requires_grad=True)
    with probe.describing():
        with probe.during("forward"):
            loss = model(x).sum()
        with probe.during("backward"):
            mode = _get_current_dispatch_mode()

            def run() -> None:
                with mode:
                    loss.backward()

            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
        with probe.during("forward"):
            model(x)
    named = {operation.id: operation for operation in probe.operations}
    found = {
        (operation.module, operation.operation, named[operation.of].operation)
        for operation in probe.operations
        if operation.of
        and operation.operation in ("aten.cos.default", "aten.threshold_backward.default")
    }
    assert found == {
        (module, "aten.cos.default", "aten.sin.default") for module in ("first", "second")
    }


def test_names_of_spans_are_no_operations() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        with torch.profiler.record_function("doubled"):
            return x * 2

    x = torch.ones(3)
    probe = EagerProbe(model, 1)
    with probe.describing():
        model(x)
    assert [operation.operation for operation in probe.operations] == ["aten.mul.Tensor"]
    with probe.timing(HostClock()):
        model(x)
    assert probe.differs == ""
