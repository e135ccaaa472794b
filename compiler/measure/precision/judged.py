"""Right or wrong: the results of a whole call (docs/notes/precision.md).

`judged` is the one place that decides for `explain`, what-if and everything else that compares a
compiled call with an eager one: outputs, gradients, inputs and buffers after the call.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from tcw.compiler.measure.precision.judge import LEAST_UNITS, accepted, is_float

Leaves = list[tuple[str, Any]]
"""(path, value), as listed by `tcw.compiler.measure.calls.leaves`."""

RUNS = 16
"""Eager runs with perturbed rounding, at most: they end as soon as they explain all differences."""
LEAST_RUNS = 6
"""That many are made however long they take."""
SECONDS = 20.0
FACTOR = 2.0
"""How many times further from eager than any of those runs a result may be."""
CHAOTIC = 1 / 8
"""A change of an element by more, relative to the size of the largest result of its call, ..."""
MOST = 1 / 4
"""... of more than this share of the elements that are that large, is one of the whole result: if
rounding causes it, nothing is known."""
OVERFLOWED = 16.0
"""Units by which a result may be off float64 where eager's is not finite, but float64's is."""
_SAMPLE = 1 << 16


class Context(Protocol):
    """The call that is judged, once more."""

    def perturbed(self, seed: int) -> Mapping[str, Any]:
        """Eager's results by path, from the same start, with each rounding perturbed
        (`tcw.compiler.measure.precision.perturbed.Perturbed`)."""
        ...

    def exact(self) -> Mapping[str, Any]:
        """The results in float64; empty if that is impossible."""
        ...


@dataclass(frozen=True, slots=True)
class CallVerdict:
    """On the results of one call."""

    within: bool | None
    """Whether rounding explains all differences; None if rounding decides the results."""
    wrong: tuple[str, ...] = ()
    """The results that it does not explain, the worst first."""
    rounding: float | None = None
    """The most that perturbed rounding changes those results, or else the ones that
    `assert_close` rejects; None if eager was not run again."""
    compiled_off: float | None = None
    """max |compiled - float64| of the same results; None without float64."""
    eager_off: float | None = None
    undecided: str = ""
    """Why nothing is known."""


def judged(compiled: Leaves, eager: Leaves, context: Context) -> CallVerdict:
    """Whether a compiled call's results are right, given eager's by the same paths.

    What `assert_close` accepts costs nothing; only for the rest is `context` asked. A result that
    is missing on one side, or of another type, is wrong.
    """
    theirs, ours = dict(eager), dict(compiled)
    odd = [path for path in {**theirs, **ours} if path not in theirs or path not in ours]
    differences: list[_Difference] = []
    for path, value in compiled:
        if path not in theirs or accepted(value, theirs[path]):
            continue
        one, other = _tensor(value), _tensor(theirs[path])
        if one is None or other is None or (one.dtype, one.device) != (other.dtype, other.device):
            odd.append(path)
        else:
            differences.append(_Difference(path, one, other))
    if odd:
        return CallVerdict(False, tuple(odd))
    if not differences:
        return CallVerdict(True)
    exact, scales = context.exact(), _scales(eager)
    for difference in differences:
        difference.use(_tensor(exact.get(difference.path)), scales[_kind(difference.path)])
    _perturb(differences, context)
    wrong = [difference for difference in differences if difference.left]
    wrong.sort(key=lambda difference: -difference.excess())
    unknown = next((found.undecided for found in differences if found.undecided), "")
    return CallVerdict(
        False if wrong else None if unknown else True,
        tuple(difference.path for difference in wrong),
        rounding=max(
            (found.rounding for found in wrong or differences if found.rounding is not None),
            default=None,
        ),
        compiled_off=max((d.off[0] for d in differences if d.off is not None), default=None),
        eager_off=max((d.off[1] for d in differences if d.off is not None), default=None),
        undecided="" if wrong else unknown,
    )


def _perturb(differences: list[_Difference], context: Context) -> None:
    """Run eager with perturbed rounding until that explains all of them, or it will not."""
    began = time.perf_counter()
    for seed in range(RUNS):
        if not any(difference.left for difference in differences):
            return
        if seed >= LEAST_RUNS and time.perf_counter() - began > SECONDS:
            return
        try:
            sample = context.perturbed(seed)
        except Exception:  # code that refuses: what is known without decides
            return
        for difference in differences:
            difference.add(sample.get(difference.path))


@dataclass(slots=True)
class _Difference:
    """One result that `assert_close` rejects. Differences are infinite between a finite number and
    one that is not, and between unequal integers."""

    path: str
    compiled: torch.Tensor
    eager: torch.Tensor
    left: int = 1
    """Elements that nothing explains so far."""
    off: tuple[float, float] | None = None
    """How far compiled and eager are off float64; None if that says nothing."""
    rounding: float | None = None
    _jumping_shape: bool = False
    _chaotic: bool = False
    _scale: float = 0.0
    _apart: Any = None
    _spread: Any = None
    _no_further: Any = None
    """Where the compiled result is no further from float64 than eager's."""
    _least: Any = 0.0

    def use(self, exact: torch.Tensor | None, scale: float) -> None:
        """Begin. `scale`: the size of the largest result of the call."""
        self._scale = scale
        if self.compiled.shape != self.eager.shape:
            return
        self._apart = _apart(self.compiled, self.eager)
        self._no_further = torch.zeros_like(self._apart, dtype=torch.bool)
        self._spread = torch.zeros_like(self._apart)
        if self.eager.is_floating_point() or self.eager.is_complex():
            unit = float(torch.finfo(self.eager.dtype).eps)
            wide = self.eager.dtype in (torch.float64, torch.complex128)
            size = _finite(_wide(self.eager).abs())
            computed = unit if wide else float(torch.finfo(torch.float32).eps)
            self._least = unit * size + LEAST_UNITS * computed * _largest(size)
            self._by_float64(exact)
        self._count()

    def _by_float64(self, exact: torch.Tensor | None) -> None:
        if exact is None or exact.shape != self.eager.shape:
            return
        narrow = self.eager.dtype not in (torch.float64, torch.complex128)
        if narrow and exact.dtype == self.eager.dtype and torch.equal(exact, self.eager):
            return  # a `forward` of another module, whose dtype it has
        limit = torch.finfo(self.eager.dtype).max
        right = _wide(exact)
        if not right.is_complex():
            right = torch.where(right.abs() > limit, right.sign() * math.inf, right)
        ours, theirs = _apart(self.compiled, right), _apart(self.eager, right)
        if _root_mean_square(_finite(theirs)) > CHAOTIC * self._scale:
            return
        # eager's may overflow on the way
        overflowed = OVERFLOWED * torch.finfo(self.eager.dtype).eps * right.abs()
        self._no_further = ours <= torch.where(torch.isfinite(theirs), theirs, overflowed)
        self.off = _largest(_finite(ours)), _largest(_finite(theirs))

    def add(self, sample: Any) -> None:
        """What another run makes of it."""
        found = _tensor(sample)
        if found is None or found.shape != self.eager.shape:
            self._jumping_shape = True
            self.left = 0
        elif self._apart is not None:
            self._spread = torch.maximum(self._spread, _apart(found, self.eager))
            spread = _finite(self._spread)
            self.rounding = _largest(spread)
            moved = spread > CHAOTIC * self._scale
            large = _finite(_wide(self.eager).abs()) > CHAOTIC * self._scale
            self._chaotic = int(moved.sum()) > MOST * int((moved | large).sum())
            self._count()

    @property
    def undecided(self) -> str:
        """Why nothing is known."""
        if self._jumping_shape:
            return "rounding decides the shape of a result"
        if not self._chaotic or not bool(((self._apart > self._least) & ~self._no_further).any()):
            return ""
        return "rounding alone changes the results by as much"

    def _count(self) -> None:
        self.left = int((self._beyond() > 0).sum())

    def _beyond(self) -> Any:
        spread = _finite(self._spread)
        typical = _largest(spread) if self._chaotic else _typical(spread)
        allowed = FACTOR * torch.clamp(self._spread, min=typical) + self._least
        beyond = torch.where(self._no_further, 0.0, self._apart - allowed)
        return torch.nan_to_num(beyond, nan=0.0)  # infinite on both

    def excess(self) -> float:
        """How far beyond rounding it is, of its size."""
        if self._apart is None:
            return math.inf
        return float(self._beyond().max()) / (_largest(_finite(_wide(self.eager).abs())) or 1.0)


def _kind(path: str) -> bool:
    return path.startswith("grad ")


def _scales(eager: Leaves) -> dict[bool, float]:
    """The size of the largest result, of gradients and of others: the root mean square of what is
    not 0, since gradients through a maximum are few."""
    scales = {True: 0.0, False: 0.0}
    for path, value in eager:
        tensor = _tensor(value)
        if tensor is not None and (tensor.is_floating_point() or tensor.is_complex()):
            sizes = _finite(_wide(tensor).abs())
            size = _root_mean_square(sizes[sizes > 0])
            scales[_kind(path)] = max(scales[_kind(path)], size)
    return scales


def _tensor(value: Any) -> torch.Tensor | None:
    """A result as a dense tensor: Python's and NumPy's floats are, integers are not."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        if value.layout is not torch.strided:
            value = value.to_dense()
        return value.dequantize() if value.is_quantized else value
    if is_float(value):
        return torch.tensor(float(value), dtype=torch.float32)
    return None


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def _apart(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """|one - other| by element."""
    if not (other.is_floating_point() or other.is_complex()):
        return torch.where(one != other, math.inf, 0.0).to(torch.float64)
    a, b = _wide(one), _wide(other)
    equal = (a == b) | (a.isnan() & b.isnan())
    both = torch.isfinite(a) & torch.isfinite(b)
    return torch.where(equal, 0.0, torch.where(both, (a - b).abs(), math.inf))


def _finite(values: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.isfinite(values), values, 0.0)


def _typical(spread: torch.Tensor) -> float:
    """The median: an element that the runs happened to leave alone may differ by as much."""
    flat = spread.reshape(-1)
    flat = flat[:: max(1, flat.numel() // _SAMPLE)]
    return float(flat.median()) if flat.numel() else 0.0


def _largest(values: torch.Tensor) -> float:
    return float(values.max()) if values.numel() else 0.0


def _root_mean_square(values: torch.Tensor) -> float:
    return float(values.square().mean().sqrt()) if values.numel() else 0.0
