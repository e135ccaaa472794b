"""What a forward keeps for its backward, compared with torch's own hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from tcw.compiler.measure.memory.saved import saved_bytes
from tcw.sample_models.gpt import GPT
from tests.long import mostly_long


def told_by_hooks(model: nn.Module, *inputs: Any) -> int:
    """Bytes of the storages that torch packs, except parameters and inputs."""
    known = {parameter.untyped_storage().data_ptr() for parameter in (*model.parameters(), *inputs)}
    found: dict[int, int] = {}
    kept = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept.append(tensor.detach())  # an address identifies a storage while it lives
        if storage.data_ptr() not in known:
            found[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        outputs = model(*inputs)
    del outputs
    return sum(found.values())


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def small_gpt() -> tuple[GPT, torch.Tensor]:
    torch.manual_seed(0)
    return GPT(layers=2, width=64, heads=2, vocabulary=50, context=32), torch.arange(64).reshape(
        2, 32
    ) % 50


def test_a_call_by_hand() -> None:
    x = torch.randn(8, 4, requires_grad=True)
    y = x.sin().exp()  # sin keeps x, exp its result
    assert saved_bytes(y, [x]) == 4 * 32
    assert saved_bytes(y) == 2 * 4 * 32


def small_mlp() -> tuple[nn.Module, torch.Tensor]:
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Softmax(-1))
    return model, torch.randn(4, 32)


@pytest.mark.parametrize("make", [small_mlp, small_gpt])
def test_eager_is_what_torch_s_hooks_see(make: Callable[[], tuple[nn.Module, Any]]) -> None:
    model, x = make()
    outputs = model(x)
    assert saved_bytes(outputs, [x, *model.parameters()]) == told_by_hooks(model, x) > 0


def test_what_a_checkpoint_leaves_out_is_not_computed_to_be_counted() -> None:
    runs = []

    def region(x: torch.Tensor) -> torch.Tensor:
        runs.append(1)
        return x.sin().exp().cos()

    x = torch.randn(8, 4, requires_grad=True)
    y = checkpoint(region, x, use_reentrant=False)
    assert saved_bytes(y, [x]) == 0
    assert len(runs) == 1
    y.sum().backward()
    assert len(runs) == 2


@pytest.mark.parametrize("by_name", [False, True])
def test_what_a_checkpoint_keeps_instead_is_counted_once(by_name: bool) -> None:
    def region(x: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
        return (x * x).exp() if scale is None else (x * scale).exp()

    x = torch.randn(8, 4, requires_grad=True)
    weights = torch.ones(16)
    first = x.exp()  # exp keeps its result, which the checkpoint keeps as well
    scale = torch.ones(8, 4).mul_(2) if by_name else None
    more = {"scale": scale} if by_name else {}
    y = checkpoint(region, first, use_reentrant=False, **more)
    y = checkpoint(lambda x: x.sin().cos(), y, use_reentrant=False)
    assert saved_bytes(y, [x, weights]) == (2 + by_name) * 4 * 32
    y.sum().backward()


def test_what_hooks_put_elsewhere_is_counted() -> None:
    x = torch.randn(8, 4, requires_grad=True)
    with save_on_cpu():
        y = x.sin().exp()
    assert saved_bytes(y) == 2 * 4 * 32


@pytest.mark.parametrize("backend", mostly_long(("aot_eager", "inductor"), ("aot_eager",)))
def test_compiled_graphs_keep_what_their_partition_says(backend: str) -> None:
    from tcw.compiler.autograd import HOOKS
    from tcw.compiler.trace.records import Partition
    from tests.cpu.recorded import record

    model, ids = small_gpt()
    known = [ids, *model.parameters()]
    with record(HOOKS) as recording:
        outputs = torch.compile(model, backend=backend)(ids)
    (partition,) = recording.all(Partition)
    found = saved_bytes(outputs, known)
    assert 0 < found <= partition.saved_bytes
    assert found <= saved_bytes(model(ids), known)
