"""Collectives of compiled graphs: torch's own schedule, and what overlaps."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch._inductor import debug
from torch._inductor.utils import run_and_get_code

from tcw.compiler.capture import frames
from tcw.compiler.inductor import collectives
from tcw.compiler.trace.records import Collectives
from tcw.viewers.summary.ranks.collectives import operation_name, started
from tcw.viewers.text.sections.collectives import overlap
from tests.cpu.one_rank import one_rank
from tests.cpu.recorded import record


def work(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    shared = x.sin()
    pending = torch.ops._c10d_functional.all_reduce(shared, "sum", "0")
    meanwhile = (y @ y).relu()
    again = torch.ops._c10d_functional.all_gather_into_tensor(meanwhile, 1, "0")
    done = torch.ops._c10d_functional.wait_tensor(pending)
    return done.sum() + torch.ops._c10d_functional.wait_tensor(again).sum()


@pytest.mark.long
def test_the_schedule_is_torch_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    schedules: list[Any] = []
    monkeypatch.setattr(debug, "_dump_collective_schedule", schedules.append)
    with one_rank(), record((*frames_hooks(), collectives.HOOK)) as recorded:
        torch.compile(work)(torch.ones(4, 6), torch.ones(8, 8))
    (found,) = recorded.all(Collectives)
    assert [list(found.operations)] == schedules
    assert found.compile_id == "0/0"
    assert found.graph == "0/0/inference"
    assert len(found.details) == len(found.operations)


@pytest.mark.parametrize("locality", [True, pytest.param(False, marks=pytest.mark.long)])
def test_sizes_lines_and_what_overlaps(locality: bool) -> None:
    """What overlaps is what torch's code calls between the start and the wait. By default it moves
    the wait up, so that nothing does."""
    with (
        one_rank(),
        torch._inductor.config.patch(reorder_for_locality=locality),
        record((*frames_hooks(), collectives.HOOK)) as recorded,
    ):
        _, codes = run_and_get_code(torch.compile(work), torch.ones(4, 6), torch.ones(8, 8))
    reduce, gather = started(recorded)
    first = work.__code__.co_firstlineno
    assert (reduce.operation, gather.operation) == ("all_reduce", "all_gather_into_tensor")
    assert [one.tensors[0].shape for one in (reduce, gather)] == [(4, 6), (8, 8)]
    assert [one.place.line for one in (reduce, gather) if one.place] == [first + 2, first + 4]
    assert reduce.bytes == 4 * 6 * 4
    assert reduce.wait is not None
    assert reduce.wait.meanwhile == called_between(codes[0])
    assert ("nothing overlaps" in overlap(reduce, recorded)) == (reduce.wait.meanwhile == 0)
    assert "nothing overlaps" in overlap(gather, recorded)


def called_between(code: str) -> int:
    """Kernels and library calls between the start of the all-reduce and the first wait."""
    _, _, rest = code[code.index("def call") :].partition("_c10d_functional.all_reduce")
    between = rest[: rest.index("_c10d_functional.wait_tensor.default(")]
    return len(re.findall(r"^\s+(?:cpp_fused|extern_kernels)", between, re.M))


def test_a_graph_without_any_has_no_record() -> None:
    with one_rank(), record((*frames_hooks(), collectives.HOOK)) as recorded:
        torch.compile(lambda x: x.sin() + 1)(torch.ones(4))
    assert not recorded.all(Collectives)


def test_torch_s_names() -> None:
    names = {
        "torch.ops._c10d_functional.all_reduce_.default": "all_reduce",
        "_c10d_functional.all_reduce_coalesced.default": "all_reduce_coalesced",
        "torch.ops._c10d_functional.wait_tensor.default": "",
        "_c10d_functional_autograd.all_to_all_single.default": "all_to_all_single",
        "aten.add.Tensor": "",
        "torch.relu": "",
    }
    assert {name: operation_name(name) for name in names} == names
    assert dist.is_available()


def frames_hooks() -> tuple[Any, ...]:
    return (frames.HOOK,)
