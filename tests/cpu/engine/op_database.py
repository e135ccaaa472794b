"""Sweeps torch's own op database (torch/testing/_internal) through an engine.

    python -m tests.cpu.engine.op_database [--ops add,softmax] [--dtypes float32] [--all-samples]
                                           [--gradients] [--report FILE] [--part 0/2]

Each operation runs eagerly and under `torch.compile(backend="tcw", fullgraph=True)`, same inputs,
same random state. Verdicts: `equal` (assert_close with its defaults); `closer` (16-bit floats: not
equal to eager, and no further from float64 than eager is); `wrong`; `error` (the engine's own);
`skipped` (eager refuses the sample, or Dynamo cannot capture it: no engine would be asked).
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "int64": torch.int64,
    "bool": torch.bool,
}

UNCOMPARABLE = {
    "empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted",
}  # fmt: skip
"""What they answer is not defined."""


@dataclass
class Outcome:
    name: str
    dtype: str
    sample: int
    verdict: str
    detail: str = ""
    fallbacks: tuple[str, ...] = ()
    """`no lowering for X`, of the graphs that it took."""


@dataclass
class Sweep:
    backend: Callable[..., Any]
    gradients: bool = False
    all_samples: bool = False
    outcomes: list[Outcome] = field(default_factory=list)

    def run(self, op: Any, dtype_name: str) -> Iterator[Outcome]:
        """Every outcome of one operation and dtype."""
        dtype = DTYPES[dtype_name]
        if not op.supports_dtype(dtype, "cpu"):
            return
        if self.gradients and not (op.supports_autograd and dtype.is_floating_point):
            return
        torch.manual_seed(0)
        try:
            samples = op.sample_inputs("cpu", dtype, requires_grad=self.gradients)
            for number, sample in enumerate(samples):
                yield self._outcome(op, dtype_name, number, sample)
                if not self.all_samples:
                    return
        except Exception as error:  # the database itself fails for some dtypes
            yield Outcome(full_name(op), dtype_name, 0, "skipped", f"no samples: {error!r}"[:200])

    def _outcome(self, op: Any, dtype: str, number: int, sample: Any) -> Outcome:
        name = full_name(op)
        flat, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        places = [i for i, item in enumerate(flat) if isinstance(item, torch.Tensor)]

        def function(*tensors: torch.Tensor) -> Any:
            leaves = list(flat)
            for place, tensor in zip(places, tensors, strict=True):
                leaves[place] = tensor
            first, args, kwargs = pytree.tree_unflatten(leaves, spec)
            return op.op(first, *args, **kwargs)

        tensors = [flat[i] for i in places]
        try:
            wanted = self._call(function, tensors)
        except Exception as error:
            return Outcome(name, dtype, number, "skipped", f"eager: {error!r}"[:200])
        torch._dynamo.reset()
        fallbacks: list[str] = []
        try:
            with noting(fallbacks):
                compiled = torch.compile(
                    function, backend=self.backend, fullgraph=True, dynamic=False
                )
                found = self._call(compiled, tensors)
        except Exception as error:
            text = "".join(traceback.format_exception(error))
            mine = "/compiler/" in text
            verdict = "error" if mine else "skipped"
            return Outcome(name, dtype, number, verdict, f"{type(error).__name__}: {error}"[:1500])
        verdict, detail = "equal", ""
        if op.name not in UNCOMPARABLE:
            verdict, detail = self._compare(function, tensors, wanted, found)
        return Outcome(name, dtype, number, verdict, detail, tuple(dict.fromkeys(fallbacks)))

    def _call(self, function: Callable[..., Any], tensors: list[torch.Tensor]) -> list[Any]:
        """The outputs, flattened; with gradients, those of their sum as well."""
        torch.manual_seed(1)
        inputs = [
            t.detach().clone(memory_format=torch.preserve_format).requires_grad_(t.requires_grad)
            if t.layout is torch.strided
            else t
            for t in tensors
        ]
        if not self.gradients:
            with torch.no_grad():
                return list(pytree.tree_leaves(function(*inputs)))
        outputs = list(pytree.tree_leaves(function(*inputs)))
        differentiable = [o for o in outputs if isinstance(o, torch.Tensor) and o.requires_grad]
        leaves = [t for t in inputs if t.requires_grad]
        if not differentiable or not leaves:
            return outputs
        total = sum(
            (o if not o.is_complex() else torch.view_as_real(o)).float().sum()
            for o in differentiable
        )
        return outputs + list(torch.autograd.grad(total, leaves, allow_unused=True))

    def _compare(
        self,
        function: Callable[..., Any],
        tensors: list[torch.Tensor],
        wanted: list[Any],
        found: list[Any],
    ) -> tuple[str, str]:
        if len(wanted) != len(found):
            return "wrong", f"{len(found)} outputs instead of {len(wanted)}"
        different = []
        for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
            if not isinstance(other, torch.Tensor):
                if one != other and not (one != one and other != other):
                    return "wrong", f"output {place}: {one!r} instead of {other!r}"
                continue
            if other.layout is not torch.strided or other.is_quantized:
                continue
            if one.dtype != other.dtype or one.shape != other.shape:
                return (
                    "wrong",
                    f"output {place}: {one.dtype} {one.shape}, not {other.dtype} {other.shape}",
                )
            try:
                torch.testing.assert_close(one, other, equal_nan=True)
            except AssertionError as error:
                different.append((place, str(error).replace("\n", " ")[:300]))
        if not different:
            return "equal", ""
        if any(t.dtype in (torch.bfloat16, torch.float16) for t in tensors):
            try:
                reference = self._call(
                    function, [t.double() if t.is_floating_point() else t for t in tensors]
                )
            except Exception:
                return "wrong", different[0][1]
            for place, text in different:
                exact = reference[place]
                if exact.shape != found[place].shape:
                    return "wrong", text
                errors = [
                    torch.nan_to_num((x[place].double() - exact.double()).abs()).max()
                    for x in (found, wanted)
                ]
                if errors[0] > errors[1]:
                    return "wrong", f"{text} (error {errors[0]:.3g}, eager's {errors[1]:.3g})"
            return "closer", different[0][1]
        return "wrong", different[0][1]


class noting:
    """Collects why operations of the graphs compiled inside were left to ATen."""

    def __init__(self, into: list[str]) -> None:
        self.into = into

    def __enter__(self) -> None:
        from compiler.engine import compile as stage
        from compiler.loops.graph import Call

        self.before = stage.lower

        def lower(*args: Any, **kwargs: Any) -> Any:
            graph = self.before(*args, **kwargs)
            self.into += [n.reason for n in graph.nodes if isinstance(n, Call) and n.reason]
            return graph

        stage.lower = lower

    def __exit__(self, *error: object) -> None:
        from compiler.engine import compile as stage

        stage.lower = self.before


def full_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", default="", help="names, with commas")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--all-samples", action="store_true")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--part", default="0/1", help="`1/3`: the second third of the operations")
    parser.add_argument("--report", default="", help="write every outcome to this file, tabs")
    arguments = parser.parse_args()
    os.environ.setdefault("TCW_STRICT", "1")
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

    from compiler.engine.backend import backend

    torch.set_num_threads(1)
    sweep = Sweep(backend, arguments.gradients, arguments.all_samples)
    names = set(filter(None, arguments.ops.split(",")))
    part, parts = map(int, arguments.part.split("/"))
    chosen = [op for op in op_db if not names or op.name in names or full_name(op) in names]
    counts: dict[str, int] = {}
    report = open(arguments.report, "w") if arguments.report else None  # noqa: SIM115
    for op in chosen[part::parts]:
        for dtype in arguments.dtypes.split(","):
            if report:
                print(f"{full_name(op)}\t{dtype}\t-\tstarted", file=report, flush=True)
            for outcome in sweep.run(op, dtype):
                counts[outcome.verdict] = counts.get(outcome.verdict, 0) + 1
                detail = " ".join(outcome.detail.split())
                line = [outcome.name, outcome.dtype, str(outcome.sample), outcome.verdict]
                line += ["; ".join(outcome.fallbacks), detail]
                if report:
                    print("\t".join(line), file=report, flush=True)
                if outcome.verdict in ("wrong", "error"):
                    print("\t".join(line)[:600], flush=True)
    print(counts)
    sys.exit(1 if counts.get("wrong") or counts.get("error") else 0)


if __name__ == "__main__":
    main()
