"""A turn of one run's calls, timed while the runs of other processes have theirs in between."""

from __future__ import annotations

import torch

from tcw.compiler.measure.calls.runs import prepared
from tcw.compiler.measure.compiled.alone import NotAlone
from tcw.compiler.measure.host import Host, reason_of
from tcw.compiler.measure.rounds.noise import mean_round
from tcw.compiler.measure.rounds.rounds import RoundsPlan
from tcw.compiler.measure.rounds.whole_runs import seconds_in_rounds
from tcw.compiler.measure.what_if.compare import SETS
from tcw.compiler.measure.what_if.finished_run import FinishedRun
from tcw.compiler.trace.records import CallTimes

MODEL = "model that is timed in turns"
"""The key of a finished run's compiled model in `FinishedRun.kept`."""


def time_calls(host: Host, run: FinishedRun, rounds: int) -> None:
    """Time whole calls of a run after a warm-up, and record the seconds, or why there are none.

    The first turn compiles the run again, unrecorded, and makes Dynamo forget other runs.
    """
    try:
        if run.compile_again is None or run.status != "ok" or not run.sets:
            raise NotAlone(f"run {run.number} cannot be called again ({run.status})")
        if MODEL not in run.kept:
            host.begins("compiling again, to time whole calls")
            torch._dynamo.reset()
            run.kept[MODEL] = next(iter(run.compile_again().values()))
        model, mode = run.kept[MODEL], run.settings.grad
        calls = [[prepared(model, input_set, mode)] for input_set in list(run.sets)[:SETS]]
        with host.unrecorded():
            times = seconds_in_rounds(calls, RoundsPlan(rounds=rounds))
        host.emit(CallTimes(run=run.number, seconds=tuple(mean_round([one[0] for one in times]))))
    except Exception as error:  # a failed measurement is recorded as such; the run does not fail
        words = str(error) if isinstance(error, NotAlone) else reason_of(error, 200)
        host.emit(CallTimes(run=run.number, reason=words))
