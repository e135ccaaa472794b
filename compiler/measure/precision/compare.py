"""One result of a kernel against float64: its error and its bound.

An error is the largest |result - float64|, divided by the largest |float64| of the whole result.
The bound is the same error for the same operations in float64 with rounding noise
(`tcw.compiler.measure.precision.arithmetic.Noisy`) and for eager's own results, each with a factor.
If 16-bit numbers make the bound wide, bias is tested as well: rounding errs to both sides, a wrong
constant to one.
"""

from __future__ import annotations

import math
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


@dataclass(frozen=True, slots=True)
class Compared:
    """Everything by which one result is judged."""

    observed: torch.Tensor
    exact: torch.Tensor
    """In float64."""
    eager: torch.Tensor
    noisy: Sequence[torch.Tensor]
    """With noise, but without jumps relative to `exact`."""
    jumping: Sequence[torch.Tensor]
    """With `JUMPING` times the noise, and jumps."""
    narrowest: torch.dtype
    """The narrowest float dtype in the computation."""


def judge(node: str, given: Compared) -> tuple[OutputPrecision, bool | None, str]:
    """(the errors, whether the result is within its bound, why that is undecided)."""
    observed, exact = given.observed, given.exact
    if tuple(observed.shape) != tuple(exact.shape):
        words = f"shape {tuple(observed.shape)}, eager {tuple(exact.shape)}"
        return _wrong(node, words), False, ""
    if observed.numel() == 0:
        return OutputPrecision(node=node, error=0.0, eager_error=0.0, bound=0.0), True, ""
    if not (observed.is_floating_point() or observed.is_complex()):
        return _whole_numbers(node, given)
    return _floats(node, given)


def _whole_numbers(node: str, given: Compared) -> tuple[OutputPrecision, bool | None, str]:
    observed, exact = given.observed, given.exact
    differs = observed != exact
    undecided = torch.zeros_like(differs)
    for one in (*given.noisy, *given.jumping):
        undecided |= one != exact
    count = int(undecided.sum())  # as many others may differ, although no noise sample changed them
    wrong = int((differs & ~undecided).sum())
    size = observed.numel()
    note = f"{int(differs.sum())} of {size} elements differ" if bool(differs.any()) else ""
    found = OutputPrecision(
        node=node,
        error=float(differs.sum()) / size,
        eager_error=float((given.eager != exact).sum()) / size,
        bound=float(2 * count) / size,
        note=note,
    )
    return found, wrong <= count, ""


def _floats(node: str, given: Compared) -> tuple[OutputPrecision, bool | None, str]:
    limit = float(torch.finfo(given.observed.dtype).max)
    unit = float(torch.finfo(given.observed.dtype).eps)
    observed, eager = _wide(given.observed), _wide(given.eager)
    exact = _overflowed(_wide(given.exact), limit)
    noisy = [_overflowed(_wide(one), limit) for one in given.noisy]
    jumping = [_overflowed(_wide(one), limit) for one in given.jumping]
    finite = torch.isfinite(exact)
    scale = _largest(exact, finite)
    if not scale:  # all zeros: scale by what rounding makes of them
        scale = max((_largest(one, finite) for one in (eager, *noisy)), default=0.0)
        scale = scale or float(torch.finfo(given.observed.dtype).tiny)
    both = finite & torch.isfinite(observed)
    error = torch.where(both, (observed - exact).abs(), 0.0) / scale
    spread = max(
        (_largest(torch.where(finite & torch.isfinite(one), one - exact, 0.0)) for one in noisy),
        default=0.0,
    )
    wide = given.narrowest is torch.float64 and given.observed.dtype is torch.float64
    computed = torch.finfo(torch.float64 if wide else torch.float32).eps
    half = unit / 2 if unit > computed else 0.0
    least = half + LEAST_UNITS * computed
    factor = NOISE_FACTOR if observed.numel() >= FEW else FEW_FACTOR
    bound = max(least, factor * spread / scale)
    undecided = torch.zeros_like(finite)
    for one in (*jumping, eager) if jumping else ():
        near = (one - exact).abs() / scale <= JUMPING * bound
        undecided |= ~near & (finite | torch.isfinite(one))
    count = int(undecided.sum())
    theirs = finite & torch.isfinite(eager) & ~undecided
    eager_error = _largest(torch.where(theirs, eager - exact, 0.0)) / scale
    bound = max(bound, EAGER_FACTOR * eager_error)
    if count == undecided.numel() or count > max(1, _LEFT_OUT * undecided.numel()):
        return (
            OutputPrecision(
                node=node, error=float(error.max()), eager_error=eager_error, bound=bound
            ),
            None,
            f"rounding decides {count} of its {undecided.numel()} elements",
        )
    odd, note = _odd_values(observed, exact, eager)
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
        note = f"rounding decides {count} of {undecided.numel()} elements: left out"
    return (
        OutputPrecision(
            node=node,
            error=at_most_largest(worst),
            eager_error=at_most_largest(eager_error),
            bound=at_most_largest(bound),
            lean=at_most_largest(lean),
            lean_bound=at_most_largest(lean_bound),
            note=note,
        ),
        within,
        "",
    )


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
    others = [LEAN_FACTOR * one for one in others]
    others += [LEAN_FACTOR * _lean(one[keep], r) for one in (eager, rounded)]
    step = max(1, r.numel() // _SAMPLE)
    sample = r[::step].abs().to(torch.float32)
    distinct = int(torch.unique(sample).numel())
    narrow = float(torch.finfo(given.narrowest).eps)
    # equal numbers are rounded equally
    alike = narrow / math.sqrt(max(distinct, 1))
    return lean, max(LEAN_LEAST * narrow, LEAN_FACTOR * alike, *others)


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


def _odd_values(observed: Any, exact: Any, eager: Any) -> tuple[Any, str]:
    """Elements that are not finite on one side only, where eager agrees with float64."""
    notes = []
    odd = torch.zeros(exact.shape, dtype=torch.bool, device=exact.device)
    for name, test in (("nan", torch.isnan), ("inf", torch.isinf)):
        ours, theirs, right = test(observed), test(eager), test(exact)
        here = (ours & ~theirs & ~right) | (~ours & theirs & right)
        if bool(here.any()):
            notes.append(f"{name} in {'compiled' if bool((ours & here).any()) else 'eager'} only")
        odd |= here
    return odd, ", ".join(notes)


def _wrong(node: str, note: str) -> OutputPrecision:
    largest = torch.finfo(torch.float64).max
    return OutputPrecision(node=node, error=largest, eager_error=0.0, bound=0.0, note=note)


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
