"""Rounding division and remainders, as in BinaryOpsKernel.cpp and c10/util/generic_math.h."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import arithmetic, conversions, hardware
from tcw.compiler.codegen.cpp.vocabulary.types import DIVISION_BY_ZERO, INFINITY, SCALARS
from tcw.compiler.loops.dtypes import BYTES

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes

_INTEGER = {
    "trunc_divide": "return ({T})(a / b);",
    "fmod": "return ({T})(a % b);",
    "floor_divide": "{T} q = a / b, r = a % b; "
    "return ({T})(r != 0 && (r < 0) != (b < 0) ? q - 1 : q);",
    "remainder": "{T} r = a % b; return ({T})(r != 0 && (r < 0) != (b < 0) ? r + b : r);",
}
_UNSIGNED = {"floor_divide": _INTEGER["trunc_divide"], "remainder": _INTEGER["fmod"]}


def of_integers(lanes: Lanes, op: str, held: str) -> str:
    """A call that reports a zero divisor through `error`, an `int*` of every kernel that divides
    integers; the least integer divided by -1 wraps."""
    scalar = SCALARS[held]
    body = (_UNSIGNED if held == "uint8" else {}).get(op, _INTEGER[op]).format(T=scalar)
    minus_one = ""
    if held != "uint8":
        quotient = f"({scalar})-a" if op.endswith("divide") else "0"
        minus_one = f"if (b == -1) return {quotient}; "
    arithmetic.function(
        lanes,
        op,
        f"{scalar} a, {scalar} b, int* error",
        scalar,
        f"if (b == 0) {{ *error = {DIVISION_BY_ZERO}; return 0; }} {minus_one}{body}",
    )
    if lanes.count > 1:
        _on_vectors(lanes, op, held)
    return f"{op}({{0}}, {{1}}, error)"


QUOTIENTS = {"int64": "float64", "int32": "float64"}
"""Integer -> the float that holds its quotients; float32 for shorter ones."""
_CORRECTED = {
    "trunc_divide": "return t;",
    "fmod": "return a - t * b;",
    "floor_divide": "{T} r = a - t * b; return t + ((r != 0) & ((r ^ b) < 0));",
    "remainder": "{T} r = a - t * b; return r + ((r != 0) & ((r ^ b) < 0) & b);",
}
"""From the quotient t that was rounded to zero; a true comparison is -1."""


def _on_vectors(lanes: Lanes, op: str, held: str) -> None:
    """Define `op` on vectors: by floats, whose truncated quotient is exact, or lane by lane.

    A quotient that is not an integer is at least 1/|a| of itself away from the next one. That is
    more than the float's rounding for all numbers up to 32 bits, and for those below 2^52.
    """
    register = lanes.type(held)
    parameters = f"{register} a, {register} b, int* error"
    each = arithmetic.loop(lanes, register, f"{op}(a[k], b[k], error)")
    wide = QUOTIENTS.get(held, "float32")
    if BYTES[wide] * lanes.count > lanes.isa.vector_bytes:
        _on_vectors(lanes.vocabulary.lanes(lanes.count // 2), op, held)
        halves = by_halves(lanes, f"{op}({{a}}, {{b}}, error)")
        arithmetic.function(lanes, op, parameters, register, halves)
        return
    if held == "int64" and not hardware.is_avx512(lanes):
        # no instruction converts 64-bit integers to floats
        arithmetic.function(lanes, op, parameters, register, each, "OUTLINE")
        return
    far = ""
    if held == "int64":
        outline = arithmetic.function(
            lanes, f"{op}_far", parameters, register, each, "OUTLINE"
        ).format("a", "b", "error")
        far = f"  {if_too_large(lanes, outline)}\n"
    a, b = (conversions.cast(lanes, name, held, wide) for name in "ab")
    quotient = conversions.cast(lanes, f"{a} / {b}", wide, held)
    report = (
        f"{{ {lanes.type('bool')} v = {conversions.to_mask(lanes, 'zero', held)};"
        f" if (__builtin_expect({arithmetic.any_lane(lanes)}, 0)) *error = {DIVISION_BY_ZERO}; }}"
    )
    signed = lanes.signed(BYTES[held])
    body = (
        f"{signed} zero = b == 0; {report}\n"
        f"  b = zero ? {register}{{}} + ({SCALARS[held]})1 : b; a = zero ? {register}{{}} : a;\n"
        f"{far}  {register} t = {quotient};\n"
        f"  {_corrected(op, held, register)}"
    )
    arithmetic.function(lanes, op, parameters, register, body)


def if_too_large(lanes: Lanes, far: str) -> str:
    """Statements that return `far` if an element of the int64 vectors a or b has no exact float."""
    unsigned, limit = lanes.unsigned(8), 1 << 52
    near = " & ".join(f"(({unsigned})({x} + {limit}L) < {2 * limit}ul)" for x in "ab")
    return arithmetic.if_any(lanes, f"~({near})", "int64", far)


def _corrected(op: str, held: str, register: str) -> str:
    op = (
        {"floor_divide": "trunc_divide", "remainder": "fmod"}.get(op, op) if held == "uint8" else op
    )
    return _CORRECTED[op].format(T=register)


def by_halves(lanes: Lanes, call: str) -> str:
    """The body of a function of vectors a and b: `call`, with {a} and {b}, for half as many lanes
    each."""
    half = lanes.count // 2

    def part(name: str, start: int) -> str:
        order = ", ".join(str(start + lane) for lane in range(half))
        return f"__builtin_shufflevector({name}, {name}, {order})"

    low, high = (call.format(a=part("a", start), b=part("b", start)) for start in (0, half))
    order = ", ".join(map(str, range(lanes.count)))
    return f"return __builtin_shufflevector({low}, {high}, {order});"


def by_constant(lanes: Lanes, op: str, value: str, divisor: int, held: str) -> str | None:
    """Division by a positive constant, as a shift or multiplication instead of a division.

    None for short integers, which C++ would divide as int, and for vectors of 64 bits, whose
    products have no upper halves: floats are faster.
    """
    if BYTES[held] < 4:
        return None
    register = lanes.type(held)
    end = "L" if held == "int64" else ""
    power_of_two = divisor & (divisor - 1) == 0
    if held == "int64" and not power_of_two and lanes.count > 1 and hardware.is_avx512(lanes):
        return None
    name = f"{op}_by_{divisor}"
    if op in ("floor_divide", "remainder") and power_of_two:
        shift = divisor.bit_length() - 1
        result = f"x >> {shift}" if op == "floor_divide" else f"x & {divisor - 1}{end}"
        body = f"return {result};"
    elif op in ("trunc_divide", "fmod"):
        body = f"return x {'/' if op == 'trunc_divide' else '%'} {divisor}{end};"
    else:
        # a true comparison is -1 in a vector's lane, but 1 in a scalar
        fix = "+ (r < 0)" if lanes.count > 1 else "- (r < 0)"
        adjust = f"r < 0 ? r + {divisor}{end} : r" if op == "remainder" else f"q {fix}"
        body = f"{register} q = x / {divisor}{end}, r = x - q * {divisor}{end}; return {adjust};"
    return arithmetic.function(lanes, name, f"{register} x", register, body).format(value)


def of_floats(lanes: Lanes, op: str, held: str) -> str:
    """fmod is exact; the others are derived from it as in ATen."""
    register, end = lanes.type(held), "f" if held == "float32" else ""
    two = f"{register} a, {register} b"
    if op == "trunc_divide":
        trunc = arithmetic.of_floats(lanes, "trunc", held).format("a / b")
        return arithmetic.function(lanes, op, two, register, f"return {trunc};")
    fmod = f"__builtin_fmod{end}({{0}}, {{1}})" if lanes.count == 1 else _fmod(lanes, held)
    if op == "fmod":
        return fmod
    zero = f"0.0{end}" if lanes.count == 1 else f"{register}{{}}"
    start = f"{register} r = {fmod.format('a', 'b')}; "
    apart = "(r != 0) & ((r < 0) ^ (b < 0))"
    if op == "remainder":
        body = f"{start}return {apart} ? r + b : r;"
        return arithmetic.function(lanes, op, two, register, body)
    floor = arithmetic.of_floats(lanes, "floor", held).format("q")
    signed = arithmetic.of_floats(lanes, "copysign", held).format(zero, "a / b")
    body = (
        f"{start}{register} q = (a - r) / b; q = {apart} ? q - 1.0{end} : q; "
        f"{register} f = {floor}; f = q - f > 0.5{end} ? f + 1.0{end} : f; "
        f"f = q != 0 ? f : {signed}; return b == 0 ? a / b : f;"
    )
    if lanes.count == 1 or not lanes.isa.fma:
        return arithmetic.function(lanes, op, two, register, body)
    far = arithmetic.function(lanes, "floor_divide_far", two, register, body, "OUTLINE")
    return arithmetic.function(lanes, op, two, register, _near_floor(lanes, held, far))


def _near_floor(lanes: Lanes, held: str, far: str) -> str:
    """The body of a floor division that calls `far` only if a quotient is large, or no number.

    The floor of the rounded quotient is too large by one if the quotient was rounded up to a whole
    number. Then the remainder has the sign opposite to the divisor's: a fused multiply-add gets
    that right. Below the limit, ATen's longer way has the same result: its roundings are smaller
    than the half that it corrects.
    """
    register, (integer, _, sign) = lanes.type(held), arithmetic.bits(lanes, held)
    end = "f" if held == "float32" else ""
    floor = arithmetic.of_floats(lanes, "floor", held).format("q")
    fma = arithmetic.of_floats(lanes, "fma", held).format("-f", "b", "a")
    absolute = arithmetic.of_floats(lanes, "abs", held).format("q")
    near = ((absolute, "<", f"({register}{{}} + {_NEAR[held]})"), ("r", "==", "r"))
    if_far = arithmetic.unless_all(lanes, near, held, far.format("a", "b"))
    return (
        f"{register} q = a / b, f = {floor}, r = {fma};\n"
        f"  {if_far}\n"
        f"  {register} s = ({register})(({integer})r ^ (({integer})b & {sign}));\n"
        f"  return s < 0 ? f - 1.0{end} : f;"
    )


_NEAR = {"float32": "4194304.0f", "float64": "2251799813685248.0"}
"""Quotients that are exact to a quarter."""


def _fmod(lanes: Lanes, held: str) -> str:
    """libm's fmod for each lane, which takes a step per bit of the quotient; or, if all quotients
    are small, from the rounded quotient, which is off by one at most. The remainder is
    representable, and so is that of a quotient that is off by one: a fused multiply-add is exact.
    """
    register, end = lanes.type(held), "f" if held == "float32" else ""
    two = f"{register} a, {register} b"
    each = arithmetic.loop(lanes, register, f"__builtin_fmod{end}(a[k], b[k])")
    if not lanes.isa.fma:
        return arithmetic.function(lanes, "fmod", two, register, each, "OUTLINE")
    far = arithmetic.function(lanes, "fmod_far", two, register, each, "OUTLINE")
    absolute = arithmetic.of_floats(lanes, "abs", held)
    trunc = arithmetic.of_floats(lanes, "trunc", held).format("x / y")
    fma = arithmetic.of_floats(lanes, "fma", held).format("-q", "y", "x")
    signed = arithmetic.of_floats(lanes, "copysign", held).format("r", "a")
    limits = {"q": _NEAR[held], "y": INFINITY[held]}
    near = [(name, "<", f"({register}{{}} + {most})") for name, most in limits.items()]
    if_far = arithmetic.unless_all(lanes, near, held, far.format("a", "b"))
    body = (
        f"{register} x = {absolute.format('a')}, y = {absolute.format('b')}, q = {trunc};\n"
        f"  {if_far}\n"
        f"  {register} r = {fma}; r = r < 0 ? r + y : r; r = r >= y ? r - y : r;\n"
        f"  return {signed};"
    )
    return arithmetic.function(lanes, "fmod", two, register, body)
