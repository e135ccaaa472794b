"""The text of every operator of `tcw.compiler.loops.operators` in Triton, by dtype, and the
functions that it may call.

Functions are NVIDIA's libdevice, which ATen's CUDA kernels call too. Sources of ours:
aten/src/ATen/native/cuda/{BinaryDivFloorKernel,BinaryRemainderKernel}.cu.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tcw.compiler.loops import operators
from tcw.compiler.loops.dtypes import BYTES, FLOATS, REDUCED, compute_dtype

TYPES = {
    "float64": "tl.float64",
    "float32": "tl.float32",
    "bfloat16": "tl.bfloat16",
    "float16": "tl.float16",
    "int64": "tl.int64",
    "int32": "tl.int32",
    "int16": "tl.int16",
    "int8": "tl.int8",
    "uint8": "tl.uint8",
    "bool": "tl.int1",
}
POINTERS = {
    "float64": "*fp64",
    "float32": "*fp32",
    "bfloat16": "*bf16",
    "float16": "*fp16",
    "int64": "*i64",
    "int32": "*i32",
    "int16": "*i16",
    "int8": "*i8",
    "uint8": "*u8",
    "bool": "*i1",
}
"""Of an argument's signature. Triton stores booleans as bytes."""

_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "shift_left": "<<",
    "shift_right": ">>",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}
_LIBDEVICE = {
    **{
        name: name
        for name in (
            *("hypot", "copysign", "trunc", "fmod"),
            *("rsqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow"),
            *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh"),
            *("asinh", "acosh", "atanh", "erf", "erfc"),
        )
    },
    "round": "nearbyint",
}
QUICK = {
    "div": "({0} / {1})",
    "reciprocal": "(1.0 / {0})",
    "exp": "tl.exp({0})",
    "exp2": "tl.exp2({0})",
    "sqrt": "tl.sqrt({0})",
    "rsqrt": "tl.rsqrt({0})",
    "sigmoid": "(1.0 / (1.0 + tl.exp(-{0})))",
    "erf": "erf_quick({0})",
}
"""Operators of float32 by the hardware's approximations: a relative error of at most 1e-5."""
_IDENTITY_ON_INTEGERS = frozenset({"floor", "ceil", "trunc", "round"})
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


class Unwritable(Exception):
    """An operation that this target has no text for."""


def literal(number: bool | int | float, dtype: str) -> str:
    """A number as an operand beside a tile of its dtype."""
    if dtype == "bool":
        return str(bool(number))
    if dtype in FLOATS:
        value = float(number)
        return repr(value) if math.isfinite(value) else f'float("{value}")'
    return str(int(number))


def constant(number: bool | int | float, dtype: str) -> str:
    """A number with its dtype."""
    return f"tl.full([], {literal(number, dtype)}, {TYPES[compute_dtype(dtype)]})"


def held_as(text: str, source: str, target: str) -> str:
    """A register of a dtype as one of another, which may be held alike."""
    same = compute_dtype(source) == compute_dtype(target)
    return text if same else convert(text, source, target)


def convert(text: str, source: str, target: str) -> str:
    """A value in another dtype, as registers hold it: 16-bit floats are rounded, in float32."""
    held, wanted = compute_dtype(source), compute_dtype(target)
    if target == "bool":
        return text if held == "bool" else f"({text} != 0)"
    if target in REDUCED and source != target:
        start = text if held == "float32" else f"{text}.to(tl.float32)"
        return f"{start}.to({TYPES[target]}).to(tl.float32)"
    if held == wanted:
        return text
    if held in FLOATS and wanted == "uint8":
        return f"{text}.to(tl.int64).to(tl.uint8)"
    return f"{text}.to({TYPES[wanted]})"


def operator(
    name: str,
    args: Sequence[str],
    operand: str,
    dtype: str,
    need: Callable[[str], None],
    *,
    quick: bool,
) -> str:
    """The text of an operator; `operand` is the dtype of its (last) operand.

    `need` notes a function of `functions` that it calls. `quick`: the result is only seen rounded
    to 16 bits, which hides the errors of the hardware's own functions. Raises `Unwritable`.
    """
    held = compute_dtype(operand)
    if quick and held == "float32" and name in QUICK:
        if name == "erf":
            need("erf_quick")
        return QUICK[name].format(*args)
    if name == "convert":
        return convert(args[0], operand, dtype)
    if name == "rounded":
        return args[0]
    if name == "where":
        return f"tl.where({', '.join(args)})"
    if name in _INFIX:
        return _infix(name, args, held)
    if name in ("maximum", "minimum", "fmax", "fmin"):
        return _extreme(name, args, held)
    if held == "bool":
        return _of_bools(name, args)
    found = _of_floats(name, args, held, need) if held in FLOATS else _of_integers(name, args, need)
    if found is None:
        raise Unwritable(f"{name} of {operand} has no Triton text")
    return found


def _infix(name: str, args: Sequence[str], held: str) -> str:
    if held == "bool":
        name = {"add": "bitwise_or", "mul": "bitwise_and"}.get(name, name)
    return f"({args[0]} {_INFIX[name]} {args[1]})"


def _extreme(name: str, args: Sequence[str], held: str) -> str:
    if held == "bool":
        return f"({args[0]} {'|' if name in ('maximum', 'fmax') else '&'} {args[1]})"
    function = "tl.maximum" if name in ("maximum", "fmax") else "tl.minimum"
    nan = ", propagate_nan=tl.PropagateNan.ALL" if name in ("maximum", "minimum") else ""
    return f"{function}({args[0]}, {args[1]}{nan if held in FLOATS else ''})"


def _of_bools(name: str, args: Sequence[str]) -> str:
    if name == "bitwise_not":
        return f"({args[0]} == 0)"
    if name in ("abs", "sign"):
        return args[0]
    if name in ("isnan", "isinf", "signbit"):
        return f"({args[0]} != {args[0]})"
    raise Unwritable(f"{name} of bool has no Triton text")


def _of_floats(
    name: str, args: Sequence[str], held: str, need: Callable[[str], None]
) -> str | None:
    a = args[0]
    single = held == "float32"
    if name == "div":
        return f"tl.div_rn({a}, {args[1]})" if single else f"({a} / {args[1]})"
    if name in ("floor_divide", "remainder"):
        need(f"{name}_floats")
        return f"{name}_floats({a}, {args[1]})"
    if name == "pow":
        return _power(a, args[1])
    if name == "ldexp":
        return f"libdevice.ldexp({a}, {args[1]}.to(tl.int32))"
    if name in _LIBDEVICE:
        return f"libdevice.{_LIBDEVICE[name]}({', '.join(args)})"
    texts = {
        "neg": "(-{0})",
        "abs": "tl.abs({0})",
        "fma": "tl.fma({0}, {1}, {2})",
        "trunc_divide": "libdevice.trunc("
        + ("tl.div_rn({0}, {1})" if single else "{0} / {1}")
        + ")",
        "reciprocal": "tl.div_rn({0} * 0 + 1.0, {0})" if single else "(1.0 / {0})",
        "sign": f"(({{0}} > 0).to({TYPES[held]}) - ({{0}} < 0).to({TYPES[held]}))",
        "floor": "tl.floor({0})",
        "ceil": "tl.ceil({0})",
        "isnan": "({0} != {0})",
        "isinf": '(tl.abs({0}) == float("inf"))',
        "signbit": f"({{0}}.to(tl.int{8 * BYTES[held]}, bitcast=True) < 0)",
        "sqrt": "tl.sqrt_rn({0})" if single else "tl.sqrt({0})",
        "sigmoid": "(1.0 / (1.0 + libdevice.exp(-{0})))",
    }
    text = texts.get(name)
    return None if text is None else text.format(*args)


def _power(a: str, exponent: str) -> str:
    """ATen's own cases of a constant exponent (aten/src/ATen/native/cuda/PowKernel.cu)."""
    known = {
        "2.0": f"({a} * {a})",
        "3.0": f"({a} * {a} * {a})",
        "-1.0": f"(1.0 / {a})",
        "-2.0": f"(1.0 / ({a} * {a}))",
        "0.5": f"tl.sqrt({a})",
    }
    return known.get(exponent, f"libdevice.pow({a}, {exponent})")


def _of_integers(name: str, args: Sequence[str], need: Callable[[str], None]) -> str | None:
    a = args[0]
    if name in _IDENTITY_ON_INTEGERS:
        return a
    if name in ("floor_divide", "remainder"):
        need(f"{name}_integers")
        return f"{name}_integers({a}, {args[1]})"
    texts = {
        "neg": "(-{0})",
        "abs": "tl.abs({0})",
        "fma": "({0} * {1} + {2})",
        "trunc_divide": "({0} // {1})",
        "fmod": "({0} % {1})",
        "bitwise_not": "(~{0})",
        "sign": "tl.where({0} > 0, 1, tl.where({0} < 0, -1, 0)).to({0}.dtype)",
        "isnan": "({0} != {0})",
        "isinf": "({0} != {0})",
        "signbit": "({0} < 0)",
    }
    text = texts.get(name)
    return None if text is None else text.format(*args)


def reducer(op: str, dtype: str) -> str:
    """The function of `functions` that combines two partial results."""
    if op in ("sum", "prod"):
        return {"sum": "add_of", "prod": "mul_of"}[op]
    if op in ("any", "all"):
        return {"any": "or_of", "all": "and_of"}[op]
    if dtype == "bool":
        return "or_of" if op == "max" else "and_of"
    return f"{op}_of" if dtype in FLOATS else f"{op}_of_integers"


_START = {"argmax": "max", "argmin": "min", "exp_sum": "max"}


def identity(op: str, dtype: str) -> str:
    """The identity of a reduction or scan."""
    const = operators.identity(_START.get(op, op), dtype)
    return literal(const.number, const.dtype)


def function_text(name: str) -> str:
    """The function's text, as a unit holds it."""
    return f"@triton.jit\n{FUNCTIONS[name]}"
