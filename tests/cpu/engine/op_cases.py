"""One case of torch's op database (torch/testing/_internal): eager and the engine side by side.

Both get the same inputs and the same random state. The results are compared, and the inputs
afterwards. Verdicts:

- `equal`: `assert_close` with its defaults;
- `closer`: not equal to eager's, because eager is inexact. 16-bit floats: no further from float64
  than eager's or Inductor's. float32: no further than eager's, neither in the worst element nor on
  average;
- `wrong`, `error` (the engine's own), `crash` (of the process, or no result for minutes);
- `skipped`: eager refuses the sample, or AOTAutograd cannot trace it, so no engine runs it.
"""

from __future__ import annotations

import operator
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch._dynamo.utils import preserve_rng_state
from torch._guards import TracingContext, tracing
from torch._prims_common import check_significant_strides
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree

import tcw.compiler
from tcw.compiler.engine import backend as entry
from tcw.compiler.engine import compile as stage
from tcw.compiler.loops.graph import Call
from tcw.compiler.lowering.registry import Unsupported

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
"""Their results are undefined."""

TOGETHER = 8
"""The maximum number of samples of one operation per graph, if all are requested."""

UNKNOWN = "?"

BAD = ("wrong", "error", "crash")

Function = Callable[..., Any]


@dataclass
class Outcome:
    name: str
    dtype: str
    sample: int
    verdict: str
    detail: str = ""
    fallbacks: str = ""
    """`no lowering for X` for its graphs, joined by `; `; `whole graph: …`."""


@dataclass
class Case:
    """An operation and a dtype: the first sample, or all of them."""

    op: Any
    dtype: str
    gradients: bool = False
    all_samples: bool = False
    through_dynamo: bool = False
    dynamic: bool = False
    """Every size except 0 and 1 is a symbol."""
    in_place: bool = False
    """The operation's variant that writes into its input."""
    strided: bool = False
    """Inputs with gaps between their elements."""
    seed: int = 0
    """For the numbers in the samples."""
    device: str = "cpu"

    @property
    def name(self) -> str:
        return full_name(self.op)

    def exists(self) -> bool:
        dtype = DTYPES[self.dtype]
        if not self.op.supports_dtype(dtype, self.device):
            return False
        if self.in_place and self.op.inplace_variant is None:
            return False
        return not self.gradients or (self.op.supports_autograd and dtype.is_floating_point)

    def run(self) -> Iterator[Outcome]:
        torch.manual_seed(self.seed)
        try:
            samples = self.op.sample_inputs(
                self.device, DTYPES[self.dtype], requires_grad=self.gradients
            )
            if not self.all_samples:
                samples = islice(samples, 1)
            if self.strided:
                samples = (sample.noncontiguous() for sample in samples)
            numbered = enumerate(samples)
            while group := list(islice(numbered, TOGETHER)):
                yield from self._outcomes(group)
        except Exception as error:  # the database itself fails for some dtypes
            yield self._said(0, "skipped", f"no samples: {_words(error)}")

    def _outcomes(self, group: list[tuple[int, Any]]) -> Iterator[Outcome]:
        """Samples in one graph, which is faster; if the results differ from eager, each sample
        alone."""
        if len(group) > 1:
            function, tensors = together([self._function(sample) for _, sample in group])
            both = self._compared(0, function, tensors)
            if both.verdict == "equal":
                yield from (replace(both, sample=number) for number, _ in group)
                return
        for number, sample in group:
            yield self._compared(number, *self._function(sample))

    def _said(self, number: int, verdict: str, detail: str = "", fallbacks: str = "") -> Outcome:
        return Outcome(self.name, self.dtype, number, verdict, detail, fallbacks)

    def _function(self, sample: Any) -> tuple[Function, list[torch.Tensor]]:
        return function_of(self.op.inplace_variant if self.in_place else self.op.op, sample)

    def _compared(self, number: int, function: Function, tensors: list[torch.Tensor]) -> Outcome:
        if any(tensor.layout is not torch.strided for tensor in tensors):
            return self._said(number, "skipped", "sparse: AOTAutograd takes no sparse inputs")
        try:
            wanted = called(function, tensors, self.gradients)
        except Exception as error:
            return self._said(number, "skipped", f"eager: {_words(error)}")
        with noting() as notes:
            try:
                found = called(self._compiler(function), tensors, self.gradients)
            except Exception as error:
                mine = bool(notes.graphs) or _is_ours(error)
                return self._said(number, "error" if mine else "skipped", _words(error))
        verdict, detail = "equal", ""
        if self.op.name not in UNCOMPARABLE:
            verdict, detail = compare(function, tensors, self.gradients, wanted, found)
        return self._said(number, verdict, detail, "; ".join(dict.fromkeys(notes.reasons)))

    def _compiler(self, function: Function) -> Function:
        if not self.through_dynamo:
            return directly(function, entry.backend, dynamic=self.dynamic)
        torch._dynamo.reset()
        return torch.compile(function, backend=entry.backend, fullgraph=True, dynamic=self.dynamic)  # type: ignore[no-any-return]


def run_together(cases: Sequence[Case]) -> Iterator[Outcome]:
    """The first samples of several operations of one dtype in one graph, which is much faster.

    If any result differs from eager, each sample runs alone. Fallbacks are not attributed: UNKNOWN.
    """
    parts = []
    for case in cases:
        torch.manual_seed(case.seed)
        dtype = DTYPES[case.dtype]
        try:
            grad = case.gradients
            sample = next(iter(case.op.sample_inputs(case.device, dtype, requires_grad=grad)))
            parts.append(case._function(sample))
        except Exception:  # reported by the single case
            break
    if len(cases) > 1 and len(parts) == len(cases):
        both = cases[0]._compared(0, *together(parts))
        if both.verdict == "equal":
            for case in cases:
                yield Outcome(case.name, case.dtype, 0, "equal", "", UNKNOWN)
            return
    for case in cases:
        yield from case.run()


def operations() -> list[Any]:
    """The database, whose random operations use the current random state: normally it sets a seed
    inside each, which AOTAutograd's graph does not contain."""
    from torch.testing._internal import common_methods_invocations as database

    database.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    return list(database.op_db)


def full_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def function_of(operation: Function, sample: Any) -> tuple[Function, list[torch.Tensor]]:
    """The sample as a function of its tensors only, and these tensors."""
    flat, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, item in enumerate(flat) if isinstance(item, torch.Tensor)]

    def function(*tensors: torch.Tensor) -> Any:
        leaves = list(flat)
        for place, tensor in zip(places, tensors, strict=True):
            leaves[place] = tensor
        first, args, kwargs = pytree.tree_unflatten(leaves, spec)
        return operation(first, *args, **kwargs)

    return function, [flat[i] for i in places]


def together(
    parts: list[tuple[Function, list[torch.Tensor]]],
) -> tuple[Function, list[torch.Tensor]]:
    """One function that returns the results of all of them."""

    def function(*tensors: torch.Tensor) -> list[Any]:
        left = iter(tensors)
        return [part(*islice(left, len(its))) for part, its in parts]

    return function, [tensor for _, its in parts for tensor in its]


def directly(function: Function, backend: Function, *, dynamic: bool = False) -> Function:
    """A backend's result for a function that AOTAutograd traces without TorchDynamo.

    An operation is one line of Python: TorchDynamo would find nothing to do, yet take most of the
    time of such a compile.
    """

    def call(*tensors: Any) -> Any:
        specs: list[Any] = []

        class Traced(torch.nn.Module):
            graph = fx.Graph()
            """Passes over what Dynamo captured find nothing in it."""

            def forward(self, *arguments: Any) -> tuple[Any, ...]:
                leaves, spec = pytree.tree_flatten(function(*arguments))
                specs.append(spec)
                return tuple(leaves)

        mode = FakeTensorMode(shape_env=ShapeEnv())
        static = None if dynamic else True
        with preserve_rng_state(), tracing(TracingContext(mode)):
            inputs = [mode.from_tensor(tensor, static_shapes=static) for tensor in tensors]
            compiled = backend(Traced(), inputs)
        return pytree.tree_unflatten(list(compiled(*tensors)), specs[-1])

    return call


def called(function: Function, tensors: Sequence[torch.Tensor], gradients: bool) -> list[Any]:
    """The flattened outputs; the gradients of the inputs; the inputs afterwards."""
    inputs = [_copy(tensor) for tensor in tensors]
    torch.manual_seed(1)
    if not gradients:
        with torch.no_grad():
            return list(pytree.tree_leaves(function(*inputs))) + inputs
    outputs = list(pytree.tree_leaves(function(*inputs)))
    roots = [o for o in outputs if isinstance(o, torch.Tensor) and o.requires_grad]
    leaves = [t for t in inputs if t.requires_grad]
    found: list[Any] = []
    if roots and leaves:
        weights = [_weights(root).to(root.device) for root in roots]
        found = list(torch.autograd.grad(roots, leaves, weights, allow_unused=True))
    return [o.detach() if isinstance(o, torch.Tensor) else o for o in outputs] + found


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.layout is not torch.strided:
        return tensor
    # with its strides: `clone` closes the gaps
    count = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    flat = tensor.detach().as_strided((count if tensor.numel() else 0,), (1,)).clone()
    copy = flat.as_strided(tensor.shape, tensor.stride())
    return copy.requires_grad_(tensor.requires_grad)


def _weights(root: torch.Tensor) -> torch.Tensor:
    """Output gradients that do not cancel in a sum, as from a loss; the same numbers in every
    dtype."""
    numbers = torch.linspace(0.25, 1.75, max(root.numel(), 1)).to(torch.bfloat16)
    return numbers[: root.numel()].reshape(root.shape).to(root.dtype)


def compare(
    function: Function,
    tensors: Sequence[torch.Tensor],
    gradients: bool,
    wanted: list[Any],
    found: list[Any],
) -> tuple[str, str]:
    """The verdict, and what differs."""
    if len(wanted) != len(found):
        return "wrong", f"{len(found)} outputs instead of {len(wanted)}"
    different: list[tuple[int, str]] = []
    for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
        if not isinstance(other, torch.Tensor) or not isinstance(one, torch.Tensor):
            if type(one) is not type(other) or (one != other and one == one):
                return "wrong", f"output {place}: {one!r} instead of {other!r}"
            continue
        if other.layout is not torch.strided or other.is_quantized:
            continue
        ours, eager = (f"{t.dtype} {tuple(t.shape)}" for t in (one, other))
        if ours != eager:
            return "wrong", f"output {place}: {ours}, not {eager}"
        try:
            torch.testing.assert_close(one, other, equal_nan=True)
        except AssertionError as error:
            different.append((place, f"output {place}: {' '.join(str(error).split())[:300]}"))
    if not different:
        return "equal", ""
    dtypes = {t.dtype for t in tensors}
    if not dtypes & {torch.bfloat16, torch.float16, torch.float32}:
        return "wrong", different[0][1]
    return _against_float64(function, tensors, gradients, wanted, found, different)


def _against_float64(
    function: Function,
    tensors: Sequence[torch.Tensor],
    gradients: bool,
    wanted: list[Any],
    found: list[Any],
    different: list[tuple[int, str]],
) -> tuple[str, str]:
    wide = [t.detach().double() if t.is_floating_point() else t for t in tensors]
    for tensor, like in zip(wide, tensors, strict=True):
        tensor.requires_grad_(like.requires_grad)
    inductor: list[Any] | None = None
    try:
        exact = called(function, wide, gradients)
        for place, text in different:
            ours, eager = (_error(x[place], exact[place]) for x in (found, wanted))
            if found[place].dtype is torch.float32:
                means = [float(_errors(x[place], exact[place]).mean()) for x in (found, wanted)]
                if ours > eager or means[0] > means[1]:
                    return "wrong", f"{text} (error {ours:.3g}, eager's {eager:.3g})"
            if ours <= eager:
                continue
            if inductor is None:
                torch._dynamo.reset()
                inductor = called(torch.compile(function), tensors, gradients)
            theirs = _error(inductor[place], exact[place])
            if ours > theirs:
                errors = f"error {ours:.3g}, eager's {eager:.3g}, Inductor's {theirs:.3g}"
                return "wrong", f"{text} ({errors})"
    except Exception as error:
        return "wrong", f"{different[0][1]} (float64: {_words(error)})"
    return "closer", different[0][1]


def _error(found: torch.Tensor, exact: torch.Tensor) -> float:
    """The largest absolute error; infinite if a number is missing or superfluous."""
    return float(_errors(found, exact).max()) if found.numel() else 0.0


def _errors(found: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    wide = torch.complex128 if exact.is_complex() else torch.float64
    ours, theirs = found.to(wide), exact.to(wide)
    same = (ours == theirs) | (ours.isnan() & theirs.isnan())
    errors = torch.where(same, 0.0, (ours - theirs).abs())
    return torch.where(errors.isnan(), torch.inf, errors)


@dataclass
class Notes:
    graphs: int
    reasons: list[str]


@contextmanager
def noting() -> Iterator[Notes]:
    """The number of graphs that reach the engine inside, and the reasons why operations are left to
    ATen."""
    notes = Notes(0, [])
    lower, report_failure, compile_graph = stage.lower, stage.report_failure, entry.compile_graph

    def lowered(*args: Any, **kwargs: Any) -> Any:
        graph = lower(*args, **kwargs)
        notes.reasons += [n.reason for n in graph.nodes if isinstance(n, Call) and n.reason]
        return graph

    def compiled(*args: Any, **kwargs: Any) -> Any:
        notes.graphs += 1
        return checked(args[0], compile_graph(*args, **kwargs))

    def given_up(error: Exception, graph: str) -> None:
        if not isinstance(error, Unsupported):
            raise error
        notes.reasons.append(f"whole graph: {error}")

    stage.lower, stage.report_failure, entry.compile_graph = lowered, given_up, compiled
    try:
        yield notes
    finally:
        stage.lower, stage.report_failure, entry.compile_graph = (
            lower,
            report_failure,
            compile_graph,
        )


def checked(module: Any, compiled: Function) -> Function:
    """Raises AssertionError if a graph's results have other strides than promised."""
    promised = next(iter(reversed(module.graph.nodes))).args[0]
    metas = [
        node.meta.get("val") if hasattr(node, "meta") and not _told_wrong(node) else None
        for node in promised
    ]

    def call(arguments: list[Any]) -> Any:
        answers = compiled(arguments)
        for place, (answer, meta) in enumerate(zip(answers, metas, strict=True)):
            if not isinstance(meta, torch.Tensor) or meta.layout is not torch.strided:
                continue
            if any(isinstance(size, torch.SymInt) for size in (*meta.shape, *meta.stride())):
                continue
            same, _ = check_significant_strides(answer, meta, only_cuda=False)
            if not same or answer.dtype != meta.dtype or answer.shape != meta.shape:
                found, wanted = ((t.dtype, t.shape, t.stride()) for t in (answer, meta))
                raise AssertionError(f"the graph's result {place} is {found}, not {wanted}")
        return answers

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


FAKED_DIFFERENTLY = frozenset(
    {
        torch.ops.aten._embedding_bag.default,  # bag indices of 16-bit sums
        torch.ops.aten.max_unpool2d.default,  # strides of channels-last images
        torch.ops.aten.unique_consecutive.default,  # indices that were not requested
    }
)
"""Calls whose results have other shapes or strides than torch's own fake tensors, in eager too."""


def _told_wrong(node: Any) -> bool:
    source = node.args[0] if node.target is operator.getitem else node
    return source.target in FAKED_DIFFERENTLY


def _is_ours(error: BaseException) -> bool:
    folder = str(Path(tcw.compiler.__file__).parent)
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and any(frame.filename.startswith(folder) for frame in frames[-3:])


def _words(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    folder = str(Path(tcw.compiler.__file__).parent.parent)
    ours = [f for f in frames if f.filename.startswith(folder)]
    last = (ours or frames)[-1] if frames else None
    place = f" at {Path(last.filename).name}:{last.lineno}" if last else ""
    return f"{type(error).__name__}{place}: {' '.join(str(error).split())[:300]}"
