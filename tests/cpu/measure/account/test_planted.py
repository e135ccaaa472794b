"""Time planted in a call appears in its line of the account, and nowhere else; what only the plain
call takes is the remainder."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import pytest
import torch

from tcw.compiler.measure.account import records as account_records
from tcw.compiler.measure.account.readings import Measured
from tcw.compiler.measure.account.records import IdCounts, records
from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.runs import PreparedRun, prepare
from tcw.compiler.measure.compiled.guard_cost import GuardCosts
from tcw.compiler.measure.compiled.inductor_graphs import InductorGraph, inductor_graphs
from tcw.compiler.measure.probes.call_rounds import CallRounds, CallSide, plan_of
from tcw.compiler.measure.probes.inductor_probe import InductorProbe
from tcw.compiler.measure.probes.laps import Side
from tcw.compiler.measure.probes.sides import CompiledSide, EagerSide
from tcw.compiler.measure.regions.origins import Origins
from tcw.compiler.measure.rounds.team import Team
from tcw.compiler.trace.records import Timed
from tcw.compiler.trace.records.profile import Account
from tests.cpu.chances import by_chance

PLANTED = 0.1
"""Seconds: far more than a call takes, or than a busy machine can disturb it."""
NEAR = PLANTED / 2


def wait() -> None:
    """Sleeps: a thread that computes might have to wait for other programs."""
    time.sleep(PLANTED)


def nothing() -> None:
    pass


class Planted:
    """One operation, in eager and compiled by Inductor, with places that can be slowed down."""

    def __init__(self) -> None:
        self.in_operation = self.in_python = self.in_wrapper = nothing
        self.checked = False
        torch._dynamo.reset()

        @torch.library.custom_op("planted_account::work", mutates_args=())
        def work(x: torch.Tensor) -> torch.Tensor:
            self.in_operation()
            return x.clone()

        @work.register_fake
        def _(x: torch.Tensor) -> torch.Tensor:
            return torch.empty_like(x)

        def model(x: torch.Tensor) -> torch.Tensor:
            return work(x)

        self.x = torch.ones(8, 8)
        with inductor_graphs(keep_arguments=False) as graphs, torch.no_grad():
            compiled = torch.compile(model)
            compiled(self.x)
        self.graph: InductorGraph
        (self.graph,) = graphs
        module = self.graph.module
        check = module.assert_size_stride

        def checked(*args: object) -> object:
            if not self.checked:  # the wrapper checks more than one tensor
                self.checked = True
                self.in_wrapper()
            return check(*args)

        module.assert_size_stride = checked
        self.eager, self.compiled = self._called(model), self._called(compiled)

    def _called(self, model: Callable[..., object]) -> Callable[..., object]:
        def called(x: torch.Tensor) -> object:
            self.checked = False
            self.in_python()
            return model(x)

        return called

    def accounts(self, guards: float = 0.0) -> dict[str, dict[str, float]]:
        """Side -> line -> seconds, with `remainder`."""
        self.in_operation, in_operation = nothing, self.in_operation
        inputs = InputSet((self.x,))

        def prepared(model: Callable[..., object]) -> Callable[[], PreparedRun]:
            return lambda: prepare(model, inputs, "no-grad")

        eager = EagerSide(self.eager, 1, on_device=False)
        eager.describe(prepared(self.eager)())
        self.in_operation = in_operation
        compiled = CompiledSide([InductorProbe("0/0/inference", self.graph)], False, [])
        probe = compiled.probes()["probed"]
        sides: dict[Side, CallSide] = {
            "eager": CallSide(prepared(self.eager), {"probed": eager.probing}),
            "compiled": CallSide(prepared(self.compiled), {"probed": probe}),
        }
        with Team(torch.get_num_threads()) as team:
            rounds = CallRounds(sides, team)
            last = rounds.warm_up()
            eager.check(last["eager", "probed"])
            rounds.run(plan_of(3))
        eager.read(rounds.laps["eager"]["probed"])
        cost = {"0/0": Timed(median=guards, spread=0.0, runs=3)}
        measured = Measured(
            call=1,
            device="cpu",
            probes=compiled.graphs,
            bases=compiled.bases,
            end=compiled.end,
            origins=Origins([]),
            canonical=str,
            operations=eager.probe.operations,
            laps=rounds.laps,
            guards=GuardCosts(cost, cost),
        )
        return {
            record.side: {
                **{line.name: line.time.median for line in record.lines},
                "remainder": record.remainder,
            }
            for record in records(measured, IdCounts())
            if isinstance(record, Account)
        }


@pytest.fixture(scope="module")
def model() -> Iterator[Planted]:
    yield Planted()
    torch._dynamo.reset()


@pytest.fixture
def planted(model: Planted, monkeypatch: pytest.MonkeyPatch) -> Iterator[Planted]:
    """Accounts are kept even where what is planted makes their parts come to far more than the
    call."""
    monkeypatch.setattr(account_records, "EXCESS", math.inf)
    yield model
    model.in_operation = model.in_python = model.in_wrapper = nothing


def only(lines: dict[str, float], name: str) -> None:
    """The planted time is in this line only, to within a half."""
    assert lines[name] == pytest.approx(PLANTED, abs=NEAR)
    assert all(abs(seconds) < NEAR for other, seconds in lines.items() if other != name), lines


def test_in_an_operation(planted: Planted) -> None:
    planted.in_operation = wait

    def measured(_: int) -> None:
        found = planted.accounts()
        only(found["eager"], "operations")
        only(found["compiled"], "aten")

    by_chance(measured)


def test_around_the_call(planted: Planted) -> None:
    planted.in_python = wait

    def measured(_: int) -> None:
        found = planted.accounts()
        only(found["eager"], "dispatch")
        only(found["compiled"], "dispatch")

    by_chance(measured)


def test_in_the_wrapper_of_a_graph(planted: Planted) -> None:
    planted.in_wrapper = wait
    by_chance(lambda _: only(planted.accounts()["compiled"], "wrapper"))


def test_what_guards_take_is_none_of_dispatch(planted: Planted) -> None:
    planted.in_python = wait
    by_chance(lambda _: only(planted.accounts(guards=PLANTED)["compiled"], "guards"))


def test_what_no_probed_call_takes_is_not_explained(planted: Planted) -> None:
    """The account does not close by construction: its lines are independent of the plain call."""
    graph = planted.graph

    def where_nothing_looks() -> None:
        if graph.call == graph.generated:
            wait()

    def measured(_: int) -> None:
        account = planted.accounts()["compiled"]
        assert account.pop("remainder") == pytest.approx(PLANTED, abs=NEAR)
        assert all(seconds < NEAR for seconds in account.values())

    planted.in_wrapper = where_nothing_looks
    by_chance(measured)


def test_what_only_a_probed_call_takes_is_too_much(planted: Planted) -> None:
    graph = planted.graph

    def where_a_probe_looks() -> None:
        if graph.call != graph.generated:
            wait()

    def measured(_: int) -> None:
        account = planted.accounts()["compiled"]
        assert account["remainder"] == pytest.approx(-PLANTED, abs=NEAR)

    planted.in_wrapper = where_a_probe_looks
    by_chance(measured)
