"""The processes that measure the sweep's cases: each on cores of its own, one case at a time.

A worker (`serve`) reads keys of cases from its standard input and writes a row for each. Whoever
started it keeps the results, so that a worker that ends costs one row: the case that it had begun.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from benchmarks import timing

A_WORKER = 100
"""Measured cases after which a new process is started, because compiled code stays in memory."""
SLOWEST = 0.3
"""Seconds of an eager call above which a case is not measured."""
PATIENCE = 180
"""Seconds after which a case counts as a crash."""

Row = dict[str, Any]


def in_workers(
    keys: Sequence[str],
    command: Sequence[str],
    *,
    jobs: int,
    threads: int,
    until: float,
    found: Callable[[str, Row], bool],
) -> None:
    """Give the cases to `jobs` workers, which `command` starts, each on `threads` cores of its own.

    `found` gets each row, in the thread of its worker but never two at once, and returns whether to
    go on. No case is begun after `until` (`time.monotonic()`). Raises ValueError if there are fewer
    cores than the workers need. One job is not bound to a core: the scheduler may know a free one.
    """
    cores = sorted(os.sched_getaffinity(0))
    if jobs > 1 and jobs * threads > len(cores):
        raise ValueError(f"--jobs {jobs} needs {jobs * threads} cores; {len(cores)} may be used")
    waiting = deque(keys)
    lock = threading.Lock()
    stop = threading.Event()

    def work(own: set[int] | None) -> None:
        worker: subprocess.Popen[str] | None = None
        measured = 0
        while not stop.is_set() and time.monotonic() < until:
            try:
                key = waiting.popleft()
            except IndexError:
                break
            worker = worker or _started(command, own, threads)
            row = _asked(worker, key)
            if row.keys() <= {"side"}:
                row = {"crashed": worker.wait(), **row}
                worker = None
            measured = 0 if worker is None else measured + ("skipped" not in row)
            with lock:
                if not stop.is_set() and not found(key, row):
                    stop.set()
            if measured >= A_WORKER and worker:
                _ended(worker)
                worker, measured = None, 0
        if worker:
            _ended(worker)

    sets = [set(cores[k * threads : (k + 1) * threads]) if jobs > 1 else None for k in range(jobs)]
    running = [threading.Thread(target=work, args=(own,), daemon=True) for own in sets]
    for thread in running:
        thread.start()
    try:
        for thread in running:
            thread.join()
    except KeyboardInterrupt:
        stop.set()
        raise


def _started(command: Sequence[str], cores: set[int] | None, threads: int) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        **timing.environment(threads),
        "TCW_STRICT": "1",
        # no pool of compilers beside the worker: they would share its core
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }
    pipe = subprocess.PIPE
    worker = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True)
    if cores is not None:
        os.sched_setaffinity(worker.pid, cores)
    return worker


def _asked(worker: subprocess.Popen[str], key: str) -> Row:
    """The row of a case. If the worker ended, only the `side` that ran last, if one did."""
    assert worker.stdin
    assert worker.stdout
    try:
        worker.stdin.write(f"{key}\n")
        worker.stdin.flush()
    except BrokenPipeError:
        return {}
    row: Row = {}
    for line in worker.stdout:
        if line.endswith("\n"):
            row = json.loads(line)
            if row.keys() != {"side"}:
                break
    return row


def _ended(worker: subprocess.Popen[str]) -> None:
    assert worker.stdin
    assert worker.stdout
    worker.stdin.close()
    worker.wait()
    worker.stdout.close()


def serve(
    cases: Mapping[str, Any],
    threads: int,
    measured: Callable[[Any, Callable[[Row], None]], Row],
) -> None:
    """Measure the cases that the standard input names, one a line, until it ends. `measured` gets
    a case, and says by which side it goes on."""
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    rows = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no row

    def said(row: Row) -> None:
        print(json.dumps(row), file=rows, flush=True)

    for line in sys.stdin:
        signal.alarm(PATIENCE)
        row = measured(cases[line.rstrip("\n")], said)
        signal.alarm(0)
        said(row)


def measure(case: Any, seconds: float, threads: int, said: Callable[[Row], None]) -> Row:
    """The row of one case: seconds of each side, or why there are none.

    `said` gets the side before it is compiled and called for the first time, and `any` before all
    are called in turn.

    `torch` is what a compiled call takes in any case, in the caches that the operation leaves: the
    time of eager's call and one that computes nothing, in turn, less eager's. A function that does
    not compile so has a row without it.
    """
    import torch

    from benchmarks.backend import TORCH, backend
    from benchmarks.growing import NoCase
    from benchmarks.sweep_cases import called

    try:
        function, tensors = case.make()
        eager = partial(called, function, tensors, case.backward)
        eager()
        clock = timing.clock(threads)
        began = clock()
        eager()
        if clock() - began > SLOWEST:
            raise NoCase("slow in eager")
    except Exception as error:
        why = str(error) if isinstance(error, NoCase) else f"eager raises: {error}"
        return {"skipped": why[:200]}
    sides: dict[str, Callable[[], Any]] = {"eager": eager}
    for engine in (TORCH, "inductor", "tcw"):
        torch._dynamo.reset()
        compiled = torch.compile(function, backend=backend(engine), dynamic=False)
        sides[engine] = partial(called, compiled, tensors, case.backward)
        said({"side": engine})
        try:
            sides[engine]()
        except Exception as error:
            if engine == TORCH:
                del sides[TORCH]
                continue
            return {"failed": engine, "error": f"{type(error).__name__}: {error}"[:200]}
    if TORCH in sides:
        sides[TORCH] = partial(_in_turn, eager, sides[TORCH])
    said({"side": "any"})
    times = timing.interleaved(sides, seconds, clock)
    return without_eager({side: timing.undisturbed(found) for side, found in times.items()})


def without_eager(row: Row) -> Row:
    """The row with torch's own time alone, where `torch` was timed together with eager's call."""
    from benchmarks.backend import TORCH

    return row | {TORCH: max(0.0, row[TORCH] - row["eager"])} if TORCH in row else row


def _in_turn(*calls: Callable[[], Any]) -> None:
    for call in calls:
        call()
