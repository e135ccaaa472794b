"""Compiled results against eager ones, in a few words."""

from __future__ import annotations

from compiler.trace.records import Numerics
from viewers.words import NOT_MEASURED, error_text


def numerics_words(numerics: Numerics) -> str:
    """`max error 4.8e-07`, `results equal bit for bit`, `random: not comparable (dropout at …)`."""
    if numerics.equal:
        return "results equal bit for bit"
    if numerics.max_abs is None:
        return f"error {NOT_MEASURED}" + (f": {numerics.note}" if numerics.note else "")
    if numerics.random or (numerics.within is None and numerics.note):
        return numerics.note.partition(";")[0]
    words = f"max error {error_text(numerics.max_abs)}"
    off = off_float64(numerics)
    return f"{words} ({off})" if off and numerics.within else words


def off_float64(numerics: Numerics) -> str:
    """`off float64 by 0.016, eager by 0.031`; "" if the calls were not made in float64."""
    if numerics.compiled_off is None or numerics.eager_off is None:
        return ""
    compiled, eager = error_text(numerics.compiled_off), error_text(numerics.eager_off)
    return f"off float64 by {compiled}, eager by {eager}"
