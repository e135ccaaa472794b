"""Right or wrong: the one judge of everything that is compared (docs/notes/precision.md).

A difference is a fault where it is beyond what rounding makes of the same computation. `judged`
decides on the results of a whole call, `judge` on one result of a kernel.

A whole call: what `assert_close` accepts is right. For what it rejects, eager is run again in its
own precision with each rounding perturbed (`tcw.compiler.measure.precision.perturbed`): an element
may differ as far as those runs differ, with a factor, or be no further from float64 than eager's.

A kernel: an error is the largest |result - float64|, divided by the largest |float64| of the whole
result. The bound is the same error for the same operations in float64 with rounding noise
(`tcw.compiler.measure.precision.arithmetic.Noisy`) and for eager's own results, each with a factor.
If 16-bit numbers make the bound wide, bias is tested as well: rounding errs to both sides, a wrong
constant to one.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tcw.compiler.trace.records import OutputPrecision

NOISE_FACTOR = 2.0
FEW_FACTOR = 4.0
FEW = 256
"""Results with fewer elements use `FEW_FACTOR`, because their noise says less about the bound."""
JUMPING = 8.0
"""The noise factor for deciding what may jump."""
EAGER_FACTOR = 2.0
LEAST_UNITS = 16.0
"""Units of float32 (or float64) that a result may always be off by."""
LEAN_FACTOR = 4.0
LEAN_MATTERS = 1e-4
"""Below this bound, only the largest error is tested."""
LEAN_LEAST = 1 / 16
"""In units of the narrowest dtype: the bias that rounding itself may cause."""
_SAMPLE = 1 << 16
_LEFT_OUT = 0.05
"""Above this share of jumps, a result is not compared."""
_WIDE = (torch.float64, torch.complex128)


@dataclass(frozen=True, slots=True)
class Compared:
    """Everything by which one result is judged."""

    observed: torch.Tensor
    exact: torch.Tensor
    """In float64."""
    eager: torch.Tensor
    noisy: Sequence[torch.Tensor] = ()
    """With noise, but without jumps relative to `exact`."""
    jumping: Sequence[torch.Tensor] = ()
    """With `JUMPING` times the noise, and jumps."""
    narrowest: torch.dtype = torch.float64
    """The narrowest float dtype in the computation."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """On one result, or on several. Errors are relative to the largest value of the result."""

    within: bool | None
    """Whether the error is one that rounding explains; None if that is undecided."""
    error: float = 0.0
    eager_error: float = 0.0
    bound: float = 0.0
    lean: float = 0.0
    """How far all of it is off to one side."""
    lean_bound: float = 0.0
    note: str = ""
    jumps: int = 0
    """Elements that rounding decides: they are left out."""
    undecided: str = ""
    """Why it is undecided."""

    def record(self, node: str) -> OutputPrecision:
        """As a trace has it."""
        return OutputPrecision(
            node=node,
            error=at_most_largest(self.error),
            eager_error=at_most_largest(self.eager_error),
            bound=at_most_largest(self.bound),
            lean=at_most_largest(self.lean),
            lean_bound=at_most_largest(self.lean_bound),
            note=self.note,
        )


def judge(given: Compared) -> Verdict:
    """Whether a result is as close to float64 as rounding allows."""
    observed, exact = given.observed, given.exact
    if tuple(observed.shape) != tuple(exact.shape):
        words = f"shape {tuple(observed.shape)}, eager {tuple(exact.shape)}"
        return Verdict(False, error=math.inf, note=words)
    if observed.numel() == 0:
        return Verdict(True)
    if not (observed.is_floating_point() or observed.is_complex()):
        return _whole_numbers(given)
    return _floats(given)


def _whole_numbers(given: Compared) -> Verdict:
    observed, exact = given.observed, given.exact
    differs = observed != exact
    undecided = torch.zeros_like(differs)
    for one in (*given.noisy, *given.jumping):
        undecided |= one != exact
    count = int(undecided.sum())  # as many others may differ, although no noise sample changed them
    wrong = int((differs & ~undecided).sum())
    size = observed.numel()
    return Verdict(
        wrong <= count,
        error=float(differs.sum()) / size,
        eager_error=float((given.eager != exact).sum()) / size,
        bound=float(2 * count) / size,
        note=f"{int(differs.sum())} of {size} elements differ" if bool(differs.any()) else "",
    )


def _floats(given: Compared) -> Verdict:
    finfo = torch.finfo(given.observed.dtype)
    limit, unit = float(finfo.max), float(finfo.eps)
    observed, eager = _wide(given.observed), _wide(given.eager)
    exact, *others = (
        _overflowed(_wide(one), limit) for one in (given.exact, *given.noisy, *given.jumping)
    )
    noisy, jumping = others[: len(given.noisy)], others[len(given.noisy) :]
    finite = torch.isfinite(exact)
    scale = _largest(exact, finite)
    if not scale:  # all zeros: scale by what rounding makes of them
        scale = max((_largest(one, finite) for one in (eager, *noisy)), default=0.0)
        scale = scale or float(finfo.tiny)
    both = finite & torch.isfinite(observed)
    error = torch.where(both, (observed - exact).abs(), 0.0) / scale
    spread = max(
        (_largest(torch.where(finite & torch.isfinite(one), one - exact, 0.0)) for one in noisy),
        default=0.0,
    )
    wide = given.narrowest is torch.float64 and given.observed.dtype in _WIDE
    computed = torch.finfo(torch.float64 if wide else torch.float32).eps
    half = unit / 2 if unit > computed else 0.0
    factor = NOISE_FACTOR if observed.numel() >= FEW else FEW_FACTOR
    bound = max(half + LEAST_UNITS * computed, factor * spread / scale)
    undecided = torch.zeros_like(finite)
    for one in (*jumping, eager) if jumping else ():
        near = (one - exact).abs() / scale <= JUMPING * bound
        undecided |= ~near & (finite | torch.isfinite(one))
    count, size = int(undecided.sum()), undecided.numel()
    theirs = torch.where(finite & torch.isfinite(eager) & ~undecided, eager - exact, 0.0)
    eager_error = _largest(theirs) / scale
    bound = max(bound, EAGER_FACTOR * eager_error)
    if count == size or count > max(1, _LEFT_OUT * size):
        words = f"rounding decides {count} of its {size} elements"
        return Verdict(None, float(error.max()), eager_error, bound, undecided=words)
    odd, note = odd_values(observed, eager, exact)
    wrong = int(((error > bound) & ~undecided).sum())
    within = wrong <= count and not bool((odd & ~undecided).any())
    decided = both & ~undecided
    worst = float(torch.where(decided, error, 0.0).max())
    if within:
        worst = min(worst, bound)
    lean, lean_bound = 0.0, 0.0
    if bound > LEAN_MATTERS and within:
        lean, lean_bound = _leans(given, observed, exact, eager, noisy, decided)
        if lean > lean_bound:
            within = False
            note = note or f"the whole result is off to one side by {lean:.2%}"
    if count and not note:
        note = f"rounding decides {count} of {size} elements: left out"
    return Verdict(within, worst, eager_error, bound, lean, lean_bound, note, count)


def _leans(
    given: Compared, observed: Any, exact: Any, eager: Any, noisy: Sequence[Any], decided: Any
) -> tuple[float, float]:
    """(the result's bias to one side, the allowed bias)."""
    keep = decided & torch.isfinite(eager)
    r = exact[keep]
    if r.numel() < 2:
        return 0.0, math.inf
    rounded = _wide(given.exact.to(given.observed.dtype))
    lean = _lean(observed[keep], r)
    others = [_lean(one[keep], r) for one in noisy if bool(torch.isfinite(one[keep]).all())]
    others += [_lean(one[keep], r) for one in (eager, rounded)]
    step = max(1, r.numel() // _SAMPLE)
    sample = r[::step].abs().to(torch.float32)
    distinct = int(torch.unique(sample).numel())
    narrow = float(torch.finfo(given.narrowest).eps)
    # equal numbers are rounded equally
    alike = narrow / math.sqrt(max(distinct, 1))
    return lean, max(LEAN_LEAST * narrow, LEAN_FACTOR * max(alike, *others))


def _lean(values: Any, exact: Any) -> float:
    """The component of the error that is a common factor or a common offset."""
    square = float((exact.abs() ** 2).sum())
    if not square or not math.isfinite(square):
        return 0.0
    difference = values - exact
    product = difference * exact.conj() if exact.is_complex() else difference * exact
    factor = abs(complex(product.sum()) / square)
    offset = abs(complex(difference.mean())) / math.sqrt(square / exact.numel())
    return max(factor, offset)


# Against eager alone


def accepted(ours: Any, theirs: Any) -> bool:
    """Whether two results are the same, or tensors that `assert_close` accepts. Floats, such as
    `loss.item()`, may differ as float32 may: their original dtype is unknown."""
    if is_float(ours) and is_float(theirs):
        one, two = (torch.tensor(float(value), dtype=torch.float64) for value in (ours, theirs))
        return bool(torch.allclose(one, two, rtol=1.3e-6, atol=1e-5, equal_nan=True))
    if not isinstance(ours, torch.Tensor) or not isinstance(theirs, torch.Tensor):
        return same(ours, theirs)
    try:
        torch.testing.assert_close(ours.detach(), theirs.detach(), equal_nan=True)
    except AssertionError:
        return False
    except (RuntimeError, TypeError, NotImplementedError):
        # layouts that assert_close cannot read: the dense values decide
        return bool(torch.allclose(_dense(ours), _dense(theirs), equal_nan=True))
    return True


def is_float(value: Any) -> bool:
    """Python's and NumPy's floats."""
    return isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral)


def same(ours: Any, theirs: Any) -> bool:
    """Whether two values that are no tensors are the same."""
    try:
        if ours != ours and theirs != theirs:
            return True  # nan
        return type(ours) is type(theirs) and bool(ours == theirs)
    except Exception:  # an __eq__ that raises does not prove a difference
        return True


def tensor_error(ours: torch.Tensor, theirs: torch.Tensor) -> tuple[float, float, str]:
    """(max |a-b|, max |a-b| / max(|b|, smallest normal), note) over elements finite on both sides.

    NaN matches NaN, and infinity matches the same infinity. Otherwise a note says which side has
    them.
    """
    ours, theirs = _dense(ours), _dense(theirs)
    if ours.numel() == 0:
        return 0.0, 0.0, ""
    smallest = torch.finfo(theirs.dtype).tiny if theirs.dtype.is_floating_point else 1.0
    wide = torch.complex128 if ours.is_complex() or theirs.is_complex() else torch.float64
    a, b = ours.to(wide), theirs.to(wide)
    both = torch.isfinite(a) & torch.isfinite(b)
    difference = torch.where(both, (a - b).abs(), 0.0)
    relative = difference / torch.where(both, b.abs(), 1.0).clamp(min=smallest)
    max_abs, max_rel = float(difference.max()), float(relative.max())
    return at_most_largest(max_abs), at_most_largest(max_rel), odd_values(a, b, b)[1]


def odd_values(observed: Any, eager: Any, exact: Any) -> tuple[Any, str]:
    """(the elements that are not finite on one side only, where eager agrees with float64; on which
    side)."""
    notes = []
    odd = torch.zeros(exact.shape, dtype=torch.bool, device=exact.device)
    for name, test in (("nan", torch.isnan), ("inf", torch.isinf)):
        ours, theirs = test(observed), test(eager)
        known = theirs == test(exact)
        for side, here in (("compiled", ours & ~theirs & known), ("eager", theirs & ~ours & known)):
            if bool(here.any()):
                notes.append(f"{name} in {side} only")
                odd |= here
    opposite = torch.isinf(observed) & torch.isinf(eager) & (observed != eager) & (eager == exact)
    if bool(opposite.any()):
        notes.append("infinities of opposite sign")
    return odd | opposite, ", ".join(notes)


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    return tensor.cpu()


def _wide(tensor: Any) -> Any:
    tensor = tensor.detach()
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def _overflowed(tensor: Any, limit: float) -> Any:
    """Values that do not fit the result's dtype become infinite."""
    if tensor.is_complex():
        return tensor
    return torch.where(tensor.abs() > limit, tensor.sign() * math.inf, tensor)


def _largest(tensor: Any, where: Any = None) -> float:
    size = tensor.abs()
    size = torch.where(
        torch.isfinite(size) if where is None else where & torch.isfinite(size), size, 0.0
    )
    return float(size.max()) if size.numel() else 0.0


def at_most_largest(value: float) -> float:
    """A figure as a trace can hold it: the largest float64 for what is not finite."""
    return value if math.isfinite(value) else float(torch.finfo(torch.float64).max)
