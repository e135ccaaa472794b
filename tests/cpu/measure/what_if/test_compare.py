"""Two real runs of one model, timed against each other, and the reported difference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tcw.compiler.measure.what_if import compare as what_if
from tcw.compiler.measure.what_if.compare import compare
from tcw.compiler.measure.what_if.finished_run import FinishedRun
from tcw.compiler.trace.records import Decided, Kernel, Progress, WhatIf
from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences import Difference, difference
from tcw.workbench.worker.unrecorded import host_of
from tests.cpu.chances import by_chance
from tests.cpu.measure.what_if.finished import Trace, finished
from tests.long import mostly_long

SOFTMAX = {
    "tcw": "tcw/0/0/inference/fuse/exp+sum",
    "inductor": "inductor/0/0/inference/fuse/exp+sum_1",
}


class Softmax(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.softmax(x, -1)
        return y.sin() + x, y.amax(-1)


class Chain(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * 2).relu() + 1


class WrongChain(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * 2.01).relu() + 1


class InPlace(torch.nn.Module):
    """Reads what it overwrites: run again on the same memory, it would return something else."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.mul_(3).add_(1)
        return torch.softmax(x, -1)


class Trained(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.relu(self.linear(x)), -1).square().sum()


class Pair:
    """A base and another run, and all records of both."""

    def __init__(
        self, model: torch.nn.Module, inputs: list[Any], run: dict[str, Any], **both: Any
    ) -> None:
        self.trace = Trace()
        self.base = finished(self.trace, 1, model, inputs, **both)
        self.run = finished(self.trace, 2, model, inputs, **{**both, **run})

    def timed(self, scope: what_if.Scope) -> list[WhatIf]:
        """Measure; returns the result."""
        before = len(self.trace.records)
        compare(host_of(self.trace.recorder), self.base, self.run, scope)
        return [record for record in self.trace.records[before:] if isinstance(record, WhatIf)]

    def difference(self) -> Difference:
        whole = Recording(self.trace.records)
        return difference(whole.runs[1], whole.runs[2], whole.all(WhatIf))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(what_if, "SECONDS", 0.3)


def vetoed(engine: str, model: torch.nn.Module, x: torch.Tensor, id: str, **both: Any) -> Pair:
    torch.manual_seed(0)
    return Pair(model, [(x,)], {"overrides": {id: "apart"}}, engine=engine, **both)


@pytest.fixture(scope="module", params=mostly_long(("tcw", "inductor"), ("inductor",)))
def softmax(request: pytest.FixtureRequest) -> Pair:
    engine: str = request.param
    return vetoed(engine, Softmax(), torch.randn(64, 256), SOFTMAX[engine])


def test_the_kernels_that_a_veto_changed(softmax: Pair) -> None:
    (found,) = softmax.timed("kernel")
    assert found.reason == ""
    assert found.before is not None
    assert found.after is not None
    assert found.before.median > 0
    assert found.after.median > 0
    assert found.noise >= 0.01 * found.before.median
    assert found.pairs >= 10
    assert found.equal
    ids = {kernel.id for kernel in softmax.run.all(Kernel)}
    assert set(found.run_kernels) <= ids


def test_what_the_difference_of_both_says(softmax: Pair) -> None:
    found = softmax.difference()
    assert [kernel.kind for kernel in found.changed_kernels] in (["split"], ["changed"])
    (change,) = found.changed_kernels
    assert change.nests == (1, 2)
    assert change.code.added
    (veto,) = found.vetoes
    assert veto.holds
    (id,) = softmax.run.settings.overrides
    assert id in {one.id for one in found.decisions.changes if one.change == "vetoed"}
    assert found.figures[0].before == found.figures[0].after == 1


@pytest.mark.long
def test_a_graph_and_a_call(softmax: Pair) -> None:
    (graph,) = softmax.timed("graph")
    assert graph.graph == "0/0/inference"
    assert graph.equal
    (call,) = softmax.timed("call")
    assert call.reason == ""
    assert call.equal
    assert call.before is not None
    assert call.before.median > 0


@pytest.mark.long
def test_its_runs_stay_what_they_were(softmax: Pair) -> None:
    """Compiled again to time a whole call, run 2 still has the veto."""
    softmax.timed("call")
    for run in (softmax.base, softmax.run):
        texts = {kernel.name for kernel in run.all(Kernel) if kernel.language != "aten"}
        assert set(what_if.compiled_graphs(run)["0/0/inference"].kernels) == texts


def test_twice_the_traffic_is_slower() -> None:
    """A chain that is split in the middle writes its values and reads them again."""
    pair = vetoed("tcw", Chain(), torch.randn(2048, 2048), "tcw/0/0/inference/fuse/mul+relu")

    def slower(_: int) -> WhatIf:
        (found,) = pair.timed("kernel")
        assert found.difference > 0, found.reason
        return found

    found = by_chance(slower)
    assert found.reason == ""
    assert len(found.run_kernels) == 2
    assert found.equal


def test_a_kernel_that_overwrites_what_it_reads() -> None:
    id = "tcw/0/0/inference/fuse/exp+sum"
    (found,) = vetoed("tcw", InPlace(), torch.randn(32, 128), id).timed("kernel")
    assert found.reason == ""
    assert found.equal


def test_forward_and_backward_of_training() -> None:
    pair = vetoed("tcw", Trained(), torch.randn(32, 32), "", grad="train")
    ids = [decided.id for decided in pair.base.all(Decided) if decided.kind == "fuse"]
    backward = next(id for id in ids if "/backward/" in id)
    pair = vetoed("tcw", Trained(), torch.randn(32, 32), backward, grad="train")
    found = pair.timed("kernel")
    assert {one.graph for one in found} == {"0/0/backward"}
    assert all(one.before is not None and one.equal for one in found), found


def test_sizes_that_are_symbols() -> None:
    pair = vetoed("tcw", Softmax(), torch.randn(32, 96), SOFTMAX["tcw"], dynamic=True)
    (found,) = pair.timed("kernel")
    assert found.before is not None
    assert found.equal


def test_runs_that_are_alike() -> None:
    pair = Pair(Softmax(), [(torch.randn(32, 128),)], {}, engine="tcw")
    assert pair.timed("kernel") == []
    assert pair.difference().nothing
    (call,) = pair.timed("call")
    assert call.equal


class Rounded(torch.nn.Module):
    """In 16 bits, code that stores the sum rounds it, by a large part of the result."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sigmoid() + 4 - 4


class Dropped(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x, 0.5) * 2


def test_rounding_is_judged_by_float64() -> None:
    """Compiled code rounds what it keeps in registers less often: `assert_close` rejects that."""
    x = torch.rand(16, 64, dtype=torch.bfloat16)
    stored = {"tcw/0/0/inference/lowering/add": "aten"}
    pair = Pair(Rounded(), [(x,)], {"overrides": {}}, engine="tcw", overrides=stored)
    (call,) = pair.timed("call")
    assert call.equal is False
    assert call.within
    assert call.compiled_off is not None
    assert call.eager_off is not None
    assert call.compiled_off < call.eager_off


def test_a_wrong_result_is_further_from_float64() -> None:
    x = torch.rand(16, 64)
    pair = Pair(Chain(), [(x,)], {}, engine="tcw")
    pair.run = finished(pair.trace, 3, WrongChain(), [(x,)], engine="tcw")
    (call,) = pair.timed("call")
    assert call.within is False
    assert call.compiled_off is not None
    assert call.eager_off is not None
    assert call.compiled_off > 1e3 * call.eager_off


def test_other_random_numbers_cannot_be_compared() -> None:
    x = torch.randn(16, 64)
    (call,) = Pair(Dropped(), [(x,)], {"engine": "inductor"}, engine="tcw").timed("call")
    assert call.within is None
    assert call.note.startswith("random: not comparable (")


def test_an_operation_that_became_a_call() -> None:
    """A library call has no kernel of its own: the reason is reported, and the graph is timed."""
    pair = Pair(
        Softmax(),
        [(torch.randn(32, 128),)],
        {"overrides": {"tcw/0/0/inference/lowering/_softmax": "aten"}},
        engine="tcw",
    )
    found = pair.timed("kernel")
    assert any("is a call, which" in one.reason for one in found if one.scope == "kernel")
    graph = found[-1]
    assert (graph.scope, graph.graph) == ("graph", "0/0/inference")
    assert graph.before is not None


def _incomplete(run: FinishedRun) -> None:
    run.status = "failed"


def _without_code(run: FinishedRun) -> None:
    run.compile_again = None


@pytest.mark.parametrize("spoil", [_incomplete, _without_code])
def test_a_run_that_cannot_be_called(spoil: Callable[[FinishedRun], None]) -> None:
    trace = Trace()
    runs = [FinishedRun(n, trace.recorder.settings, []) for n in (1, 2)]
    runs[0].compile_again = dict
    spoil(runs[1])
    compare(host_of(trace.recorder), runs[0], runs[1], "kernel")
    (record,) = [record for record in trace.records if not isinstance(record, Progress)]
    assert isinstance(record, WhatIf)
    assert record.before is None
    assert "run 2" in record.reason
