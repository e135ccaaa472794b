"""How exact a kernel is, from its record."""

from __future__ import annotations

from tcw.compiler.trace.records import KernelPrecision, OutputPrecision

_NO_BOUND = 1e-300


def error_over_bound(output: OutputPrecision) -> float:
    """The error over its bound: above 1 it is wrong."""
    return output.error / (output.bound or _NO_BOUND)


def worst_output(found: KernelPrecision) -> OutputPrecision | None:
    """The result furthest beyond its bound, or nearest to it; None if none was compared."""
    return max(found.outputs, key=error_over_bound, default=None)
