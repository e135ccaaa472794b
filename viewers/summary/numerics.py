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
    return f"max error {error_text(numerics.max_abs)}"
