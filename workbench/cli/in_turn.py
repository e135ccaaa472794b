"""Whole calls of two sides timed in turn, each in a process of its own.

Both processes stay alive, and one times some calls while the other waits, so that a drift of the
machine affects both alike. A turn counts as its median; differences and noise are those of all
comparisons (`tcw.compiler.measure.rounds.noise`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median

from msgspec import structs

from tcw.compiler.measure.rounds.noise import difference, timed
from tcw.compiler.trace.records import Settings, WhatIf
from tcw.workbench.cli.trials import Gone, Start, TrialWorker, started_by
from tcw.workbench.worker.trace_file import OnRecord

TURNS = 20
LEAST = 9
"""Turns that are made even if they take longer than `SECONDS`."""
SECONDS = 10.0
PATIENCE = 120.0
"""After these seconds `FEWEST` turns suffice."""
FEWEST = 3
ROUNDS = 3
"""Calls with each input set in a turn, after two to warm up."""


def in_turn(
    sides: Sequence[tuple[Settings, str]],
    see: OnRecord = lambda _: None,
    start: Callable[[str], Start] = started_by,
) -> WhatIf:
    """Time both sides: settings, and the interpreter ("" for this one). The result has a reason
    where there are no times. `see` receives all records, for progress."""
    benches = [_bench(settings, see, start(python)) for settings, python in sides]
    times: tuple[list[float], list[float]] = ([], [])
    try:
        for bench in benches:  # compiles
            call_times = bench.turn(1)
            if call_times.reason:
                return _unknown(call_times.reason)
        began = time.monotonic()
        for turn in range(TURNS):
            spent = time.monotonic() - began
            if (turn >= LEAST and spent > SECONDS) or (turn >= FEWEST and spent > PATIENCE):
                break
            order = (0, 1) if turn % 2 else (1, 0)
            for side in order:
                call_times = benches[side].turn(ROUNDS)
                if not call_times.seconds:
                    return _unknown(call_times.reason)
                times[side].append(median(call_times.seconds))
    except Gone as gone:
        return _unknown(str(gone))
    finally:
        for bench in benches:
            bench.close()
    change, noise = difference(*times)
    return WhatIf(
        base=0,
        run=0,
        scope="call",
        before=timed(times[0]),
        after=timed(times[1]),
        difference=change,
        noise=noise,
        pairs=len(times[0]),
    )


def _unknown(reason: str) -> WhatIf:
    return WhatIf(base=0, run=0, scope="call", reason=reason)


def _bench(settings: Settings, see: OnRecord, start: Start) -> TrialWorker:
    base = structs.replace(settings, profile=False, verify=False, until="run", memory=False)
    return TrialWorker(base, base, see, start)
