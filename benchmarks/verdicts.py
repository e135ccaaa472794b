"""What the judge of whole calls says: of right results, and of faults that are planted.

    python benchmarks/verdicts.py [--count 300] [--minutes 20] [--seed 0] [--engines tcw,inductor]
                                  [--only TEXT] [--plants 2] [--results FILE] [--print]

Samples: torch's op database and fused patterns (`sweep_cases.py`), models of `transformers` from
small configs, and random programs (tests/cpu/engine/random_programs.py), without and with a
backward. Each is compiled by each engine and judged against eager, as `tcw explain` does
(docs/notes/precision.md); "wrong" is a false alarm, unless the engine has a bug. Then `--plants`
faults of each kind (`planted_graphs.py`: a wrong constant, a term that is dropped, one wrong
element, a wrong reduction bound, swapped indices) are planted, and judged too. Only those count
that change a result by more than a thousandth of its size (16-bit: a quarter).

Rows are lines of JSON in a file that git ignores, appended as they come: a sweep that was
interrupted goes on where it ended. A failed fault or a false alarm is listed at the end.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.backend import backend  # noqa: E402
from benchmarks.sweep_workers import Row, in_workers, serve  # noqa: E402

RESULTS = ROOT / "benchmarks" / "verdicts.jsonl"
CHILD = "--child"
MATTERS = {"float32": 1e-3, "float64": 1e-3, "bfloat16": 0.25, "float16": 0.25}
"""The share of a result's size that a fault has to change, to count."""
PROGRAMS = 400


@dataclass(frozen=True)
class Sample:
    """A model or function, with its inputs."""

    key: str
    make: Callable[[], tuple[Any, Any, Any]]
    """Returns the model, its `InputSet`, and the grad mode."""


def samples() -> Iterator[Sample]:
    """All of them, by kind."""
    from benchmarks.sweep_cases import SweepCase, cases
    from tests.cpu.transformer_models import RECIPES

    for name, recipe in RECIPES.items():
        for grad in ("no-grad", "train"):
            yield Sample(f"{name} {grad}", partial(_model, recipe, grad))
    for number in range(PROGRAMS):
        grad = "train" if number % 2 else "no-grad"
        yield Sample(f"program{number} {grad}", partial(_program, number, grad))
    for case in cases():
        small = isinstance(case, SweepCase) and case.size != "large"
        if small and case.dtype in MATTERS:
            yield Sample(case.key, partial(_operation, case))


def _model(recipe: Callable[[], Any], grad: str) -> tuple[Any, Any, Any]:
    import torch

    from tcw.compiler.measure.calls.inputs import InputSet

    torch.manual_seed(0)
    made = recipe()
    made.model.eval()
    return made.model, InputSet((), made.inputs(2)), grad


def _operation(case: Any) -> tuple[Any, Any, Any]:
    from tcw.compiler.measure.calls.inputs import InputSet

    function, tensors = case.make()
    return function, InputSet(tuple(tensors)), "train" if case.backward else "no-grad"


def _program(number: int, grad: str) -> tuple[Any, Any, Any]:
    import torch

    from tcw.compiler.measure.calls.inputs import InputSet
    from tests.cpu.engine import random_programs

    chance = random.Random(number)
    kinds = ["unary"] * 4 + ["binary"] * 4 + ["reduce"] * 3 + ["view"] * 4
    kinds += ["join", "mutate", "gather"]
    tables = random_programs.UNARY, random_programs.BINARY, random_programs.REDUCE
    names = sorted({name for table in tables for name in table})
    steps = [
        random_programs.Step(
            chance.choice(kinds), chance.choice(names), *(chance.randrange(31) for _ in range(4))
        )
        for _ in range(chance.randrange(4, 14))
    ]
    shape = [chance.choice((2, 3, 8, 17, 33)) for _ in range(chance.randrange(2, 4))]
    generator = torch.Generator().manual_seed(number)
    given = tuple(torch.randn(shape, generator=generator) for _ in range(3))
    if grad == "train":
        given = tuple(one.requires_grad_() for one in given)

    def model(*inputs: torch.Tensor) -> Any:
        return random_programs.run(steps, *(one.clone() for one in inputs))

    return model, InputSet(given), grad


def judged(sample: Sample, compiled: Callable[[Any], Any]) -> tuple[Any, Any, Any]:
    """The verdict on a sample that `compiled` compiles, and the results of both sides."""
    import torch

    from tcw.compiler.control.recorder import Recorder
    from tcw.compiler.measure.calls.leaves import leaves
    from tcw.compiler.measure.calls.runs import prepare
    from tcw.compiler.measure.host import Host
    from tcw.compiler.measure.precision.reference import Reference
    from tcw.compiler.trace.records import Settings
    from tcw.compiler.trace.writer import TraceWriter

    model, inputs, grad = sample.make()
    torch._dynamo.reset()
    torch._inductor.config.fallback_random = True
    torch.manual_seed(0)
    host = Host(Recorder(TraceWriter(), Settings(file="", grad=grad)), nullcontext)
    reference = Reference(model, host, "tcw")
    reference.remember()
    run = prepare(compiled(model), inputs, grad)
    outputs = run()
    reference.compare(1, inputs, run, outputs)
    result = run.result(outputs)
    return reference.verdict(), [*leaves(result.outputs), *result.gradients], reference


def measured(sample: Sample, said: Callable[[Row], None], engines: list[str], plants: int) -> Row:
    """The row of a sample: a verdict for each engine, and for each planted fault."""
    import torch

    from benchmarks.planted_graphs import FAULTS, Planted

    try:
        plain = partial(torch.compile, backend="aot_eager")
        right = judged(sample, plain)[1]
    except Exception as error:
        return {"skipped": f"{type(error).__name__}: {error}"[:200]}
    row: Row = {}
    for engine in engines:
        said({"side": engine})
        began = time.monotonic()
        try:
            verdict = judged(sample, partial(torch.compile, backend=backend(engine)))[0]
        except Exception as error:
            row[engine] = f"failed: {type(error).__name__}: {error}"[:200]
            continue
        row[engine] = words(verdict)
        row[f"{engine} seconds"] = time.monotonic() - began
    for fault in FAULTS:
        for number in range(plants):
            said({"side": fault})
            seed = zlib.crc32(f"{sample.key} {fault} {number}".encode())
            planted = Planted(fault, seed)
            try:
                verdict, wrong, _ = judged(sample, partial(torch.compile, backend=planted))
            except Exception:  # the fault is no program that runs
                continue
            if planted.planted and matters(wrong, right):
                row[f"{fault} {number}"] = words(verdict)
    return row


def words(verdict: Any) -> str:
    """`equal`, `within`, `unknown: why`, or `wrong: where`."""
    if verdict.within is None:
        return f"unknown: {verdict.note}"
    if not verdict.within:
        worst = verdict.worst[0] if verdict.worst else None
        return f"wrong: {worst.path} {worst.note}, {verdict.max_abs}" if worst else "wrong"
    close = verdict.rounding is None and verdict.compiled_off is None
    return "equal" if verdict.equal else "close" if close else "within"


def matters(wrong: Any, right: Any) -> bool:
    """Whether a fault changes a result by much."""
    import torch

    for (_, one), (_, other) in zip(wrong, right, strict=False):
        if not isinstance(one, torch.Tensor) or not one.is_floating_point():
            continue
        if one.shape != other.shape:
            return True
        a, b = one.detach().double(), other.detach().double()
        both = a.isfinite() & b.isfinite()
        if not bool(both.any()):
            continue
        limit = MATTERS[str(one.dtype).removeprefix("torch.")]
        apart = float((a - b)[both].abs().max())
        if apart > max(limit * float(b[both].abs().max()), 1e-4):
            return True
    return False


def summary(rows: dict[str, Row], engines: list[str]) -> list[str]:
    """What the sweep is judged by."""
    found = []
    for engine in engines:
        kinds = Counter(row[engine].partition(":")[0] for row in rows.values() if engine in row)
        parts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        found.append(f"{engine}: {sum(kinds.values())} samples: {parts}")
    faults = [
        (key, name, verdict)
        for key, row in rows.items()
        for name, verdict in row.items()
        if name[-1:].isdigit()
    ]
    kinds = Counter((name.split()[0], verdict.partition(":")[0]) for _, name, verdict in faults)
    for fault in sorted({fault for fault, _ in kinds}):
        parts = ", ".join(f"{count} {kind}" for (f, kind), count in kinds.items() if f == fault)
        found.append(f"planted {fault}: {parts}")
    for key, row in rows.items():
        for engine in engines:
            if row.get(engine, "").startswith(("wrong", "unknown", "failed")):
                found.append(f"  {key}, {engine}: {row[engine]}")
        if "crashed" in row:
            found.append(f"  {key}: crashed, {row.get('side')}")
    for key, name, verdict in faults:
        if not verdict.startswith("wrong"):
            found.append(f"  {key}, planted {name}: {verdict}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300, help="samples")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0, help="of the random choice of samples")
    parser.add_argument("--engines", default="tcw,inductor", help="comma-separated")
    parser.add_argument("--only", default="", help="keys that contain this")
    parser.add_argument("--plants", type=int, default=2, help="faults of each kind in a sample")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--print", action="store_true", help="run nothing")
    parser.add_argument(CHILD, action="store_true", dest="child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    engines = [engine for engine in given.engines.split(",") if engine]
    chosen = {sample.key: sample for sample in samples() if given.only in sample.key}
    if given.child:
        serve(chosen, 1, partial(measured, engines=engines, plants=given.plants))
        return
    rows: dict[str, Row] = {}
    if given.results.exists():
        for line in given.results.read_text().splitlines():
            row = json.loads(line)
            rows[row.pop("sample")] = row
    if not given.print:
        keys = sorted(chosen, key=lambda key: zlib.crc32(f"{given.seed} {key}".encode()))
        with given.results.open("a") as stream:

            def found(key: str, row: Row) -> bool:
                rows[key] = row
                print(json.dumps({"sample": key, **row}), file=stream, flush=True)
                return sum("skipped" not in row for row in rows.values()) < given.count

            in_workers(
                [key for key in keys if key not in rows],
                [sys.executable, *sys.argv, CHILD],
                jobs=1,
                threads=1,
                until=time.monotonic() + 60 * given.minutes,
                found=found,
            )
    print("\n".join(summary({key: row for key, row in rows.items() if key in chosen}, engines)))


if __name__ == "__main__":
    main()
