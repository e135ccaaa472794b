"""Functions without polynomials: minimum and maximum, signs, rounding, shifts, powers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import conversions, hardware, operator_text
from tcw.compiler.codegen.cpp.vocabulary.types import INFINITY, SCALARS
from tcw.compiler.loops.dtypes import BYTES, FLOATS, INTEGERS

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes
    from tcw.compiler.codegen.cpp.vocabulary.operator_text import Syntax

_BINARY = {
    # NaN wins: comparing with it is false, so the first select takes b's and the second keeps a's
    "maximum": "{T} m = a > b ? a : b; return a == a ? m : a;",
    "minimum": "{T} m = a < b ? a : b; return a == a ? m : a;",
    "fmax": "{T} m = a > b ? a : b; return b == b ? m : a;",
    "fmin": "{T} m = a < b ? a : b; return b == b ? m : a;",
    "max_quick": "return a > b ? a : b;",
    "min_quick": "return a < b ? a : b;",
}
FLOAT_FUNCTIONS = frozenset(
    {
        *(*_BINARY, *hardware.ROUNDINGS),
        *("abs", "sign", "copysign", "fma", "sqrt", "rsqrt", "ldexp"),
    }
)


def bits(lanes: Lanes, held: str) -> tuple[str, str, str]:
    """A float's integer type, the mask of its magnitude bits, and the literal of its sign bit."""
    if held == "float32":
        return lanes.signed(4), "0x7fffffff", "(-2147483647 - 1)"
    return lanes.signed(8), "0x7fffffffffffffffL", "(-9223372036854775807L - 1)"


def where(lanes: Lanes, held: str) -> Syntax:
    """mask ? a : b."""
    plain = operator_text.Syntax("{0} ? {1} : {2}", infix=True)
    if lanes.count == 1 or (BYTES[held] == 4 or held == "bool"):
        return plain
    register, mask = lanes.type(held), lanes.type("bool")
    lanes.need(
        f"where({register})",
        lambda: (
            f"INLINE {register} where({mask} mask, {register} a, {register} b) "
            f"{{ return {_mask_for(lanes, 'mask', BYTES[held])} ? a : b; }}"
        ),
    )
    return operator_text.Syntax("where({0}, {1}, {2})")


def _mask_for(lanes: Lanes, mask: str, size: int) -> str:
    """A mask of 32-bit lanes converted to lanes of `size` bytes."""
    return conversions.cast(lanes, mask, "int32", f"int{8 * size}")


def question(lanes: Lanes, op: str, held: str) -> str:
    """isinf and signbit of floats."""
    if lanes.count == 1:
        if op == "signbit":
            return "(__builtin_signbit({0}) != 0)"
        return "(__builtin_isinf({0}) != 0)"
    register, (integer, magnitude, _), mask = (
        lanes.type(held),
        bits(lanes, held),
        lanes.type("bool"),
    )
    test = f"({integer})x < 0"
    if op == "isinf":
        test = f"({register})(({integer})x & {magnitude}) == {INFINITY[held]}"
    lanes.need(
        f"{op}({register})",
        lambda: (
            f"INLINE {mask} {op}({register} x) "
            f"{{ return {conversions.to_mask(lanes, test, held)}; }}"
        ),
    )
    return f"{op}({{0}})"


def of_floats(lanes: Lanes, op: str, held: str) -> str:
    """One of `FLOAT_FUNCTIONS`."""
    register, end = lanes.type(held), "f" if held == "float32" else ""
    scalar = lanes.count == 1
    if op in _BINARY:
        body = _BINARY[op].format(T=register)
        return function(lanes, op, f"{register} a, {register} b", register, body)
    if scalar and op == "copysign":
        return f"__builtin_{op}{end}({{0}}, {{1}})"
    if scalar and op in ("abs", "fma", "sqrt", *hardware.ROUNDINGS):
        name = {"abs": "fabs", "round": "nearbyint"}.get(op, op)
        operands = {"fma": "{0}, {1}, {2}"}.get(op, "{0}")
        return f"__builtin_{name}{end}({operands})"
    if op == "sign":
        zero = f"0.0{end}" if scalar else f"{register}{{}}"
        one = f"1.0{end}" if scalar else f"{register}{{}} + 1.0{end}"
        body = f"return (x > {zero} ? {one} : {zero}) - (x < {zero} ? {one} : {zero});"
        return function(lanes, op, f"{register} x", register, body)
    if op == "rsqrt":
        root = of_floats(lanes, "sqrt", held).format("x")
        return function(lanes, op, f"{register} x", register, f"return 1.0{end} / {root};")
    if op == "ldexp":
        exp2 = operator_text.form(lanes, "exp2", held, held).text.format("b")
        body = f"return a * {exp2};"
        return function(lanes, op, f"{register} a, {register} b", register, body)
    return _vector_function(lanes, op, held, register, end)


def _vector_function(lanes: Lanes, op: str, held: str, register: str, end: str) -> str:
    integer, magnitude, sign = bits(lanes, held)
    if op == "abs":
        body = f"return ({register})(({integer})x & {magnitude});"
        return function(lanes, op, f"{register} x", register, body)
    if op == "copysign":
        body = f"return ({register})((({integer})a & {magnitude}) | (({integer})b & {sign}));"
        return function(lanes, op, f"{register} a, {register} b", register, body)
    if op == "fma":
        builtin = hardware.fma(lanes, held)
        each = f"__builtin_fma{end}(a[k], b[k], c[k])"
        body = f"return {builtin};" if builtin else loop(lanes, register, each)
        parameters = f"{register} a, {register} b, {register} c"
        return function(lanes, op, parameters, register, body)
    if op == "sqrt":
        builtin, each = hardware.sqrt(lanes, held), f"__builtin_sqrt{end}(x[k])"
    else:
        builtin = hardware.rounding(lanes, held, op)
        each = f"__builtin_{'nearbyint' if op == 'round' else op}{end}(x[k])"
    body = f"return {builtin};" if builtin else loop(lanes, register, each)
    return function(lanes, op, f"{register} x", register, body)


def loop(lanes: Lanes, register: str, each: str) -> str:
    """A body that computes `each` for lane k; the compiler vectorises it if possible."""
    return f"{register} r; for (int k = 0; k < {lanes.count}; k++) r[k] = {each}; return r;"


def if_any(lanes: Lanes, test: str, held: str, far: str) -> str:
    """Statements that return `far` if the comparison `test` of `held` holds in a lane, which is
    rare."""
    if BYTES[held] == 8:
        some = any_wide_lane(lanes, "v")
        return f"{lanes.signed(8)} v = {test}; if (__builtin_expect({some}, 0)) return {far};"
    return (
        f"{lanes.type('bool')} v = {conversions.to_mask(lanes, test, held)}; "
        f"if (__builtin_expect({any_lane(lanes)}, 0)) return {far};"
    )


def unless_all(
    lanes: Lanes, comparisons: Sequence[tuple[str, str, str]], held: str, far: str
) -> str:
    """Statements that return `far` if one of the comparisons of `held` is false in a lane, which is
    rare. Each is two vectors and a sign of `hardware.COMPARISONS` between them."""
    test = hardware.not_all(lanes, held, comparisons)
    if test is not None:
        return f"if (__builtin_expect({test}, 0)) return {far};"
    held_all = (
        f"~({left} > {right})" if sign == "!>" else f"({left} {sign} {right})"
        for left, sign, right in comparisons
    )
    return if_any(lanes, f"~({' & '.join(held_all)})", held, far)


def any_lane(lanes: Lanes) -> str:
    """Whether a lane of the mask `v` is set."""
    count = lanes.count
    each = f"({{ int any = 0; for (int k = 0; k < {count}; k++) any |= v[k]; any; }})"
    return hardware.any_lane(lanes) or each


def any_wide_lane(lanes: Lanes, mask: str) -> str:
    """Whether a lane of a mask of 64-bit lanes is set."""
    each = f"({{ long any = 0; for (int k = 0; k < {lanes.count}; k++) any |= {mask}[k]; any; }})"
    return hardware.any_wide_lane(lanes, mask) or each


_RENAMED = {"abs": "absolute", "round": "round_even"}
"""Prelude functions whose operator name is already a name in C++."""


def function(
    lanes: Lanes, op: str, parameters: str, register: str, body: str, kind: str = "INLINE"
) -> str:
    """Add a function to the prelude and return the text of its call."""
    name = _RENAMED.get(op, op)
    key = f"{name}({parameters})"
    lanes.need(key, lambda: f"{kind} {register} {name}({parameters}) {{ {body} }}")
    arity = parameters.count(",") + 1
    return f"{name}({', '.join(f'{{{place}}}' for place in range(arity))})"


def of_integers(lanes: Lanes, op: str, held: str) -> str:
    """abs, sign, minimum and maximum, shifts, pow. Raises KeyError for other operators."""
    register, unsigned = lanes.type(held), lanes.unsigned(BYTES[held])
    scalar = lanes.count == 1
    two = f"{register} a, {register} b"
    if op in _BINARY:
        symbol = ">" if "max" in op else "<"
        return function(lanes, op, two, register, f"return a {symbol} b ? a : b;")
    if op == "abs":
        if held == "uint8":
            return "{0}"
        negative = f"({register})-x" if scalar else "-x"
        return function(lanes, op, f"{register} x", register, f"return x < 0 ? {negative} : x;")
    if op == "sign":
        body = f"return ({register})((x > 0) - (x < 0));" if scalar else "return (x < 0) - (x > 0);"
        if held == "uint8":
            body = "return x > 0;" if scalar else f"return ({register})(x > 0) & 1;"
        return function(lanes, op, f"{register} x", register, body)
    if op in ("shift_left", "shift_right"):
        return _shift(lanes, op, held, register, unsigned)
    if op == "pow":
        return _integer_power(lanes, held, register)
    raise KeyError(f"{op} is not defined on {held}")


def _shift(lanes: Lanes, op: str, held: str, register: str, unsigned: str) -> str:
    """Shifts beyond the width give 0 to the left and the sign to the right, as in ATen."""
    width, two = 8 * BYTES[held], f"{register} a, {register} b"
    if op == "shift_left":
        body = (
            f"return ({unsigned})b < {width}u ? ({register})(({unsigned})a << (b & {width - 1})) : "
        )
        body += "0;" if lanes.count == 1 else f"{register}{{}};"
        return function(lanes, op, two, register, body)
    most = width if held == "uint8" else width - 1
    if lanes.count == 1:
        body = f"return ({register})(({unsigned})b < {width}u ? a >> b : "
        body += "0);" if held == "uint8" else f"a >> {most});"
        return function(lanes, op, two, register, body)
    full = f"{register}{{}}" if held == "uint8" else f"a >> {most}"
    body = f"return ({unsigned})b < {width} ? a >> (b & {width - 1}) : {full};"
    return function(lanes, op, two, register, body)


def _integer_power(lanes: Lanes, held: str, register: str) -> str:
    """By squaring. Negative exponents give 1 for base 1, +-1 for -1, else 0 (powi in Pow.h)."""
    scalar, signed = SCALARS[held], held != "uint8"
    two = f"{register} a, {register} b"
    if lanes.count == 1:
        negative = ""
        if signed:
            negative = "if (b < 0) return a == 1 ? 1 : a == -1 ? ((b & 1) ? -1 : 1) : 0; "
        body = (
            f"{negative}{scalar} r = 1; while (b) {{ if (b & 1) r = ({scalar})(r * a); "
            f"a = ({scalar})(a * a); b = ({scalar})(b / 2); }} return r;"
        )
        return function(lanes, "pow", two, scalar, body)
    zero, one = f"{register}{{}}", f"{register}{{}} + ({scalar})1"
    start, result = "b", "r"
    if signed:
        start = f"b < 0 ? {zero} : b"
        odd = f"(b & 1) != 0 ? a : {one}"
        result = f"b < 0 ? (a == 1 ? a : (a == -1 ? ({odd}) : {zero})) : r"
    body = (
        f"{register} r = {one}, x = a, n = {start};\n"
        f"  for (;;) {{ {lanes.type('bool')} v = {conversions.to_mask(lanes, 'n != 0', held)};"
        f" if (!({any_lane(lanes)})) break;\n"
        f"    r = (n & 1) != 0 ? r * x : r; x = x * x; n = n >> 1; }}\n"
        f"  return {result};"
    )
    return function(lanes, "pow", two, register, body, "OUTLINE")


def power(lanes: Lanes, base: str, exponent: bool | int | float, held: str) -> str | None:
    """A constant power without pow (pow_tensor_scalar in PowKernel.cpp); None if it needs pow."""
    register, end = lanes.type(held), "f" if held == "float32" else ""
    if exponent == 0:
        return lanes.constant(1, held)
    if exponent == 1:
        return base
    one = f"{register} x"
    if exponent in (2, 3):
        cast = f"({register})" if held in INTEGERS else ""
        name, product = ("square", "x * x") if exponent == 2 else ("cube", "x * x * x")
        return function(lanes, name, one, register, f"return {cast}({product});").format(base)
    if held not in FLOATS:
        return None
    if exponent == 0.5:
        return of_floats(lanes, "sqrt", held).format(base)
    if exponent == -0.5:
        return of_floats(lanes, "rsqrt", held).format(base)
    if exponent == -1:
        return function(lanes, "reciprocal", one, register, f"return 1.0{end} / x;").format(base)
    if exponent == -2:
        body = f"return 1.0{end} / (x * x);"
        return function(lanes, "reciprocal_square", one, register, body).format(base)
    return None
