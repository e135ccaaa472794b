"""The optimizer's step of a training call, timed separately: eager against compiled in the way that
torch documents (`torch.compile(optimizer.step)`).

A model file's `optimizer` is an Optimizer of the model's parameters, or a function that takes
parameters and returns one. Before each step its parameters, gradients and state are restored in
place, so that every round does the same work.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch._dynamo.utils import counters

from tcw.compiler.control.describe import class_name
from tcw.compiler.control.user_error import UserError
from tcw.compiler.measure.account.readings import Measured
from tcw.compiler.measure.account.records import IdCounts, step_records
from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.runs import Model, RandomState, RunPiece, original_of, prepare
from tcw.compiler.measure.compiled.collected import RecordedModel
from tcw.compiler.measure.compiled.engine_graphs import AtenGraph, EngineGraph, engine_graphs
from tcw.compiler.measure.compiled.guard_cost import GuardCosts
from tcw.compiler.measure.compiled.inductor_graphs import inductor_graphs
from tcw.compiler.measure.host import Host, reason_of
from tcw.compiler.measure.probes.call_rounds import CallRounds, CallSide
from tcw.compiler.measure.probes.engine_probe import engine_probe
from tcw.compiler.measure.probes.inductor_probe import InductorProbe
from tcw.compiler.measure.probes.sides import CompiledSide, EagerSide
from tcw.compiler.measure.regions.origins import Origins
from tcw.compiler.measure.rounds.rounds import RoundsPlan
from tcw.compiler.measure.rounds.team import Team
from tcw.compiler.trace.records import Record, Warned
from tcw.compiler.trace.records.session import GradMode

ROUNDS = 30
WARM_UPS = 3

Action = Callable[..., Any]
"""An optimizer's `step`, eager or compiled."""


@dataclass
class Trained:
    """A model with its own optimizer."""

    model: Model
    optimizer: torch.optim.Optimizer

    def remember(self) -> None:
        """Store the values that each round starts from."""
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        self._tensors = [(p, p.detach().clone()) for p in parameters]
        self._tensors += [(p.grad, p.grad.clone()) for p in parameters if p.grad is not None]
        self._others: list[tuple[dict[str, Any], str, Any]] = []
        for state in self.optimizer.state.values():
            for name, value in state.items():
                if isinstance(value, torch.Tensor):
                    self._tensors.append((value, value.detach().clone()))
                else:
                    self._others.append((state, name, copy.deepcopy(value)))

    @property
    def on_device(self) -> bool:
        """Whether any of them is on a GPU."""
        return any(tensor.is_cuda for tensor, _ in self._tensors)

    def rewind(self) -> None:
        """Restore them in place: compiled code identifies tensors by their addresses."""
        with torch.no_grad():
            for tensor, value in self._tensors:
                tensor.detach().copy_(value)
        for state, name, value in self._others:
            state[name] = copy.deepcopy(value)


@dataclass(frozen=True)
class StepRun:
    """One step as a run: nothing is copied, and the model's gradients are restored."""

    action: Action
    mode: GradMode = "train"

    def pieces(self) -> list[RunPiece]:
        return [RunPiece("step", "optimizer", self.action)]


def optimizer_of(given: Any, original: Model, model: Model) -> torch.optim.Optimizer:
    """An optimizer of `model`'s parameters that corresponds to the file's `given`, which is for
    `original`'s.

    Raises `UserError` if `given` is neither an Optimizer nor a function that makes one.
    """
    if not isinstance(original, torch.nn.Module) or not isinstance(model, torch.nn.Module):
        raise _bad("a function has no parameters to step")
    if isinstance(given, torch.optim.Optimizer):
        if model is original:
            return given
        names = dict(model.named_parameters())
        of_model = {
            id(parameter): names[name]
            for name, parameter in original.named_parameters()
            if name in names
        }
        return copy.deepcopy(given, of_model)  # with `model`'s parameters in place of `original`'s
    made = given(model.parameters()) if callable(given) else given
    if not isinstance(made, torch.optim.Optimizer):
        raise _bad(
            f"`optimizer` is a {class_name(given)}"
            + ("" if made is given else f", which makes a {class_name(made)}")
        )
    return made


def _bad(what: str) -> UserError:
    return UserError(
        what,
        type="BadOptimizer",
        hint="optimizer = torch.optim.AdamW(model.parameters()), or a function of parameters",
        doing="reading the optimizer",
    )


def step_records_of(
    host: Host,
    given: Any,
    original: Model,
    call: RecordedModel,
    compiled: Callable[[Action], Action],
    inputs: InputSet,
    numbers: IdCounts,
) -> list[Record]:
    """The phase `step` of both sides: operations, compiled steps, their region, the accounts. If it
    cannot be measured, there are none, and the reason is recorded; nor on a busy machine.

    `original` is the model that the file's optimizer belongs to. The models of both sides are run
    once more, for gradients. `compiled` compiles a step as the recording compiled the model; its
    graphs are not part of the recording.
    """
    host.begins("timing the optimizer's step")
    generators = RandomState.now()
    try:
        with host.unrecorded():
            eager, other = (
                Trained(one, optimizer_of(given, original, one))
                for one in (call.eager.model, original_of(call.model))
            )
            with Team(torch.get_num_threads()) as team:
                number = host.settings.profiled_call
                return list(_measured(eager, other, number, compiled, inputs, numbers, team))
    except Exception as error:  # anything that the user's optimizer raises
        host.emit(
            Warned(message=f"the optimizer's step was not measured: {reason_of(error)}", asked=True)
        )
        return []
    finally:
        generators.restore()


def _measured(
    eager: Trained,
    other: Trained,
    call: int,
    compiled: Callable[[Action], Action],
    inputs: InputSet,
    numbers: IdCounts,
    team: Team,
) -> Iterator[Record]:
    for trained in (eager, other):
        _start(trained, inputs)
    left: list[AtenGraph] = []
    with inductor_graphs(keep_arguments=False) as ours, engine_graphs(False, left) as own:
        step = compiled(other.optimizer.step)
        for _ in range(WARM_UPS):
            other.rewind()
            step()
    graphs = [InductorProbe(f"step/{place}", graph) for place, graph in enumerate(ours)]
    of_engine: list[EngineGraph | AtenGraph] = [*own, *left]
    graphs += [engine_probe(graph) for graph in of_engine]  # type: ignore[misc]
    before = EagerSide(torch.nn.Module(), call, eager.on_device)
    before.by_profiler = False  # a dispatch mode times its operations
    after = CompiledSide(graphs, eager.on_device, [])
    eager.rewind()
    before.describe(StepRun(eager.optimizer.step))
    rounds = CallRounds(
        {
            "eager": CallSide(
                lambda: StepRun(eager.optimizer.step), {"probed": before.probing}, eager.rewind
            ),
            "compiled": CallSide(
                lambda: StepRun(step), {"probed": after.probes()["probed"]}, other.rewind
            ),
        },
        team,
        eager.on_device,
        in_a_row=1,
    )
    known = counters["stats"]["unique_graphs"]
    try:
        rounds.warm_up()
        rounds.run(RoundsPlan(ROUNDS, seconds=10.0, least=7, patience=60.0))
    finally:
        eager.rewind()
        other.rewind()
    if counters["stats"]["unique_graphs"] != known:
        raise RuntimeError("it was compiled again while it was timed")
    if before.probe.differs:
        raise RuntimeError(before.probe.differs)
    if team.contended:
        return
    measured = Measured(
        call=call,
        device="cuda" if eager.on_device else "cpu",
        probes=graphs,
        bases=after.bases,
        end=after.end,
        origins=Origins([]),
        canonical=str,
        operations=before.probe.operations,
        laps=rounds.laps,
        guards=GuardCosts(),
        phase="step",
    )
    yield from step_records(measured, type(eager.optimizer).__name__, numbers)


def _start(trained: Trained, inputs: InputSet) -> None:
    """Compute gradients from these inputs, and create the optimizer's state, which its first step
    does."""
    prepare(trained.model, inputs, "train")()
    with torch.no_grad():
        parameters = [p for group in trained.optimizer.param_groups for p in group["params"]]
        before = [parameter.detach().clone() for parameter in parameters]
        trained.optimizer.step()
        for parameter, value in zip(parameters, before, strict=True):
            parameter.copy_(value)
    trained.remember()
