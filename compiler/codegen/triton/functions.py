"""Functions that a kernel's text may call, in Triton; a unit holds those that it needs.

Sources: aten/src/ATen/native/cuda/{BinaryDivFloorKernel,BinaryRemainderKernel}.cu.
"""

from __future__ import annotations

_OF_TWO = {
    "add_of": "return a + b",
    "mul_of": "return a * b",
    "or_of": "return a | b",
    "and_of": "return a & b",
    "max_of": "return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)",
    "min_of": "return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)",
    "max_of_integers": "return tl.maximum(a, b)",
    "min_of_integers": "return tl.minimum(a, b)",
    "power_remainder": (
        "return tl.max_contiguous(tl.multiple_of(a & (b - 1), 16), 16)  # vectors of a row"
    ),
    "floor_divide_integers": (
        "quotient = a // b\n"
        "    return tl.where((a % b != 0) & ((a < 0) != (b < 0)), quotient - 1, quotient)"
    ),
    "remainder_integers": (
        "rest = a % b\n    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)"
    ),
    "remainder_floats": (
        "rest = libdevice.fmod(a, b)\n"
        "    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)"
    ),
    "floor_divide_floats": (
        "rest = libdevice.fmod(a, b)\n"
        "    quotient = (a - rest) / b\n"
        "    quotient = tl.where((rest != 0) & ((rest < 0) != (b < 0)), quotient - 1, quotient)\n"
        "    whole = tl.floor(quotient)\n"
        "    whole = tl.where(quotient - whole > 0.5, whole + 1, whole)\n"
        "    whole = tl.where(quotient == 0, libdevice.copysign(quotient * 0, a / b), whole)\n"
        "    return tl.where(b == 0, a / b, whole)"
    ),
}
"""Name -> body; the arguments are `a` and `b`."""

FUNCTIONS = {
    **{name: f"def {name}(a, b):\n    {body}\n" for name, body in _OF_TWO.items()},
    # the first of the greatest (least) elements, or the first NaN
    **{
        name: (
            f"def {name}(a, i, b, j):\n"
            f"    better = (a {sign} b) | ((a != a) & (b == b))\n"
            "    same = (a == b) | ((a != a) & (b != b))\n"
            "    first = better | (same & (i < j))\n"
            "    return tl.where(first, a, b), tl.where(first, i, j)\n"
        )
        for name, sign in (("argmax_of", ">"), ("argmin_of", "<"))
    },
    "previous_ended": """\
def previous_ended():
    tl.inline_asm_elementwise(
        "griddepcontrol.wait; // $0", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
""",
    "next_may_start": """\
def next_may_start():
    tl.inline_asm_elementwise(
        "griddepcontrol.launch_dependents; // $0", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
""",
    "erf_quick": """\
def erf_quick(x):
    t = 1.0 / (1.0 + 0.3275911 * tl.abs(x))
    sum = t * (1.061405429 * t - 1.453152027) + 1.421413741
    sum = t * (t * (t * sum - 0.284496736) + 0.254829592)
    y = 1.0 - sum * tl.exp(-x * x)
    return tl.where(x < 0, -y, y)
""",
}
"""Name -> definition. `erf_quick` is 7.1.26 of Abramowitz and Stegun, whose absolute error is at
most 1.5e-7."""


def text(name: str) -> str:
    """The function's text."""
    return f"@triton.jit\n{FUNCTIONS[name]}"
