"""Two runs of one model, timed against each other in the process that has both.

If possible, what changed is timed alone: kernels that do the same work (matched by their origins),
on the memory of one real call of each run. If not, the reason is reported and the whole compiled
graph is timed. Whole calls are timed on request.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch

from compiler.measure.calls.inputs import InputSet
from compiler.measure.calls.leaves import leaves
from compiler.measure.calls.runs import Model, RandomState, prepare, prepared
from compiler.measure.compiled.alone import CompiledGraph, NotAlone, Replay, captured
from compiler.measure.compiled.engine_graphs import engine_graphs
from compiler.measure.compiled.inductor_graphs import inductor_graphs
from compiler.measure.compiled.named_graphs import named_graphs
from compiler.measure.compiled.shadows import TooMuchMemory
from compiler.measure.compiled.whole import compared, equal_outputs, whole
from compiler.measure.host import Host, reason_of
from compiler.measure.precision.numerics import OutputComparison
from compiler.measure.probes.naming import BACKWARD, root_graph
from compiler.measure.rounds.pairs import Paired, in_turn
from compiler.measure.what_if.finished_run import FinishedRun
from compiler.runtime.libraries import without_comments
from compiler.trace import matching
from compiler.trace.matching import Match
from compiler.trace.records import Kernel, SchedulerNode, WhatIf
from compiler.trace.records.session import GradMode

Scope = Literal["kernel", "graph", "call"]

SECONDS = 10.0
"""For all measurements together; one pair takes at most `compiler.measure.rounds.pairs.PLAN`."""
LEAST_SECONDS = 0.2
"""A pair gets at least this much, even if the budget is spent."""
SETS = 8
"""The maximum number of input sets for which whole calls are timed."""

GRAPHS = "graphs"
"""The key of a finished run's compiled graphs in `FinishedRun.kept`."""


@dataclass
class Budget:
    """The remaining seconds for timing."""

    left: float = SECONDS

    def of_one(self, waiting: int) -> float:
        """Seconds for the next of `waiting` measurements."""
        return max(LEAST_SECONDS, min(2.0, self.left / max(waiting, 1)))

    @contextmanager
    def spent(self) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.left -= time.perf_counter() - start


def compare(
    host: Host, base: FinishedRun, run: FinishedRun, scope: Scope, missing: str = ""
) -> None:
    """Time `run` against `base` and record the result, or why there is none.

    This makes Dynamo forget what is compiled. `missing`: why this torch cannot time runs against
    each other; "" if it can.
    """
    try:
        _possible(base, run, missing)
        if scope == "call":
            _calls(host, base, run)
        else:
            _graphs_and_kernels(host, base, run, scope)
    except Exception as error:  # a failed measurement is recorded as such; the run does not fail
        host.emit(_not_measured(base, run, scope, error))


def _possible(base: FinishedRun, run: FinishedRun, missing: str) -> None:
    if missing:
        raise NotAlone(missing)
    for one in (base, run):
        if one.compile_again is None or one.status != "ok":
            raise NotAlone(f"run {one.number} did not get to its end ({one.status})")
        if one.settings.engine == "both":
            raise NotAlone(f"run {one.number} has two engines: take one of them to compare")
        if one.settings.until != "run":
            raise NotAlone(f"run {one.number} went until {one.settings.until} only")


def _not_measured(
    base: FinishedRun, run: FinishedRun, scope: Scope, error: BaseException, **about: Any
) -> WhatIf:
    known = isinstance(error, (NotAlone, TooMuchMemory))
    words = str(error) if known else reason_of(error, 200)
    return WhatIf(base=base.number, run=run.number, scope=scope, reason=words, **about)


def _timed(
    base: FinishedRun, run: FinishedRun, scope: Scope, found: Paired, **about: Any
) -> WhatIf:
    return WhatIf(
        base=base.number,
        run=run.number,
        scope=scope,
        before=found.before,
        after=found.after,
        difference=found.difference,
        noise=found.noise,
        pairs=found.pairs,
        **about,
    )


Graphs = dict[str, CompiledGraph]
"""By id: `0/0/forward`."""


def _graphs_and_kernels(host: Host, base: FinishedRun, run: FinishedRun, scope: Scope) -> None:
    host.begins("compiling both runs again, to time them")
    first, second = (compiled_graphs(one) for one in (base, run))
    changed = changed_kernels(base, run, first, second)
    whole_graphs = dict.fromkeys(one.graph for one in changed) if scope == "graph" else {}
    budget = Budget()
    if base.settings.engine != run.settings.engine:
        whole_graphs = dict.fromkeys(name for name in first if name in second)
        changed = []
    waiting = len(changed)
    for place, one in enumerate(changed):
        if scope == "graph":
            break
        record = _kernels(host, base, run, one, first, second, budget, waiting - place)
        host.emit(record)
        if record.before is None:
            whole_graphs[one.graph] = None
    for place, name in enumerate(whole_graphs):
        left = len(whole_graphs) - place
        host.emit(_graph(host, base, run, name, first, second, budget, left))


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
        _known(one, graphs) for one, graphs in ((base, first), (run, second))
    )
    found = matching.match(kernels, others, work, other_work, code, other_code)
    return [one for one in found if one.kind != "same"]


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


def _kernels(
    host: Host,
    base: FinishedRun,
    run: FinishedRun,
    match: Match,
    first: Graphs,
    second: Graphs,
    budget: Budget,
    waiting: int,
) -> WhatIf:
    about = {
        "graph": match.graph,
        "base_kernels": tuple(kernel.id for kernel in match.before),
        "run_kernels": tuple(kernel.id for kernel in match.after),
    }
    words = ", ".join(kernel.id for kernel in match.after or match.before)
    host.begins(f"timing {words} of {match.graph}")
    try:
        with host.unrecorded(), torch.no_grad():
            if match.kind in ("new", "gone"):
                other = base if match.kind == "new" else run
                raise NotAlone(f"run {other.number} has no kernel that does the same")
            if match.only_one_side:
                raise NotAlone(f"only one of the runs computes {match.only_one_side[0]} here")
            one, two = _both(match.graph, base, run, first, second)
            replays = [
                _replay(graph, kernels)
                for graph, kernels in ((one, match.before), (two, match.after))
            ]
            equal, error = equal_outputs(one, two, BACKWARD not in match.graph)
            with budget.spent():
                found = in_turn([(replays[0].prepare, replays[1].prepare)], budget.of_one(waiting))
    except Exception as problem:
        return _not_measured(base, run, "kernel", problem, **about)
    return _timed(base, run, "kernel", found, equal=equal, max_error=error, **about)


def _both(
    name: str, base: FinishedRun, run: FinishedRun, first: Graphs, second: Graphs
) -> tuple[CompiledGraph, CompiledGraph]:
    for graphs, one in ((first, base), (second, run)):
        if name not in graphs:
            raise NotAlone(f"run {one.number} made no code of {name} that could be found again")
    return first[name], second[name]


def _replay(graph: CompiledGraph, kernels: Sequence[Kernel]) -> Replay:
    calls = [kernel for kernel in kernels if not kernel.generated]
    if calls:
        raise NotAlone(f"{calls[0].name} is a call, which is timed with its graph")
    return captured(graph, {kernel.name for kernel in kernels})


def _graph(
    host: Host,
    base: FinishedRun,
    run: FinishedRun,
    name: str,
    first: Graphs,
    second: Graphs,
    budget: Budget,
    waiting: int,
) -> WhatIf:
    host.begins(f"timing {name} whole")
    try:
        with host.unrecorded():
            one, two = _both(name, base, run, first, second)
            equal, error = equal_outputs(one, two, BACKWARD not in name)
            replays = whole(one), whole(two)
            with budget.spent():
                found = in_turn([(replays[0].prepare, replays[1].prepare)], budget.of_one(waiting))
    except Exception as problem:
        return _not_measured(base, run, "graph", problem, graph=name)
    return _timed(base, run, "graph", found, graph=name, equal=equal, max_error=error)


def _calls(host: Host, base: FinishedRun, run: FinishedRun) -> None:
    host.begins("compiling both runs again, to time whole calls")
    torch._dynamo.reset()
    models = [_compile_again(one) for one in (base, run)]
    host.begins("timing whole calls of both runs")
    modes = base.settings.grad, run.settings.grad
    sets = list(zip(base.sets, run.sets, strict=False))[:SETS]
    with host.unrecorded():
        equal, error, within = _results(models, sets, modes)
        found = in_turn(
            [
                (prepared(models[0], first, modes[0]), prepared(models[1], second, modes[1]))
                for first, second in sets
            ],
            seconds=SECONDS / 2,
        )
    about: dict[str, Any] = {"equal": equal, "max_error": error, "within": within}
    host.emit(_timed(base, run, "call", found, **about))


def _results(
    models: Sequence[Model],
    sets: Sequence[tuple[InputSet, InputSet]],
    modes: tuple[GradMode, GradMode],
) -> tuple[bool | None, float | None, bool]:
    """Over all calls: whether both runs return the same bits, the largest difference, and whether
    `assert_close` accepts it. The first two are None if the results cannot be compared."""
    comparison = OutputComparison()
    equal: bool | None = True
    worst: float | None = None
    state = RandomState.now()
    for call, inputs in enumerate(sets, 1):
        values = []
        for model, one, mode in zip(models, inputs, modes, strict=True):
            state.restore()
            made = prepare(model, one, mode)
            result = made.result(made())
            values.append(list(leaves((result.outputs, result.gradients))))
        comparison.add(call, values[1], values[0])
        same, error = compared(*([value for _, value in one] for one in values))
        equal = None if same is None or equal is None else equal and same
        worst = max(filter(None, (worst, error)), default=None)
    return equal, worst if equal is not None else None, comparison.within
