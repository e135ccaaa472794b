"""The time of a step of `tcw step`, from the key to the last cell that it paints.

    python benchmarks/key_to_paint.py [model.py] [engine] [columns]x[lines]

Every instruction of the model's forward (by default sample_models/gpt.py), with the real worker and
the real screen. Only the terminal is missing: composing its output is timed instead. `CPU` is what
both processes spend on a step, which does not depend on the machine's load.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from textual import events  # noqa: E402
from textual._compositor import CompositorUpdate  # noqa: E402
from textual.screen import Screen  # noqa: E402

from tcw.compiler.trace.records import Settings, Waiting  # noqa: E402
from tcw.workbench.tui.app import Workbench  # noqa: E402
from tcw.workbench.tui.bench import Bench  # noqa: E402
from tcw.workbench.tui.feed import LiveFeed  # noqa: E402
from tcw.workbench.worker.client import Driver  # noqa: E402
from tcw.workbench.worker.guardian import cpu_seconds  # noqa: E402

QUIET = 0.03
"""Seconds without a write after which a step is painted."""


@dataclass
class Step:
    """Times of one step, in seconds."""

    paint: float
    """From the key to the last write."""
    front: float
    """CPU time of the process with the screen."""
    worker: float
    """CPU time of the compiling process."""


class Clock:
    """Records when the screen last painted."""

    def __init__(self) -> None:
        self.written = 0.0
        display = Workbench._display

        def timed(app: Workbench, screen: Screen[object], renderable: object) -> None:
            display(app, screen, renderable)  # type: ignore[arg-type]
            if isinstance(renderable, CompositorUpdate):  # not written without a terminal
                renderable.render_segments(app.console).encode()
            self.written = time.perf_counter()

        Workbench._display = timed  # type: ignore[assignment, method-assign]

    async def settled(self, since: float) -> float:
        """Wait until writes have stopped; returns the time of the last write."""
        while (
            self.written < since and time.perf_counter() - since < 1
        ) or time.perf_counter() - self.written < QUIET:
            await asyncio.sleep(0.002)
        return self.written


async def steps(settings: Settings, size: tuple[int, int]) -> list[Step]:
    clock, found = Clock(), []
    app = Workbench(LiveFeed(Driver, settings, None), "dark")
    async with app.run_test(size=size):
        while not isinstance(app.screen, Bench):
            await asyncio.sleep(0.01)
        bench = app.screen

        async def waiting(after: Waiting | None) -> Waiting:
            while True:
                now = bench.recording.last(Waiting)
                if now is not None and now is not after and bench.view.waiting is now:
                    return now
                await asyncio.sleep(0.001)

        place = await waiting(None)
        await clock.settled(0.0)
        start = bench.recording.start
        assert start is not None
        while place.kind != "end":
            front, worker = time.process_time(), cpu_seconds(start.pid)
            began = time.perf_counter()
            bench.post_message(events.Key("s", "s"))
            place = await waiting(place)
            painted = await clock.settled(began)
            spent = cpu_seconds(start.pid) - worker
            if place.kind == "step":
                found.append(Step(painted - began, time.process_time() - front, spent))
        await app.action_quit()
    return found


def row(name: str, seconds: list[float]) -> str:
    ranked = sorted(seconds)
    p95 = ranked[int(len(ranked) * 0.95)]
    middle, mean = statistics.median(seconds), statistics.fmean(seconds)
    return f"{name:24}" + "".join(f"{one * 1e3:9.1f} ms" for one in (middle, p95, mean, ranked[-1]))


def main() -> None:
    arguments = sys.argv[1:]
    file = Path(arguments[0]) if arguments else ROOT / "sample_models" / "gpt.py"
    engine = arguments[1] if len(arguments) > 1 else "tcw"
    width, _, height = (arguments[2] if len(arguments) > 2 else "150x45").partition("x")
    settings = Settings(file=str(file.resolve()), engine=engine, until="autograd")  # type: ignore[arg-type]
    found = asyncio.run(steps(settings, (int(width), int(height))))
    # the first step of a call includes torch's work before the first instruction
    found = found[1:]
    print(f"{file.name}: {len(found)} steps{'':11}median       p95        mean        most")
    for name in ("paint", "front", "worker"):
        seconds = [getattr(one, name) for one in found]
        words = {"paint": "key to paint", "front": "CPU of the screen", "worker": "CPU of torch"}
        print(row(words[name], seconds))
        print(row("  first 100", seconds[:100]))
        print(row("  last 100", seconds[-100:]))


if __name__ == "__main__":
    main()
