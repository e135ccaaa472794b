"""Collectives that a program starts outside graphs."""

from __future__ import annotations

import torch
import torch.distributed as dist

from tcw.compiler.capture import eager_collectives, frames
from tcw.compiler.capture.eager_collectives import EACH
from tcw.compiler.trace.records import EagerCollective, FrameEnd, FrameSkipped
from tests.cpu.one_rank import one_rank
from tests.cpu.recorded import record


def test_operation_sizes_and_line() -> None:
    with one_rank(), record((eager_collectives.HOOK,)) as recorded:
        dist.all_reduce(torch.ones(3, 4))
        outputs = torch.empty(8)
        dist.all_gather_into_tensor(outputs, torch.ones(8, dtype=torch.float32))
        dist.barrier()
        dist.reduce_scatter_tensor(torch.empty(4), torch.ones(4))
        dist.broadcast(torch.ones(2, dtype=torch.int64), 0)
    found = recorded.all(EagerCollective)
    names = ["all_reduce", "all_gather_into_tensor", "barrier", "reduce_scatter_tensor"]
    assert [one.operation for one in found] == [*names, "broadcast"]
    assert [one.tensors[0].shape if one.tensors else () for one in found] == [
        *((3, 4), (8,), (), (4,), (2,)),
    ]
    first = test_operation_sizes_and_line.__code__.co_firstlineno
    assert [one.location.line - first for one in found if one.location] == [2, 4, 5, 6, 7]
    assert [one.number for one in found] == [1, 2, 3, 4, 5]
    assert {one.ranks for one in found} == {1}


def test_a_loop_leaves_few_and_something_new_is_recorded_at_once() -> None:
    with one_rank(), record((eager_collectives.HOOK,)) as recorded:
        for step in range(1000):
            dist.all_reduce(torch.ones(2 if step != 777 else 3))
    found = recorded.all(EagerCollective)
    alike = [one.count for one in found if one.tensors[0].shape == (2,)]
    assert alike == [*range(1, EACH + 1), 32, 64, 128, 256, 512]
    (new,) = [one for one in found if one.tensors[0].shape == (3,)]
    assert (new.number, new.count) == (778, 1)


def test_dynamo_does_not_compile_our_code() -> None:
    """After a graph break Dynamo looks at every frame that is called."""

    def step(x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        torch._dynamo.graph_break()
        dist.barrier()
        return x * 2

    with one_rank():
        hooks = (frames.HOOK, eager_collectives.HOOK)
        with record(hooks) as recorded:
            torch.compile(step, backend="eager")(torch.ones(3))
        assert [collective.operation for collective in recorded.all(EagerCollective)] == ["barrier"]
        ours = len(recorded.all(FrameEnd)), len(recorded.all(FrameSkipped))
        with record((frames.HOOK,)) as plain:
            torch.compile(step, backend="eager")(torch.ones(3))
        assert (len(plain.all(FrameEnd)), len(plain.all(FrameSkipped))) == ours
    assert dist.ProcessGroup.allreduce.__name__ == "allreduce"


def test_of_a_compiled_graph_there_is_none() -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(x)
        return x + 1

    with one_rank(), record((eager_collectives.HOOK,)) as recorded:
        torch.compile(step, backend="aot_eager", fullgraph=True)(torch.ones(3))
    assert not recorded.all(EagerCollective)
