"""Sweeps torch's own op database through the engine; what a verdict means is in `op_cases.py`.

    python -m tests.cpu.engine.op_database [--ops add,softmax] [--dtypes float32] [--all-samples]
        [--gradients] [--dynamo] [--dynamic]
        [--in-place] [--strided] [--seed 1] [--together 8] [--report FILE] [--part 0/2]
        [--device cuda]

Cases run in a child process that is forked again after a crash and after every few hundred cases:
a segmentation fault is the verdict of its case and ends nothing else.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import select
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import torch

from tests.cpu.engine.op_cases import (
    BAD,
    DTYPES,
    Case,
    Outcome,
    full_name,
    operations,
    run_together,
)

CASES_A_CHILD = 300
PATIENCE = 300
"""Seconds without a result after which a case counts as crashed."""

_M_PERTURB = -6
_PERTURBATION = 0xA5


def swept(cases: Sequence[Case], together: int = 1) -> Iterator[Outcome]:
    """The outcomes of all cases, each run in a child process, `together` in one graph. Those on a
    GPU run in this process: a child cannot use one that its parent has looked at."""
    if cases and cases[0].device != "cpu":
        for case in cases:
            yield from case.run()
        return
    first = 0
    while first < len(cases):
        done = first
        batch = cases[first : first + CASES_A_CHILD]
        for message in _in_a_child(batch, together):
            if isinstance(message, Outcome):
                yield message
            elif isinstance(message, str) and together > 1:
                yield from swept(cases[done : done + together])
                done += together
            elif isinstance(message, str):
                case = cases[done]
                yield Outcome(case.name, case.dtype, 0, "crash", message)
                done += 1
            else:
                done = first + message
        first = done


def _in_a_child(cases: Sequence[Case], together: int) -> Iterator[Outcome | int | str]:
    """Outcomes, with the number of finished cases after each, and the reason if it ends early."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _run_all(cases, writing, together)
    os.close(writing)
    done, rest, reason = 0, b"", ""
    while not reason:
        if not select.select([reading], [], [], PATIENCE)[0]:
            os.kill(child, signal.SIGKILL)
            reason = f"no answer for {PATIENCE} s"
            break
        data = os.read(reading, 1 << 16)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if isinstance(message, int):
                done = message
                yield done
            else:
                yield Outcome(**message)
    os.close(reading)
    status = os.waitpid(child, 0)[1]
    if done < len(cases):
        yield reason or f"the process ended: {_ended(status)}"


def _run_all(cases: Sequence[Case], writing: int, together: int) -> None:
    # Unwritten memory does not contain zeros: reading it gives a different result each time.
    ctypes.CDLL(None).mallopt(_M_PERTURB, _PERTURBATION)
    code = 1
    try:
        for first in range(0, len(cases), together):
            group = cases[first : first + together]
            for outcome in run_together(group) if together > 1 else group[0].run():
                os.write(writing, json.dumps(asdict(outcome)).encode() + b"\n")
            os.write(writing, b"%d\n" % min(first + together, len(cases)))
        code = 0
    finally:
        os._exit(code)


def _ended(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit {os.WEXITSTATUS(status)}"


def line_of(outcome: Outcome) -> str:
    """A line of a report: name, dtype, sample, verdict, fallbacks, detail; tabs between."""
    detail = " ".join(outcome.detail.split())
    sample = str(outcome.sample)
    parts = [outcome.name, outcome.dtype, sample, outcome.verdict, outcome.fallbacks, detail]
    return "\t".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", default="", help="names, with commas")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--all-samples", action="store_true")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--dynamo", action="store_true", help="through torch.compile")
    parser.add_argument("--dynamic", action="store_true", help="sizes are symbols")
    parser.add_argument("--in-place", action="store_true", help="the variants that write an input")
    parser.add_argument("--strided", action="store_true", help="inputs that are not contiguous")
    parser.add_argument("--seed", type=int, default=0, help="of the numbers in the samples")
    parser.add_argument("--together", type=int, default=1, help="operations in one graph")
    parser.add_argument("--part", default="0/1", help="`1/3`: the second third of the operations")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--report", default="", help="write every outcome to this file, tabs")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    os.environ.setdefault("TCW_STRICT", "1")
    names = set(filter(None, arguments.ops.split(",")))
    part, parts = map(int, arguments.part.split("/"))
    chosen = [op for op in operations() if not names or op.name in names or full_name(op) in names]
    asked = [
        Case(
            op,
            dtype,
            gradients=arguments.gradients,
            all_samples=arguments.all_samples,
            through_dynamo=arguments.dynamo,
            dynamic=arguments.dynamic,
            in_place=arguments.in_place,
            strided=arguments.strided,
            seed=arguments.seed,
            device=arguments.device,
        )
        for dtype in arguments.dtypes.split(",")
        for op in chosen[part::parts]
    ]
    counts: dict[str, int] = {}
    report = open(arguments.report, "w") if arguments.report else None  # noqa: SIM115
    for outcome in swept([case for case in asked if case.exists()], arguments.together):
        counts[outcome.verdict] = counts.get(outcome.verdict, 0) + 1
        if report:
            print(line_of(outcome), file=report, flush=True)
        if outcome.verdict in BAD:
            print(line_of(outcome)[:600], flush=True)
    print(counts)
    sys.exit(1 if any(counts.get(verdict) for verdict in BAD) else 0)


if __name__ == "__main__":
    main()
