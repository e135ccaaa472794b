"""`torch._dynamo.reset()` restarts torch's compile ids: each compile keeps a name of its own,
in our recording as in torch's log of the same run."""

from __future__ import annotations

import json

import pytest
import torch
from torch._guards import CompileId

from tcw.compiler import autograd, capture
from tcw.compiler.graphs.current import begin_compile, forget_compiles, name_of
from tcw.compiler.trace.compile_names import CompileNames
from tcw.compiler.trace.records import FrameEnd, Graph, Guards, Partition, Recompile
from tcw.viewers import json_report
from tcw.viewers.json_text import json_text
from tcw.viewers.recording import Recording
from tcw.viewers.summary import summarise
from tests.cpu import recorded, same_as_log
from tests.cpu.structured_trace import structured_trace


def broken(x: torch.Tensor) -> torch.Tensor:
    x = torch.sin(x)
    torch._dynamo.graph_break()
    return x + 1


def whole(x: torch.Tensor) -> torch.Tensor:
    return torch.cos(x) * 2


@pytest.fixture(scope="module")
def both() -> tuple[Recording, Recording]:
    """Our recording of three rounds, and torch's log of it."""
    hooks = (*capture.HOOKS, *autograd.HOOKS)
    with recorded.record(hooks) as recording, structured_trace() as trace:
        for number in range(3):
            compiled = torch.compile(broken, backend="aot_eager")
            for size, gradient in ((3, True), (4, False), (5, False)):
                compiled(torch.ones(size, requires_grad=gradient))
            if number:
                torch.compile(whole, backend="aot_eager")(torch.ones(2 + number))
            torch._dynamo.reset()
    log = "".join(trace.log).encode()
    return Recording(recording.records), Recording(same_as_log.read_log(log))


def test_each_compile_has_its_own_name(both: tuple[Recording, Recording]) -> None:
    first = ["0/0", "1/0", "0/1", "1/1"]
    later = [*first, "2/0"]
    wanted = [*first, *(f"r{number}.{one}" for number in (1, 2) for one in later)]
    for found in both:
        assert [frame_end.compile_id for frame_end in found.all(FrameEnd)] == wanted
        assert [guards.compile_id for guards in found.all(Guards)] == wanted
        captured = [graph.id for graph in found.all(Graph) if graph.kind == "captured"]
        assert captured == wanted
        assert len(found.graphs) == len(found.all(Graph)), "no graph hides another"
        summary = summarise(found)
        assert summary.graphs == 2 + 3 + 3
        assert summary.compiles == len(wanted)
        assert "restarted torch's compile ids 2 times" in summary.warnings[0].message
        report = json.loads(json_text(json_report.report(found)))
        assert {one["compile_id"] for one in report["graphs"]} == set(wanted)
        assert {one["compile_id"] for one in report["recompiles"]} == {
            one for one in wanted if one.endswith("/1")
        }


def test_the_log_says_the_same(both: tuple[Recording, Recording]) -> None:
    ours, log = both
    for facts in (same_as_log.frames, same_as_log.breaks, same_as_log.recompiles):
        assert facts(log.records) == facts(ours.records), facts.__name__
    assert same_as_log.guards(log.records) == same_as_log.guards(ours.records)
    kinds = ("captured", "joint", "forward", "backward", "inference")
    named = [{graph.id for graph in found.all(Graph) if graph.kind in kinds} for found in both]
    assert named[0] == named[1]
    for partition in ours.all(Partition):
        assert partition.forward.startswith(partition.compile_id + "/")


def test_a_reason_to_recompile_names_an_entry_since_the_reset(
    both: tuple[Recording, Recording],
) -> None:
    for found in both:
        for recompile in found.all(Recompile):
            prefix = recompile.compile_id.partition("/")[0]
            assert {failed.entry for failed in recompile.failed} == {f"{prefix}/0"}


def test_a_backward_after_the_reset_belongs_to_its_forward() -> None:
    forget_compiles()
    early, late = (CompileId(frame_id=0, frame_compile_id=0) for _ in range(2))
    assert [begin_compile(one, 0) for one in (early, late)] == ["0/0", "r1.0/0"]
    assert [name_of(one) for one in (early, late)] == ["0/0", "r1.0/0"]
    assert begin_compile(CompileId(frame_id=0, frame_compile_id=0), 1) == "0/0", "another engine"
    forget_compiles()


def test_names_of_ids_in_a_log() -> None:
    names = CompileNames()
    assert [names.begin(one) for one in ("0/0", "1/0", "0/1")] == ["0/0", "1/0", "0/1"]
    assert names.begin("0/0") == "r1.0/0"
    assert names.of("1/0") == "1/0", "an earlier one, until there is a new one"
    assert names.of("0/1") == "r1.0/1", "torch says why it recompiles before it begins"
    assert names.of("2/0") == "r1.2/0"
    assert names.of("") == ""
    assert names.begin("!0/0/0") == "r1.!0/0/0"
