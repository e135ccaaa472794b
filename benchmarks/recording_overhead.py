"""The overhead of recording a cold stock compile, in CPU seconds (own and children's).

    python benchmarks/recording_overhead.py [--model sample_models/gpt.py] [--pairs 5] [--steps]

Each run is a separate process with an empty Inductor cache; the precompiled header stays warm, as
on a developer's machine. Plain and recorded runs alternate. The table has both medians and the
median of the differences within a pair. Targets: at most 5% for the default recording, 25% with
`--steps`.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.stages import cpu_seconds, in_child  # noqa: E402


def compile_once(model_file: str, record: str) -> dict[str, float]:
    """Compile the model in this process; CPU seconds of the first call, and the trace's size."""
    import torch

    namespace = runpy.run_path(model_file)
    model, inputs = namespace["model"], namespace["example_inputs"]
    inputs = inputs() if callable(inputs) else inputs
    inputs = inputs[0] if isinstance(inputs, list) else inputs
    with torch.no_grad():
        model(*inputs)
        torch.compile(lambda x: x + 1)(torch.ones(2))
    torch._dynamo.reset()
    compiled = torch.compile(model)
    trace = Path(tempfile.mkdtemp()) / "trace.tcw"
    if record == "plain":
        before = cpu_seconds()
        with torch.no_grad():
            compiled(*inputs)
        return {"seconds": cpu_seconds() - before, "bytes": 0}

    from tcw.compiler.control.recorder import Recorder
    from tcw.compiler.pipeline import recording
    from tcw.compiler.trace.records import Settings
    from tcw.compiler.trace.writer import TraceWriter, write_whole

    descriptor = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    settings = Settings(file=model_file, record="steps" if record == "steps" else "default")
    recorder = Recorder(TraceWriter(partial(write_whole, descriptor)), settings)
    recorder.call = 1
    with recording(recorder), torch.no_grad():
        before = cpu_seconds()
        compiled(*inputs)
        seconds = cpu_seconds() - before
    return {"seconds": seconds, "bytes": trace.stat().st_size, "records": recorder.writer.records}


def run_child(model: str, record: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as cache:
        environment = {"TORCHINDUCTOR_CACHE_DIR": cache}
        found: dict[str, float] = in_child(__file__, [record, "--model", model], environment)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=str(ROOT / "sample_models" / "gpt.py"))
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", action="store_true", help="record every instruction")
    parser.add_argument("--child", choices=["plain", "default", "steps"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(compile_once(arguments.model, arguments.child)))
        return
    kind = "steps" if arguments.steps else "default"
    run_child(arguments.model, "plain")
    plain, recorded, differences = [], [], []
    last: dict[str, float] = {}
    for number in range(arguments.pairs):
        order = ["plain", kind] if number % 2 == 0 else [kind, "plain"]
        found = {name: run_child(arguments.model, name) for name in order}
        last = found[kind]
        plain.append(found["plain"]["seconds"])
        recorded.append(last["seconds"])
        differences.append(last["seconds"] / found["plain"]["seconds"] - 1)
    spread = f"{min(differences):+.1%} to {max(differences):+.1%}"
    print(f"{Path(arguments.model).name}, cold compile, CPU seconds, {arguments.pairs} pairs")
    print(f"{'plain':>10} {'recorded':>10} {'difference':>12}   spread")
    print(
        f"{statistics.median(plain):10.2f} {statistics.median(recorded):10.2f} "
        f"{statistics.median(differences):+12.1%}   {spread}"
    )
    print(f"trace: {last['records']:.0f} records, {last['bytes'] / 1e6:.2f} MB ({kind})")


if __name__ == "__main__":
    main()
