"""Two runs of one model, timed against each other in the process that has both.

If possible, what changed is timed alone: kernels that do the same work (matched by their origins),
on the memory of one real call of each run. If not, the reason is reported and the whole compiled
graph is timed. Whole calls are timed on request.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import torch

from tcw.compiler.control.recorder import Recorder
from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.leaves import leaves
from tcw.compiler.measure.calls.runs import (
    Model,
    Prepare,
    RandomState,
    original_of,
    prepare,
    prepared,
)
from tcw.compiler.measure.compiled.alone import (
    CompiledGraph,
    NotAlone,
    Replay,
    TooMuchMemory,
    arguments_of,
    captured,
    whole,
)
from tcw.compiler.measure.compiled.engine_graphs import engine_graphs
from tcw.compiler.measure.compiled.inductor_graphs import inductor_graphs
from tcw.compiler.measure.compiled.named_graphs import named_graphs
from tcw.compiler.measure.host import Host, reason_of
from tcw.compiler.measure.precision.reference import OutputComparison, Reference
from tcw.compiler.measure.rounds.noise import difference, mean_round, timed
from tcw.compiler.measure.rounds.rounds import RoundsPlan
from tcw.compiler.measure.rounds.whole_runs import seconds_in_rounds
from tcw.compiler.measure.what_if.finished_run import FinishedRun
from tcw.compiler.runtime.libraries import without_comments
from tcw.compiler.trace import matching
from tcw.compiler.trace.matching import BACKWARD, Match, root_graph
from tcw.compiler.trace.records import Engine, Kernel, SchedulerNode, WhatIf
from tcw.compiler.trace.records.session import GradMode
from tcw.compiler.trace.writer import TraceWriter

Scope = Literal["kernel", "graph", "call"]

PLAN = RoundsPlan(rounds=600, seconds=2.0, least=10, patience=30.0)
"""Of one pair."""
SECONDS = 10.0
"""For all measurements together."""
LEAST_SECONDS = 0.2
"""A pair gets at least this much, even if the budget is spent."""
SETS = 8
"""The maximum number of input sets for which whole calls are timed."""

GRAPHS = "graphs"
"""The key of a finished run's compiled graphs in `FinishedRun.kept`."""

Graphs = dict[str, CompiledGraph]
"""By id: `0/0/forward`."""


@dataclass
class _Comparison:
    """Two runs, the graphs of both once they are compiled again, and the time left for timing."""

    host: Host
    base: FinishedRun
    run: FinishedRun
    first: Graphs = field(default_factory=dict)
    second: Graphs = field(default_factory=dict)
    left: float = SECONDS

    def timed(
        self,
        scope: Scope,
        versions: Sequence[tuple[Prepare, Prepare]],
        seconds: float,
        **about: Any,
    ) -> WhatIf:
        """Time both of each pair after a warm-up, one after the other in each round. Caches are
        warm. A round's time is the mean over the pairs."""
        began = time.perf_counter()
        try:
            times = seconds_in_rounds(versions, replace(PLAN, seconds=seconds))
        finally:
            self.left -= time.perf_counter() - began
        before, after = (mean_round(found) for found in zip(*times, strict=True))
        gained, noise = difference(before, after)
        return WhatIf(
            base=self.base.number,
            run=self.run.number,
            scope=scope,
            before=timed(before),
            after=timed(after),
            difference=gained,
            noise=noise,
            pairs=len(before),
            **about,
        )

    def not_measured(self, scope: Scope, error: BaseException, **about: Any) -> WhatIf:
        known = isinstance(error, (NotAlone, TooMuchMemory))
        words = str(error) if known else reason_of(error, 200)
        return WhatIf(
            base=self.base.number, run=self.run.number, scope=scope, reason=words, **about
        )

    def alone(
        self,
        scope: Scope,
        graph: str,
        replays: Callable[[], Iterable[Replay]],
        waiting: int,
        **about: Any,
    ) -> WhatIf:
        """Time a part of a graph, or all of it, of both runs; `waiting` measurements are left."""
        seconds = max(LEAST_SECONDS, min(PLAN.seconds, self.left / max(waiting, 1)))
        try:
            with self.host.unrecorded(), torch.no_grad():
                before, after = (replay.prepare for replay in replays())
                same = _same_outputs(*self.both(graph), BACKWARD in graph)
                found = {"graph": graph, **same, **about}
                return self.timed(scope, [(before, after)], seconds, **found)
        except Exception as problem:
            return self.not_measured(scope, problem, graph=graph, **about)

    def kernels(self, match: Match) -> list[Replay]:
        """The kernels of both runs that do the same work."""
        if match.kind in ("new", "gone"):
            other = self.base if match.kind == "new" else self.run
            raise NotAlone(f"run {other.number} has no kernel that does the same")
        if match.only_one_side:
            raise NotAlone(f"only one of the runs computes {match.only_one_side[0]} here")
        sides = zip(self.both(match.graph), (match.before, match.after), strict=True)
        return [_replay(graph, kernels) for graph, kernels in sides]

    def both(self, name: str) -> tuple[CompiledGraph, CompiledGraph]:
        for graphs, finished_run in ((self.first, self.base), (self.second, self.run)):
            if name not in graphs:
                raise NotAlone(
                    f"run {finished_run.number} made no code of {name} that could be found again"
                )
        return self.first[name], self.second[name]


def compare(
    host: Host, base: FinishedRun, run: FinishedRun, scope: Scope, missing: str = ""
) -> None:
    """Time `run` against `base` and record the result, or why there is none.

    This makes Dynamo forget what is compiled. `missing`: why this torch cannot time runs against
    each other; "" if it can.
    """
    comparison = _Comparison(host, base, run)
    try:
        _possible(base, run, missing)
        if scope == "call":
            _calls(comparison)
        else:
            _graphs_and_kernels(comparison, scope)
    except Exception as error:  # a failed measurement is recorded as such; the run does not fail
        host.emit(comparison.not_measured(scope, error))


def _possible(base: FinishedRun, run: FinishedRun, missing: str) -> None:
    if missing:
        raise NotAlone(missing)
    for finished_run in (base, run):
        if finished_run.compile_again is None or finished_run.status != "ok":
            raise NotAlone(
                f"run {finished_run.number} did not get to its end ({finished_run.status})"
            )
        if finished_run.settings.engine == "both":
            raise NotAlone(
                f"run {finished_run.number} has two engines: take one of them to compare"
            )
        if finished_run.settings.until != "run":
            raise NotAlone(
                f"run {finished_run.number} went until {finished_run.settings.until} only"
            )


def _graphs_and_kernels(one: _Comparison, scope: Scope) -> None:
    one.host.begins("compiling both runs again, to time them")
    one.first, one.second = compiled_graphs(one.base), compiled_graphs(one.run)
    changed = changed_kernels(one.base, one.run, one.first, one.second)
    graphs = dict.fromkeys(match.graph for match in changed) if scope == "graph" else {}
    if one.base.settings.engine != one.run.settings.engine:
        graphs = dict.fromkeys(name for name in one.first if name in one.second)
        changed = []
    waiting = len(changed)
    for place, match in enumerate(changed):
        if scope == "graph":
            break
        words = ", ".join(kernel.id for kernel in match.after or match.before)
        one.host.begins(f"timing {words} of {match.graph}")
        record = one.alone(
            "kernel",
            match.graph,
            partial(one.kernels, match),
            waiting - place,
            base_kernels=tuple(kernel.id for kernel in match.before),
            run_kernels=tuple(kernel.id for kernel in match.after),
        )
        one.host.emit(record)
        if record.before is None:
            graphs[match.graph] = None
    for place, name in enumerate(graphs):
        one.host.begins(f"timing {name} whole")
        replays = partial(_whole, one, name)
        one.host.emit(one.alone("graph", name, replays, len(graphs) - place))


def _whole(one: _Comparison, name: str) -> list[Replay]:
    return [whole(graph) for graph in one.both(name)]


def compiled_graphs(run: FinishedRun) -> Graphs:
    """The callable graphs of a run, with the arguments of their first call; compiled again if that
    has not been done yet. Dynamo forgets what it had compiled."""
    known: Graphs | None = run.kept.get(GRAPHS)
    if known is None:
        torch._dynamo.reset()
        _compile_again(run)
        known = run.kept[GRAPHS]
    return known


def _compile_again(run: FinishedRun) -> Model:
    """Compile a run again, in addition to what is compiled already, and keep its graphs.

    Raises `NotAlone` if the code differs from what the run recorded.
    """
    assert run.compile_again is not None
    with inductor_graphs() as of_inductor, engine_graphs() as of_engine:
        models = run.compile_again()
    run.kept[GRAPHS] = _named(run, [*of_inductor, *of_engine])
    return next(iter(models.values()))


def _named(run: FinishedRun, found: Sequence[CompiledGraph]) -> Graphs:
    """Each graph's id in this run's records."""
    kernels = run.all(Kernel)
    named = named_graphs(found, kernels)
    called = {root_graph(k.graph)[0] for k in kernels if k.generated and not k.predicted}
    for id in named.lost:
        if id in called:
            raise NotAlone(f"run {run.number} compiled again made other code of {id}")
    return named.graphs


def changed_kernels(
    base: FinishedRun, run: FinishedRun, first: Graphs, second: Graphs
) -> list[Match]:
    """Kernels whose code differs between the runs."""
    (kernels, work, code), (others, other_work, other_code) = (
        _known(finished_run, graphs) for finished_run, graphs in ((base, first), (run, second))
    )
    match = matching.match(kernels, others, work, other_work, code, other_code)
    return [match for match in match if match.kind != "same"]


def _known(
    run: FinishedRun, graphs: Graphs
) -> tuple[list[Kernel], dict[str, matching.Work], dict[str, str]]:
    kernels = [kernel for kernel in run.all(Kernel) if not kernel.predicted]
    work = matching.work_by_origins(kernels, matching.identities(run.all(SchedulerNode)))
    return kernels, work, {kernel.id: _code(kernel, graphs) for kernel in kernels}


def _code(kernel: Kernel, graphs: Graphs) -> str:
    graph = graphs.get(root_graph(kernel.graph)[0])
    if not kernel.generated or graph is None:
        return kernel.text or kernel.name
    return _compared(graph.text(kernel.name), kernel.name) or kernel.text


def _compared(text: str, name: str) -> str:
    """What has to be equal for two kernels to be the same: everything except the name and the
    comments."""
    return without_comments(re.sub(rf"\b{re.escape(name)}(?=\b|_\d+\b)", "kernel", text))


def _replay(graph: CompiledGraph, kernels: Sequence[Kernel]) -> Replay:
    calls = [kernel for kernel in kernels if not kernel.generated]
    if calls:
        raise NotAlone(f"{calls[0].name} is a call, which is timed with its graph")
    return captured(graph, {kernel.name for kernel in kernels})


def _calls(one: _Comparison) -> None:
    base, run = one.base, one.run
    one.host.begins("compiling both runs again, to time whole calls")
    torch._dynamo.reset()
    models = [_compile_again(base), _compile_again(run)]
    one.host.begins("timing whole calls of both runs")
    modes = base.settings.grad, run.settings.grad
    sets = list(zip(base.sets, run.sets, strict=False))[:SETS]
    versions = [
        (prepared(models[0], first, modes[0]), prepared(models[1], second, modes[1]))
        for first, second in sets
    ]
    with one.host.unrecorded():
        about = _results(models, sets, modes)
        if not about["within"]:
            about |= _against_eager(one, models, sets)
        record = one.timed("call", versions, SECONDS / 2, **about)
    one.host.emit(record)


def _results(
    models: Sequence[Model],
    sets: Sequence[tuple[InputSet, InputSet]],
    modes: tuple[GradMode, GradMode],
) -> dict[str, Any]:
    """Over all calls: whether both runs return the same bits, the largest difference, and whether
    `assert_close` accepts it. The first two are None if the results cannot be compared."""
    comparison = OutputComparison()
    state = RandomState.now()
    for call, inputs in enumerate(sets, 1):
        values = []
        for model, input_set, mode in zip(models, inputs, modes, strict=True):
            state.restore()
            made = prepare(model, input_set, mode)
            result = made.result(made())
            values.append(list(leaves((result.outputs, result.gradients))))
        comparison.add(call, values[1], values[0])
    return {**_equality(comparison), "within": comparison.within}


def _same_outputs(first: CompiledGraph, second: CompiledGraph, backward: bool) -> dict[str, Any]:
    """Whether both graphs return the same, each for its own arguments and with the same random
    numbers, and leave the same in them; but a backward may reuse the memory of what was saved for
    it."""
    results = []
    state = torch.get_rng_state()
    try:
        for graph in (first, second):
            torch.set_rng_state(state)
            _, arguments = arguments_of(graph)
            with torch.no_grad():
                outputs = graph.run(list(arguments))
            results.append(list(leaves(outputs if backward else (outputs, arguments))))
    finally:
        torch.set_rng_state(state)
    comparison = OutputComparison()
    comparison.add(1, results[1], results[0])
    return _equality(comparison)


def _equality(comparison: OutputComparison) -> dict[str, Any]:
    """`equal` and `max_error` of a `WhatIf`: None if the results cannot be compared."""
    numerics = comparison.record()
    if not comparison.comparable:
        return {"equal": None, "max_error": None}
    return {"equal": comparison.equal, "max_error": numerics.max_abs or None}


def _against_eager(
    one: _Comparison, models: Sequence[Model], sets: Sequence[tuple[InputSet, InputSet]]
) -> dict[str, Any]:
    """Whether the run's results, which are not the base's, are as right as those of the base's
    model in eager, like those of any recording; nothing if eager fails."""
    run = one.run
    quiet = Recorder(TraceWriter(), run.settings, random_operations=[*run.random_operations])
    engine: Engine = "tcw" if run.settings.engine == "tcw" else "inductor"
    try:
        reference = Reference(original_of(models[0]), replace(one.host, recorder=quiet), engine)
        for call, (inputs, own) in enumerate(sets, 1):
            reference.remember()
            made = prepare(models[1], own, run.settings.grad)
            reference.compare(call, inputs, made, made())
    except Exception:
        return {}
    numerics = reference.verdict()
    names = ("within", "compiled_off", "eager_off", "rounding", "note")
    return {name: getattr(numerics, name) for name in names}
