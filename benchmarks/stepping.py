"""The time of one step, from the command to the place where the compile waits again.

    python benchmarks/stepping.py [model.py] [engine]

Every instruction of the model's forward (by default sample_models/gpt.py), through a worker and
both pipes, without a screen. A step takes the instruction's own time in Dynamo plus the tool's
share; `record to place` is the part from the step's record to the wait.
"""

from __future__ import annotations

import queue
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tcw.compiler.protocol.commands import Go  # noqa: E402
from tcw.compiler.trace.records import AnyRecord, Failure, Settings, Step, Waiting  # noqa: E402
from tcw.workbench.worker.client import Driver  # noqa: E402


def steps(settings: Settings) -> list[tuple[float, float]]:
    """Seconds of each step: (from command to place, from its record to place)."""
    came: queue.SimpleQueue[tuple[float, AnyRecord]] = queue.SimpleQueue()
    driver = Driver(settings, None, lambda one: came.put((time.perf_counter(), one)))
    found: list[tuple[float, float]] = []
    recorded = started = 0.0
    try:
        while True:
            now, record = came.get(timeout=300)
            if isinstance(record, Step):
                recorded = record.at
            elif isinstance(record, Failure):
                raise SystemExit(f"{record.type}: {record.message}")
            elif isinstance(record, Waiting):
                if record.kind == "end":
                    return found
                if record.kind == "step":
                    found.append((now - started, record.at - recorded))
                started = time.perf_counter()
                driver.send(Go(mode="instruction"))
    finally:
        driver.stop()
        driver.join()


def row(name: str, seconds: list[float]) -> str:
    ranked = sorted(seconds)
    p95 = ranked[int(len(ranked) * 0.95)]
    median = statistics.median(seconds)
    return f"{name:24}{median * 1e3:9.2f} ms{p95 * 1e3:9.2f} ms{max(seconds) * 1e3:9.2f} ms"


def main() -> None:
    arguments = sys.argv[1:]
    file = Path(arguments[0]) if arguments else ROOT / "sample_models" / "gpt.py"
    engine = arguments[1] if len(arguments) > 1 else "tcw"
    settings = Settings(file=str(file.resolve()), engine=engine, until="autograd")  # type: ignore[arg-type]
    found = steps(settings)
    whole = [one for one, _ in found]
    # the first step of a call includes torch's work before the first instruction
    whole = whole[1:]
    print(f"{file.name}: {len(found)} steps{'':11}median       p95       most")
    print(row("step", whole))
    print(row("  first 100", whole[:100]))
    print(row("  last 100", whole[-100:]))
    print(row("record to place", [one for _, one in found]))


if __name__ == "__main__":
    main()
