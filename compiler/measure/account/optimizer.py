"""The optimizer's step of a training call, timed apart: eager against compiled, as torch documents
it (`torch.compile(optimizer.step)`).

A model file's `optimizer` is an Optimizer of the model's parameters, or a function that takes
parameters and makes one. Before each step its parameters, gradients and state are put back, in
place, so that every round does the same.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch._dynamo.utils import counters

from compiler.control.describe import class_name
from compiler.control.user_error import UserError
from compiler.measure.account.accounts import counted
from compiler.measure.account.lines import account, less, line, noise_of_medians, summed
from compiler.measure.account.optimizer_records import step_records, steps_of
from compiler.measure.account.records import Numbers
from compiler.measure.calls.inputs import InputSet
from compiler.measure.calls.runs import Model, Piece, RandomState, original_of, prepare
from compiler.measure.compiled.collected import RecordedModel
from compiler.measure.compiled.engine_graphs import EngineGraph, engine_graphs
from compiler.measure.compiled.inductor_graphs import inductor_graphs
from compiler.measure.host import Host, reason_of
from compiler.measure.probes.aten_probe import AtenGraph
from compiler.measure.probes.clock import Clock, HostClock, Reading, own_cost
from compiler.measure.probes.device_clock import device_clock
from compiler.measure.probes.eager_probe import EagerProbe, call_cost
from compiler.measure.probes.engine_probe import engine_probe
from compiler.measure.rounds.rounds import Lap, Laps, Side, quiet_rounds, timed
from compiler.measure.rounds.speed import no_collection
from compiler.measure.rounds.team import Team
from compiler.trace.records import Record, Warned
from compiler.trace.records.profile import AccountLine, EagerOperation

ROUNDS = 30
WARM_UPS = 3
SECONDS = 5.0
IDLE = "what the device's work leaves of the step"

Action = Callable[..., Any]
"""An optimizer's `step`, as it is or compiled."""

Probing = Callable[[Clock], AbstractContextManager[None]]


@dataclass
class Trained:
    """A model that takes a step with an optimizer of its own."""

    model: Model
    optimizer: torch.optim.Optimizer

    def remember(self) -> None:
        """The values that each round starts from."""
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

    def rewind(self) -> None:
        """Put them back, each in its place: compiled code knows tensors by their addresses."""
        with torch.no_grad():
            for tensor, value in self._tensors:
                tensor.detach().copy_(value)
        for state, name, value in self._others:
            state[name] = copy.deepcopy(value)


def optimizer_of(given: Any, original: Model, model: Model) -> torch.optim.Optimizer:
    """An optimizer of `model`'s parameters, as the file's `given` is one of `original`'s.

    Raises `UserError` where `given` is neither an Optimizer nor makes one.
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
        return copy.deepcopy(given, of_model)  # what it holds of the one, it holds of the other
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
    numbers: Numbers,
    contended: bool = False,
) -> list[Record]:
    """The phase `step` of both sides: operations, compiled steps, their region, the accounts; none
    where it cannot be measured, which is said.

    `original` is the model that the file's optimizer is of. The models of both sides are run once
    more, for gradients. `compiled` compiles a step as the recording compiled the model; its graphs
    are not part of the recording. `contended`: as `Measured.contended` of the call.
    """
    host.begins("timing the optimizer's step")
    generators = RandomState.now()
    try:
        with host.unrecorded():
            models = call.eager.model, original_of(call.model)
            sides = [Trained(one, optimizer_of(given, original, one)) for one in models]
            with Team(torch.get_num_threads()) as team:
                if contended:
                    team.keep_apart()
                return list(
                    _measured(sides, host.settings.profiled_call, compiled, inputs, numbers, team)
                )
    except Exception as error:  # whatever the user's optimizer raises
        host.emit(
            Warned(
                message=f"the optimizer's step was not measured: {reason_of(error)}",
                asked=True,
            )
        )
        return []
    finally:
        generators.restore()


def _measured(
    sides: Sequence[Trained],
    call: int,
    compiled: Callable[[Action], Action],
    inputs: InputSet,
    numbers: Numbers,
    team: Team,
) -> Iterator[Record]:
    for side in sides:
        prepare(side.model, inputs, "train")()  # gradients, from the same inputs
        with torch.no_grad():
            before = [p.detach().clone() for g in side.optimizer.param_groups for p in g["params"]]
            side.optimizer.step()  # the first one makes the state
            for group in side.optimizer.param_groups:
                for parameter in group["params"]:
                    parameter.copy_(before.pop(0))
        side.remember()
    eager, other = sides
    on_device = any(tensor.is_cuda for tensor, _ in eager._tensors)
    left: list[AtenGraph] = []
    with inductor_graphs(keep_arguments=False) as ours, engine_graphs(False, left) as own:
        step = compiled(other.optimizer.step)
        for _ in range(WARM_UPS):
            other.rewind()
            step()
    probe = EagerProbe(torch.nn.Module(), call)
    eager.rewind()
    with probe.describing(), probe.during("step", "optimizer"):
        eager.optimizer.step()
    graphs = [graph.probe(f"step/{place}") for place, graph in enumerate(ours)]
    of_engine: list[EngineGraph | AtenGraph] = [*own, *left]
    graphs += [engine_probe(graph) for graph in of_engine]  # type: ignore[misc]
    bases = [sum(1 + len(one.steps) for one in graphs[:place]) for place in range(len(graphs))]

    @contextmanager
    def in_graphs(clock: Clock) -> Iterator[None]:
        with ExitStack() as stack:
            for one, base in zip(graphs, bases, strict=True):
                stack.enter_context(one.timing(clock, base))
            yield

    runs = ((eager, eager.optimizer.step), (other, step))
    known = counters["stats"]["unique_graphs"]
    probings: tuple[tuple[Probing, int], ...] = (
        (probe.timing, call_cost()),
        (in_graphs, own_cost()),
    )
    plain, probed = _rounds(runs, probings, on_device, team)
    if counters["stats"]["unique_graphs"] != known:
        raise RuntimeError("it was compiled again while it was timed")
    if probe.differs:
        raise RuntimeError(probe.differs)
    steps = steps_of(call, graphs, bases)
    label = type(eager.optimizer).__name__
    yield from step_records(call, label, probe.operations, steps, probed, numbers)
    lines = (
        _eager_lines(probed[0], probe.operations),
        _compiled_lines(probed[1], bases, {key: one.kind for key, one in steps.items()}, on_device),
    )
    sides_laps = zip(("eager", "compiled"), plain, probed, lines, strict=True)
    for name, laps, beside, found in sides_laps:
        whole = [lap.running() for lap in laps]
        if on_device:
            busy = sum(one.time.median for one in found)
            found.append(line("idle", less(whole, [busy] * len(whole)), IDLE))
        noise = noise_of_medians(
            whole, [lap.running() for lap in beside], min(len(whole), len(beside))
        )
        yield account(name, call, "step", whole, found, noise)


def _rounds(
    runs: Sequence[tuple[Trained, Callable[[], object]]],
    probings: Sequence[tuple[Probing, int]],
    on_device: bool,
    team: Team,
) -> tuple[list[list[Lap]], list[list[Lap]]]:
    """Each side's plain laps, and probed ones, of the rounds that were disturbed least; the order
    turns from round to round."""
    plain: list[list[Lap]] = [[], []]
    probed: list[list[Lap]] = [[], []]

    def once(place: int, probing: bool) -> Lap:
        side, action = runs[place]
        side.rewind()
        pieces = [Piece("step", "optimizer", action)]
        if not probing:
            return timed(pieces, on_device, team=team)
        enter, cost = probings[place]
        clock: Clock
        with ExitStack() as stack:
            clock = stack.enter_context(device_clock()) if on_device else HostClock(cost)
            stack.enter_context(enter(clock))
            lap = timed(pieces, on_device, team=team)
        lap.readings = clock.readings()
        return lap

    order = [(0, False), (1, False), *((place, True) for place in range(len(probings)))]
    for place, probing in order:
        once(place, probing)
    spent = 0.0
    try:
        with no_collection():
            for number in range(ROUNDS):
                if number >= 7 and spent > SECONDS:
                    break
                for place, probing in reversed(order) if number % 2 else order:
                    lap = once(place, probing)
                    spent += lap.seconds
                    (probed if probing else plain)[place].append(lap)
    finally:
        for side, _ in runs:
            side.rewind()
    laps: dict[Side, Laps] = {
        "eager": {"plain": plain[0], "probed": probed[0]},
        "compiled": {"plain": plain[1], "probed": probed[1]},
    }
    quiet = quiet_rounds(laps)
    return [one["plain"] for one in quiet.values()], [one["probed"] for one in quiet.values()]


def _seconds(laps: Sequence[Lap], wanted: Callable[[Reading], bool]) -> list[float]:
    return [sum(one.ns for one in lap.readings if wanted(one)) / 1e9 for lap in laps]


def _eager_lines(laps: Sequence[Lap], operations: Sequence[EagerOperation]) -> list[AccountLine]:
    # what is between them is Python, and the probe's own: it is no line of its own
    return [line("operations", _seconds(laps, lambda _: True), f"{len(operations)} of ATen")]


def _compiled_lines(
    laps: Sequence[Lap], bases: Sequence[int], kinds: Mapping[int, str], on_device: bool
) -> list[AccountLine]:
    whole = _seconds(laps, lambda one: one.key in bases)
    parts = {
        kind: _seconds(laps, lambda one, kind=kind: kinds.get(one.key) == kind)  # type: ignore[misc]
        for kind in ("kernel", "aten")
    }
    counts = {kind: sum(one == kind for one in kinds.values()) for kind in parts}
    inside = summed(parts.values(), len(laps))
    working = [
        line("kernels", parts["kernel"], counted(counts["kernel"], "kernel")),
        line("aten", parts["aten"], counted(counts["aten"], "call")),
    ]
    if on_device:
        return working
    return [
        *working,
        line("wrapper", less(whole, inside), f"of {counted(len(bases), 'graph')}"),
        line("dispatch", less([lap.seconds for lap in laps], whole), "guards, Dynamo's wrappers"),
    ]
