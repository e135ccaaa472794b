"""How DDP's optimizer cuts a graph: its own buckets, and the graphs of each."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._dynamo.backends.distributed import DDPOptimizer

from tcw.compiler import pipeline
from tcw.compiler.trace.records import DdpBuckets, Graph, Kernel
from tcw.viewers.summary.ranks.collectives import started
from tests.cpu.one_rank import one_rank
from tests.cpu.recorded import Recorded, record


class Net(torch.nn.Module):
    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x.sum()


def trained(backend: str, megabytes: float) -> tuple[Recorded, list[Any]]:
    """A forward and a backward of six layers of 64 KB; torch's own buckets."""
    buckets: list[Any] = []
    original = DDPOptimizer.compile_fn

    def spy(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        buckets[:] = self.buckets
        return result

    hooks = tuple(one for one in pipeline.HOOKS if one.stage in ("capture", "autograd"))
    with pytest.MonkeyPatch.context() as patch, one_rank():
        patch.setattr(DDPOptimizer, "compile_fn", spy)
        patch.setattr(torch.distributed, "_DEFAULT_FIRST_BUCKET_BYTES", 64 << 10)
        with record(hooks) as recorded:
            compiled = torch.compile(Net(6, 128), backend=backend)
            model = torch.nn.parallel.DistributedDataParallel(compiled, bucket_cap_mb=megabytes)
            model(torch.ones(2, 128)).backward()
    return recorded, buckets


def test_the_buckets_are_torch_s_own() -> None:
    recorded, theirs = trained("aot_eager", 0.125)
    (buckets,) = recorded.all(DdpBuckets)
    assert len(buckets.buckets) == len(theirs) > 2
    for bucket, own in zip(buckets.buckets, reversed(theirs), strict=True):
        assert (bucket.bytes, bucket.nodes) == (own.size, len(own.nodes))
        assert len(bucket.parameters) == len(own.params)
    assert buckets.bucket_bytes == 128 << 10
    assert buckets.first_bucket_bytes == 64 << 10
    first = buckets.buckets[0]
    assert first.limit == 64 << 10
    assert set(first.parameters) == {"self.layers[5].weight", "self.layers[5].bias"}
    assert first.first is not None
    assert first.first.line == Net.forward.__code__.co_firstlineno + 2


def test_each_bucket_has_graphs_of_its_own() -> None:
    recorded, theirs = trained("aot_eager", 0.125)
    numbers = range(1, len(theirs) + 1)
    kinds = ("joint", "forward", "backward")
    expected = {f"0/0/bucket{number}/{kind}" for number in numbers for kind in kinds}
    made = [graph.id for graph in recorded.all(Graph) if graph.kind != "captured"]
    assert sorted(made) == sorted(expected), "each once"
    reduced = started(recorded)
    assert [one.bucket for one in reduced] == list(numbers)
    assert reduced[0].words.startswith("all_reduce of DDP's bucket 1 (64")


def test_one_bucket_is_not_cut() -> None:
    recorded, theirs = trained("eager", 25)
    (buckets,) = recorded.all(DdpBuckets)
    assert len(buckets.buckets) == 1 or len(theirs) == len(buckets.buckets)
    assert sum(bucket.bytes for bucket in buckets.buckets) == 6 * (128 * 128 + 128) * 4


@pytest.mark.long
def test_kernels_of_a_backward_are_in_its_bucket() -> None:
    """Its backward is compiled in the first backward, in another thread."""
    with pytest.MonkeyPatch.context() as patch, one_rank():
        patch.setattr(torch.distributed, "_DEFAULT_FIRST_BUCKET_BYTES", 64 << 10)
        with record(pipeline.HOOKS[:-2]) as recorded:
            compiled = torch.compile(Net(2, 128))
            model = torch.nn.parallel.DistributedDataParallel(compiled, bucket_cap_mb=0.0625)
            model(torch.ones(2, 128)).backward()
    graphs = {kernel.graph for kernel in recorded.all(Kernel)}
    kinds = ("forward", "backward")
    assert graphs == {f"0/0/bucket{n}/{kind}/lowered" for n in (1, 2) for kind in kinds}
