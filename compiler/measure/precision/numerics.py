"""Compiled outputs against eager ones: same inputs, same state, same random state."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

import torch

from tcw.compiler.measure.precision.compare import at_most_largest
from tcw.compiler.trace.records import Numerics, OutputError

Leaves = list[tuple[str, Any]]
"""(path, value), as listed by `tcw.compiler.measure.calls.leaves`."""

_WORST = 16


@dataclass
class OutputComparison:
    """Collects the differences of all calls."""

    compared: int = 0
    equal: bool = True
    within: bool = True
    notes: list[str] = field(default_factory=list)
    _errors: list[OutputError] = field(default_factory=list)

    def add(self, call: int, compiled: Leaves, eager: Leaves) -> bool:
        """Compare one call's outputs (or gradients); returns whether `assert_close` accepts them
        all."""
        within_before, self.within = self.within, True
        theirs = dict(eager)
        for path, value in compiled:
            if path not in theirs:
                self._differ(call, path, "returned by the compiled model only")
                continue
            self._pair(call, path, value, theirs.pop(path))
        for path in theirs:
            self._differ(call, path, "returned by eager only")
        accepted = self.within
        self.within = accepted and within_before
        return accepted

    def record(self) -> Numerics:
        """The verdict on everything that was added."""
        finite = [error for error in self._errors if not error.note or error.max_abs]
        worst = sorted(self._errors, key=lambda error: (bool(error.note), error.max_abs))[::-1]
        return Numerics(
            compared=self.compared,
            max_abs=max((error.max_abs for error in finite), default=None)
            if self.compared
            else None,
            max_rel=max((error.max_rel for error in finite), default=None)
            if self.compared
            else None,
            worst=tuple(error for error in worst if error.max_abs or error.note)[:_WORST],
            equal=self.equal and bool(self.compared),
            within=self.within if self.compared or not self.within else None,
            note="; ".join(dict.fromkeys(self.notes)),
        )

    def _differ(self, call: int, path: str, note: str) -> None:
        self.equal = self.within = False
        self._errors.append(OutputError(call=call, path=path, max_abs=0.0, max_rel=0.0, note=note))

    def _pair(self, call: int, path: str, ours: Any, theirs: Any) -> None:
        if not isinstance(ours, torch.Tensor) or not isinstance(theirs, torch.Tensor):
            if isinstance(ours, torch.Tensor) or isinstance(theirs, torch.Tensor):
                self._differ(call, path, "a tensor on one side only")
            elif _is_float(ours) and _is_float(theirs):
                self._numbers(call, path, float(ours), float(theirs))
            elif not _same(ours, theirs):
                self._differ(call, path, _values_differ(ours, theirs))
            return
        self.compared += 1
        if ours.shape != theirs.shape:
            self._differ(
                call, path, f"shapes differ: {tuple(ours.shape)}, eager {tuple(theirs.shape)}"
            )
            return
        note = ""
        if ours.dtype != theirs.dtype:
            note = f"dtypes differ: {ours.dtype}, eager {theirs.dtype}".replace("torch.", "")
        elif ours.device != theirs.device:
            note = f"devices differ: {ours.device}, eager {theirs.device}"
        self._add(call, path, ours, theirs, note, close=not note and _close(ours, theirs))

    def _numbers(self, call: int, path: str, ours: float, theirs: float) -> None:
        """Two floats, such as `loss.item()`. Their original dtype is unknown, so they
        may differ as float32 may."""
        self.compared += 1
        one, two = (torch.tensor(value, dtype=torch.float64) for value in (ours, theirs))
        close = torch.allclose(one, two, rtol=1.3e-6, atol=1e-5, equal_nan=True)
        self._add(call, path, one, two, "", close)

    def _add(
        self, call: int, path: str, one: torch.Tensor, two: torch.Tensor, note: str, close: bool
    ) -> None:
        max_abs, max_rel, odd = tensor_error(one, two)
        note = note or odd
        if max_abs or note:
            self.equal = False
        if not close:
            self.within = False
        self._errors.append(
            OutputError(call=call, path=path, max_abs=max_abs, max_rel=max_rel, note=note)
        )


def _is_float(value: Any) -> bool:
    """Python's and NumPy's floats."""
    return isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral)


def _values_differ(ours: Any, theirs: Any) -> str:
    """`values differ: 3, eager 4`; without the values unless they are short numbers."""
    for one in (ours, theirs):
        if type(one) not in (int, bool, NoneType) or (one is not None and one.bit_length() > 63):
            return "values differ"
    return f"values differ: {ours}, eager {theirs}"


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
    note = _odd_values(a, b)
    both = torch.isfinite(a) & torch.isfinite(b)
    difference = torch.where(both, (a - b).abs(), 0.0)
    relative = difference / torch.where(both, b.abs(), 1.0).clamp(min=smallest)
    max_abs, max_rel = float(difference.max()), float(relative.max())
    return at_most_largest(max_abs), at_most_largest(max_rel), note


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    return tensor.cpu()


def _odd_values(a: torch.Tensor, b: torch.Tensor) -> str:
    notes = []
    for name, test in (("nan", torch.isnan), ("inf", torch.isinf)):
        in_a, in_b = test(a), test(b)
        if bool((in_a & ~in_b).any()):
            notes.append(f"{name} in compiled only")
        if bool((in_b & ~in_a).any()):
            notes.append(f"{name} in eager only")
    infinite = torch.isinf(a) & torch.isinf(b)
    if bool((infinite & (a != b)).any()):
        notes.append("infinities of opposite sign")
    return ", ".join(notes)


def _close(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    try:
        torch.testing.assert_close(ours.detach(), theirs.detach(), equal_nan=True)
    except AssertionError:
        return False
    except (RuntimeError, TypeError, NotImplementedError):
        # layouts that assert_close cannot read: the dense values decide
        return bool(torch.allclose(_dense(ours), _dense(theirs), equal_nan=True))
    return True


def accepted_by_torch(ours: Any, theirs: Any) -> bool:
    """Whether two results of one path are the same, or tensors that `assert_close` accepts."""
    if isinstance(ours, torch.Tensor) and isinstance(theirs, torch.Tensor):
        return _close(ours, theirs)
    return _same(ours, theirs)


def _same(ours: Any, theirs: Any) -> bool:
    try:
        if ours != ours and theirs != theirs:
            return True  # nan
        return type(ours) is type(theirs) and bool(ours == theirs)
    except Exception:  # an __eq__ that raises does not prove a difference
        return True
