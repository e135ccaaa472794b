"""Compiled results against eager ones, in a few words."""

from __future__ import annotations

from tcw.compiler.trace.records import AliasDifference, Numerics, WhatIf
from tcw.viewers.words import NOT_MEASURED, error_text

_TOLERANCES = "outside the default tolerances of torch.testing.assert_close"


def numerics_words(numerics: Numerics) -> str:
    """`max error 4.8e-07`, `results equal bit for bit`, `random: not comparable (dropout at …)`."""
    if numerics.equal:
        return "results equal bit for bit" + (", other memory shared" if numerics.aliases else "")
    if numerics.max_abs is None:
        return f"error {NOT_MEASURED}" + (f": {numerics.note}" if numerics.note else "")
    if numerics.random or (numerics.within is None and numerics.note):
        return not_comparable(numerics)
    words = f"max error {error_text(numerics.max_abs)}"
    off = off_float64(numerics)
    return f"{words} ({off})" if off and numerics.within else words


def not_comparable(found: Numerics | WhatIf) -> str:
    """`random: not comparable (dropout at model.py:12)`."""
    return found.note.partition(";")[0]


def rejected_words(found: Numerics | WhatIf) -> str:
    """Why results are wrong: `rounding changes them by 2e-06 at most; off float64 by …`."""
    words = _TOLERANCES
    if found.rounding is not None:
        words = f"rounding changes them by {error_text(found.rounding)} at most"
    return "; ".join(filter(None, (words, off_float64(found))))


def alias_words(found: AliasDifference) -> str:
    """`out shares memory with inputs[0], not in eager`."""
    in_eager = {"": "not in eager", "memory": "in eager it only shares its memory"}
    if not found.compiled:
        return f"{found.path} does not share memory with {found.other}, as it does in eager"
    if found.eager == "object":
        return f"{found.path} only shares memory with {found.other}, which it is in eager"
    does = "is" if found.compiled == "object" else "shares memory with"
    return f"{found.path} {does} {found.other}, {in_eager[found.eager]}"


def off_float64(numerics: Numerics | WhatIf) -> str:
    """`off float64 by 0.016, eager by 0.031`; "" if the calls were not made in float64."""
    if numerics.compiled_off is None or numerics.eager_off is None:
        return ""
    compiled, eager = error_text(numerics.compiled_off), error_text(numerics.eager_off)
    return f"off float64 by {compiled}, eager by {eager}"
