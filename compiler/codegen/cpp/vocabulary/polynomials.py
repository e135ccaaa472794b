"""float32 math on vectors as inlined polynomials: within 2 ulp, with ATen's answers at the edges.

exp, log and their kin: Cephes (expf.c, logf.c), reduced by multiples of log 2. tanh, erf, sin and
cos: minimax polynomials of N. Juffa. A constant stands first in a comparison that clamps:
lo > x ? lo : x keeps NaN and is one instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from compiler.codegen.cpp.vocabulary import arithmetic, conversions, hardware, powers
from compiler.codegen.cpp.vocabulary.reductions import reduce

if TYPE_CHECKING:
    from compiler.codegen.cpp.vocabulary.lanes import Lanes

_FUNCTIONS: dict[str, Callable[[Lanes, str], str]] = {}


def function(lanes: Lanes, op: str, held: str) -> str | None:
    """The text of a call; None where libm computes `op`."""
    if held != "float32" or lanes.count == 1:
        return None
    if op == "pow":
        register = lanes.type(held)
        body = powers.body(lanes, register)
        return arithmetic.function(lanes, op, f"{register} x, {register} y", register, body)
    if op not in _FUNCTIONS:
        return None
    if op in ("sin", "cos") and not lanes.isa.fma:
        return None
    register = lanes.type(held)
    body = _FUNCTIONS[op](lanes, register)
    return arithmetic.function(lanes, op, f"{register} x", register, body)


def _body(op: str) -> Callable[[Callable[[Lanes, str], str]], Callable[[Lanes, str], str]]:
    def note(body: Callable[[Lanes, str], str]) -> Callable[[Lanes, str], str]:
        _FUNCTIONS[op] = body
        return body

    return note


def multiply_add(lanes: Lanes, register: str) -> None:
    """`multiply_add(a, b, c)`: one rounding where that is an instruction, else two."""
    body = "return a * b + c;"
    if lanes.isa.fma:
        body = f"return {arithmetic.of_floats(lanes, 'fma', 'float32').format('a', 'b', 'c')};"
    two = f"{register} a, {register} b"
    arithmetic.function(lanes, "multiply_add", f"{two}, {register} c", register, body)
    arithmetic.function(
        lanes,
        "multiply_add",
        f"{two}, float c",
        register,
        f"return multiply_add(a, b, {register}{{}} + c);",
    )
    arithmetic.function(
        lanes,
        "multiply_add",
        f"{register} a, float b, {register} c",
        register,
        f"return multiply_add(a, {register}{{}} + b, c);",
    )


def _horner(name: str, variable: str, coefficients: Sequence[str], register: str) -> str:
    """Lines that evaluate a polynomial; the highest power's coefficient first."""
    high, second, *rest = coefficients
    lines = [
        f"{register} {name} = multiply_add({variable}, {high}, {register}{{}} + {second});",
        *(f"{name} = multiply_add({name}, {variable}, {value});" for value in rest),
    ]
    return " ".join(lines)


def _nearest(lanes: Lanes, register: str) -> None:
    """`nearest(x)`: the nearest whole number of |x| < 2^22."""
    builtin = hardware.rounding(lanes, "float32", "round")
    body = f"return {builtin};" if builtin else "return (x + 12582912.0f) - 12582912.0f;"
    arithmetic.function(lanes, "nearest", f"{register} x", register, body)


def _scale(lanes: Lanes, register: str) -> None:
    """`scale(x, n)`: x * 2^n for whole n, rounded once."""
    builtin, i32 = hardware.scale(lanes), lanes.type("int32")
    body = f"return {builtin};"
    if builtin is None:
        body = (
            f"{i32} k = {conversions.cast(lanes, 'n', 'float32', 'int32')}, h = k >> 1, g = k - h; "
            f"return x * ({register})((h + 127) << 23) * ({register})((g + 127) << 23);"
        )
    arithmetic.function(lanes, "scale", f"{register} x, {register} n", register, body)


_EXP = (
    "1.9875691500e-4f",
    "1.3981999507e-3f",
    "8.3334519073e-3f",
    "4.1665795894e-2f",
    "1.6666665459e-1f",
    "5.0000001201e-1f",
)
"""(exp(r) - 1 - r) / r^2 for |r| <= log(2)/2."""


def _exponent(lanes: Lanes, register: str, low: str, high: str | None) -> str:
    """Lines: x clamped, n = nearest(x / log 2), r = x - n log 2, p the polynomial."""
    multiply_add(lanes, register)
    _nearest(lanes, register)
    _scale(lanes, register)
    upper = f" x = {register}{{}} + {high} < x ? {register}{{}} + {high} : x;" if high else ""
    return (
        f"x = {register}{{}} + {low} > x ? {register}{{}} + {low} : x;{upper}\n"
        f"  {register} n = nearest(x * 1.44269504f);\n"
        f"  {register} r = multiply_add(n, -0.693359375f, x);"
        f" r = multiply_add(n, 2.12194440e-4f, r);\n"
        f"  {_horner('p', 'r', _EXP, register)}"
    )


_EXP_RESULT = "return scale(multiply_add(p, r * r, r) + 1.0f, n);"


@_body("exp")
def _exp(lanes: Lanes, register: str) -> str:
    return f"{_exponent(lanes, register, '-104.0f', '89.0f')}\n  {_EXP_RESULT}"


@_body("exp_nonpositive")
def _exp_nonpositive(lanes: Lanes, register: str) -> str:
    """x <= 0, as of x - max(x): no clamp above."""
    return f"{_exponent(lanes, register, '-104.0f', None)}\n  {_EXP_RESULT}"


@_body("exp2")
def _exp2(lanes: Lanes, register: str) -> str:
    multiply_add(lanes, register)
    _nearest(lanes, register)
    _scale(lanes, register)
    low, high = f"{register}{{}} - 151.0f", f"{register}{{}} + 129.0f"
    return (
        f"x = {low} > x ? {low} : x; x = {high} < x ? {high} : x;\n"
        f"  {register} n = nearest(x), r = (x - n) * 0.693147181f;\n"
        f"  {_horner('p', 'r', _EXP, register)}\n  {_EXP_RESULT}"
    )


@_body("expm1")
def _expm1(lanes: Lanes, register: str) -> str:
    # half of 2^n, so that n = 128 does not overflow before the sum
    return (
        f"{register} whole = x;\n  {_exponent(lanes, register, '-104.0f', '89.0f')}\n"
        f"  {register} t = scale({register}{{}} + 0.5f, n);\n"
        f"  {register} y = multiply_add(multiply_add(p, r * r, r), t, t - 0.5f);\n"
        f"  return whole == 0.0f ? whole : y + y;"
    )


@_body("sigmoid")
def _sigmoid(lanes: Lanes, register: str) -> str:
    function(lanes, "exp", "float32")
    return "return 1.0f / (1.0f + exp(-x));"


_LOG = (
    "7.0376836292e-2f",
    "-1.1514610310e-1f",
    "1.1676998740e-1f",
    "-1.2420140846e-1f",
    "1.4249322787e-1f",
    "-1.6668057665e-1f",
    "2.0000714765e-1f",
    "-2.4999993993e-1f",
    "3.3333331174e-1f",
)
"""(log(1+m) - m + m^2/2) / m^3 for sqrt(1/2) <= 1+m < sqrt(2)."""


def _logarithm(lanes: Lanes, register: str) -> str:
    """Lines: f the exponent of x, 1+m its fraction, z = m^2, y = log(1+m) - m."""
    multiply_add(lanes, register)
    i32 = lanes.type("int32")
    return (
        f"{i32} small = x < 1.17549435e-38f; {register} v = small ? x * 8388608.0f : x;\n"
        f"  {i32} e = ((({i32})v >> 23) & 255) - 126 - (small & 23);\n"
        f"  {register} m = ({register})((({i32})v & 0x807fffff) | 0x3f000000);\n"
        f"  {i32} low = m < 0.707106781f; e += low; m = low ? m + m - 1.0f : m - 1.0f;\n"
        f"  {register} f = {conversions.cast(lanes, 'e', 'int32', 'float32')}, z = m * m;\n"
        f"  {_horner('p', 'm', _LOG, register)}\n"
        f"  {register} y = p * m * z;"
    )


def _log_edges(register: str, result: str) -> str:
    """0, negative numbers, infinity and NaN."""
    infinity, nan = "__builtin_inff()", '__builtin_nanf("")'
    return (
        f"return x > 0.0f ? (x < {infinity} ? {result} : x)"
        f" : (x == 0.0f ? {register}{{}} - {infinity} : {register}{{}} + {nan});"
    )


@_body("log")
def _log(lanes: Lanes, register: str) -> str:
    return (
        f"{_logarithm(lanes, register)}\n"
        f"  y = multiply_add(f, -2.12194440e-4f, y); y = multiply_add(z, -0.5f, y);\n"
        f"  y = multiply_add(f, 0.693359375f, m + y);\n  {_log_edges(register, 'y')}"
    )


@_body("log2")
def _log2(lanes: Lanes, register: str) -> str:
    return (
        f"{_logarithm(lanes, register)} y = multiply_add(z, -0.5f, y);\n"
        f"  {register} w = y * 0.44269504f; w = multiply_add(m, 0.44269504f, w);\n"
        f"  y = ((w + y) + m) + f;\n  {_log_edges(register, 'y')}"
    )


@_body("log10")
def _log10(lanes: Lanes, register: str) -> str:
    return (
        f"{_logarithm(lanes, register)} y = multiply_add(z, -0.5f, y);\n"
        f"  {register} w = (m + y) * 7.00731903251827651129e-4f;\n"
        f"  w = multiply_add(y, 4.3359375e-1f, w); w = multiply_add(m, 4.3359375e-1f, w);\n"
        f"  w = multiply_add(f, 2.48745663981195213739e-4f, w);"
        f" y = multiply_add(f, 3.0078125e-1f, w);\n  {_log_edges(register, 'y')}"
    )


@_body("log1p")
def _log1p(lanes: Lanes, register: str) -> str:
    """1+x is scaled by a power of two chosen from its rounding; 1+m itself is never rounded."""
    multiply_add(lanes, register)
    i32, infinity = lanes.type("int32"), "__builtin_inff()"
    return (
        f"{i32} e = (({i32})(x + 1.0f) - 0x3f3504f3) & 0xff800000;\n"
        f"  {register} s = ({register})(0x40800000 - e);\n"
        f"  {register} m = multiply_add(s * x, 0.25f, multiply_add(s, {register}{{}} + 0.25f,"
        f" {register}{{}} - 1.0f));\n"
        f"  {register} f = {conversions.cast(lanes, 'e >> 23', 'int32', 'float32')}, z = m * m;\n"
        f"  {_horner('p', 'm', _LOG, register)}\n"
        f"  {register} y = p * m * z; y = multiply_add(f, -2.12194440e-4f, y);\n"
        f"  y = multiply_add(z, -0.5f, y); y = multiply_add(f, 0.693359375f, m + y);\n"
        f"  y = x > -1.0f ? (x < {infinity} ? y : x)"
        f' : (x == -1.0f ? {register}{{}} - {infinity} : {register}{{}} + __builtin_nanf(""));\n'
        f"  return x == 0.0f ? x : y;"
    )


@_body("tanh")
def _tanh(lanes: Lanes, register: str) -> str:
    function(lanes, "exp_nonpositive", "float32")
    absolute = arithmetic.of_floats(lanes, "abs", "float32").format("x")
    far = arithmetic.of_floats(lanes, "copysign", "float32")
    signed = far.format("1.0f - (e + e) / (1.0f + e)", "x")
    near = ("1.57394409e-2f", "-5.23025580e-2f", "1.33152470e-1f", "-3.33327681e-1f", "0.0f")
    return (
        f"{register} t = {absolute}, s = x * x, e = exp_nonpositive(t * -2.0f);\n"
        f"  {_horner('r', 's', near, register)}\n"
        f"  return t > 0.6f ? {signed} : multiply_add(r, x, x);"
    )


@_body("erf")
def _erf(lanes: Lanes, register: str) -> str:
    function(lanes, "exp_nonpositive", "float32")
    absolute = arithmetic.of_floats(lanes, "abs", "float32").format("x")
    signed = arithmetic.of_floats(lanes, "copysign", "float32").format("1.0f - tail", "x")
    four = f"{register}{{}} + 4.0f"
    near = (
        "-5.96761703e-4f",
        "4.99119423e-3f",
        "-2.67681349e-2f",
        "1.12819925e-1f",
        "-3.76125336e-1f",
        "1.28379166e-1f",
    )
    return (
        f"{register} t = {absolute}, s = x * x; t = {four} < t ? {four} : t;\n"
        f"  {_horner('r', 's', near, register)}\n"
        f"  {register} q = multiply_add(t, -1.72853470e-5f, {register}{{}} + 3.83197126e-4f);\n"
        f"  {register} u = multiply_add(t, -3.88396438e-3f, {register}{{}} + 2.42546219e-2f);\n"
        f"  q = multiply_add(q, t * t, u); q = multiply_add(q, t, -1.06777877e-1f);\n"
        f"  q = multiply_add(q, t, -6.34846687e-1f); q = multiply_add(q, t, -1.28717512e-1f);\n"
        f"  {register} tail = exp_nonpositive(multiply_add(q, t, -t));\n"
        f"  return t > 0.927734375f ? {signed} : multiply_add(r, x, x);"
    )


def _circular(lanes: Lanes, register: str, op: str) -> str:
    """Reduced by multiples of pi/2 in three parts, exact enough up to 71476; beyond it libm."""
    multiply_add(lanes, register)
    i32 = lanes.type("int32")
    absolute = arithmetic.of_floats(lanes, "abs", "float32").format("x")
    large = reduce(lanes, "any", f"{absolute} > 71476.0f", "bool")
    slow = arithmetic.function(
        lanes,
        f"{op}_large",
        f"{register} x",
        register,
        arithmetic.loop(lanes, register, f"__builtin_{op}f(x[k])"),
        "OUTLINE",
    ).format("x")
    sine = ("2.86567956e-6f", "-1.98559923e-4f", "8.33338592e-3f", "-1.66666672e-1f")
    cosine = ("2.44677067e-5f", "-1.38877297e-3f", "4.16666567e-2f", "-0.5f", "1.0f")
    quadrant = f"({i32})n" if op == "sin" else f"({i32})n + 1"
    return (
        f"if ({large}) return {slow};\n"
        f"  {register} n = multiply_add(x, {register}{{}} + 0.636619747f,"
        f" {register}{{}} + 12582912.0f);\n"
        f"  {i32} q = {quadrant}; n = n - 12582912.0f;\n"
        f"  {register} r = multiply_add(n, -0x1.921fb0p+00f, x);"
        f" r = multiply_add(n, -0x1.5110b4p-22f, r); r = multiply_add(n, -0x1.846988p-48f, r);\n"
        f"  {register} s = r * r;\n  {_horner('a', 's', sine, register)}"
        f" a = multiply_add(a, r * s + 0.0f, r);\n"
        f"  {_horner('b', 's', cosine, register)}\n"
        f"  {register} y = (q & 1) != 0 ? b : a;\n"
        f"  return ({register})(({i32})y ^ ((q & 2) << 30));"
    )


@_body("sin")
def _sin(lanes: Lanes, register: str) -> str:
    return _circular(lanes, register, "sin")


@_body("cos")
def _cos(lanes: Lanes, register: str) -> str:
    return _circular(lanes, register, "cos")
