"""Conversions between dtypes in registers, as in ATen's c10/util/TypeCast.h on x86.

A float is converted with the machine's truncating instruction: to 64 bits for int64 and uint8, to
32 bits for other integers, and then to its low bits. Out-of-range values and NaN give the least
integer of that width.

bfloat16 and float16 are 16 bits in memory and float32 in registers. They are rounded to nearest
even, as in c10/util/BFloat16.h and Half.h; every NaN becomes the quiet NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import hardware, resizing
from tcw.compiler.codegen.cpp.vocabulary.types import CODES, SCALARS
from tcw.compiler.loops.dtypes import BYTES, FLOATS, REDUCED, compute_dtype

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes

_NARROW = frozenset({"int16", "int8", "uint8"})


def _by_way_of(source: str, dtype: str) -> str | None:
    """The intermediate dtype of a conversion in two steps, or None."""
    if source in FLOATS and dtype in _NARROW:
        # a float32 beyond 32 bits is a multiple of 256, so its low byte is 0 either way
        return "int64" if dtype == "uint8" and source == "float64" else "int32"
    if source in _NARROW and dtype in FLOATS:
        return "int32"
    return None


def cast(lanes: Lanes, value: str, source: str, dtype: str) -> str:
    """Convert a register between number dtypes; neither is bool nor a 16-bit float."""
    if source == dtype:
        return value
    if lanes.count == 1:
        between = "(long)" if source in FLOATS and dtype == "uint8" else ""
        between = between or ("(int)" if source in FLOATS and dtype in _NARROW else "")
        return f"({SCALARS[dtype]}){between}({value})"
    register, target, name = lanes.type(source), lanes.type(dtype), f"to_{CODES[dtype]}"

    def text() -> str:
        between = _by_way_of(source, dtype)
        if between:
            result = cast(lanes, cast(lanes, "x", source, between), between, dtype)
        else:
            builtin = resizing.resize(lanes, source, dtype)
            builtin = builtin or resizing.between_floats(lanes, source, dtype)
            result = builtin or f"__builtin_convertvector(x, {target})"
        if source == "int64" and _by_exponent(lanes, dtype):
            far = f"OUTLINE {target} {name}_far({register} x) {{ return {result}; }}\n"
            return f"{far}INLINE {target} {name}({register} x) {{ {_near_zero(lanes, dtype)} }}"
        return f"INLINE {target} {name}({register} x) {{ return {result}; }}"

    lanes.need(f"{name}({register})", text)
    return f"{name}({value})"


def _by_exponent(lanes: Lanes, dtype: str) -> bool:
    """Whether 64-bit integers become floats without an instruction for it."""
    return (
        dtype in FLOATS and lanes.isa.builtins and lanes.count == 4 and lanes.isa.vector_bytes == 32
    )


def _near_zero(lanes: Lanes, dtype: str) -> str:
    """The body of a conversion of int64: below 2^51, the bits of the float 1.5 * 2^52 + x are those
    of 1.5 * 2^52, plus x. GCC converts one lane after another."""
    i64, f64 = lanes.type("int64"), lanes.type("float64")
    some = hardware.any_wide_lane(lanes, "v")
    wide = f"({f64})(t + {0x4338000000000000 - (1 << 51)}L) - 0x1.8p52"
    result = wide if dtype == "float64" else cast(lanes, wide, "float64", dtype)
    return (
        f"{i64} t = x + {1 << 51}L, v = t | ({(1 << 52) - 1}L - t); "
        f"if (__builtin_expect({some}, 0)) return to_{CODES[dtype]}_far(x); return {result};"
    )


def to_mask(lanes: Lanes, comparison: str, dtype: str) -> str:
    """The result of comparing two registers of `dtype`, as a bool register."""
    size = BYTES[compute_dtype(dtype)]
    if lanes.count == 1 or size == 4:
        return comparison
    mask = lanes.type("bool")
    compared = lanes.signed(size)

    def text() -> str:
        builtin = resizing.resize(lanes, f"int{8 * size}", "int32")
        result = builtin or f"__builtin_convertvector(x, {mask})"
        return f"INLINE {mask} to_mask({compared} x) {{ return {result}; }}"

    lanes.need(f"to_mask({compared})", text)
    return f"to_mask({comparison})"


def convert(lanes: Lanes, value: str, source: str, dtype: str) -> str:
    """The value converted to another dtype's register, as in ATen. To a 16-bit float it rounds,
    although the register stays float32."""
    if source == dtype:
        return value
    held = compute_dtype(source)
    if dtype == "bool":
        zero = "0" if held != "bool" else ""
        return to_mask(lanes, f"({value} != {zero})", held)
    if held == "bool":
        if lanes.count == 1:
            return f"({SCALARS[compute_dtype(dtype)]})({value})"
        return cast(lanes, f"-({value})", "int32", compute_dtype(dtype))
    result = cast(lanes, value, held, compute_dtype(dtype))
    return rounded(lanes, dtype, result) if dtype in REDUCED else result


def load_converted(
    lanes: Lanes, source: str, dtype: str, pointer: str, stride: str | None, count: str | None
) -> str:
    """Elements of a `source` that is too wide for this many lanes, converted to `dtype`. A `stride`
    of None is 1.

    A whole vector as two converted halves; a part of one, or strided ones, lane by lane. Lanes from
    `count` on are 0 without reading.
    """
    name, element, register = (
        f"load{lanes.suffix}_{CODES[dtype]}",
        lanes.storage(source),
        lanes.type(dtype),
    )
    if stride is None and count is None:
        lanes.need(f"{name}({element})", lambda: _halves(lanes, source, dtype, name))
        return f"{name}({pointer})"

    def text() -> str:
        scalar = lanes.vocabulary.lanes(1)
        one = cast(scalar, "p[lane * stride]", source, dtype)
        return (
            f"INLINE {register} {name}(const {element}* p, long stride, long count) "
            f"{{ {register} raw = {{}}; "
            f"for (long lane = 0; lane < count; lane++) raw[lane] = {one}; return raw; }}"
        )

    lanes.need(f"{name}({element}, stride, count)", text)
    return f"{name}({pointer}, {stride or 1}, {count or lanes.count})"


def _halves(lanes: Lanes, source: str, dtype: str, name: str) -> str:
    size = lanes.count // 2
    half = lanes.vocabulary.lanes(size)
    parts = []
    for start in ("p", f"p + {size}"):
        wide = half.load(source, start)
        parts.append(cast(half, wide, source, dtype))
    places = ", ".join(map(str, range(lanes.count)))
    return (
        f"INLINE {lanes.type(dtype)} {name}(const {lanes.storage(source)}* p) "
        f"{{ return __builtin_shufflevector({parts[0]}, {parts[1]}, {places}); }}"
    )


def _name(dtype: str) -> str:
    return "bf16" if dtype == "bfloat16" else "half"


def _bits(lanes: Lanes, target: str, value: str) -> str:
    """The bits reinterpreted as another type of the same size."""
    if lanes.count == 1:
        return f"__builtin_bit_cast({target}, {value})"
    return f"({target})({value})"


def _halfwords(lanes: Lanes) -> tuple[str, str, str, str]:
    """The types of float32 lanes, of their unsigned bits, of 16-bit lanes; and u32 from u16."""
    u16, u32 = lanes.unsigned(2), lanes.unsigned(4)
    wide = "(unsigned)bits" if lanes.count == 1 else resizing.widen_u16(lanes, "bits")
    return lanes.type("float32"), u32, u16, wide


def expand(lanes: Lanes, dtype: str, raw: str) -> str:
    """16-bit lanes as float32."""
    name = f"{_name(dtype)}_to_f32"

    def text() -> str:
        f32, u32, u16, wide = _halfwords(lanes)
        head = f"INLINE {f32} {name}({u16} bits)"
        if dtype == "bfloat16":
            return f"{head} {{ return {_bits(lanes, f32, f'{wide} << 16')}; }}"
        builtin = resizing.half_to_f32(lanes)
        if builtin:
            return f"{head} {{ return {builtin}; }}"
        value = _bits(lanes, f32, "(u & 0x7fffu) << 13")
        back = _bits(lanes, u32, "f")
        result = _bits(lanes, f32, "r | ((u & 0x8000u) << 16)")
        # 2^112 adjusts the exponent's bias, for denormals too; a result of 65536 or more was an
        # infinity or a NaN
        return (
            f"{head} {{\n  {u32} u = {wide}; {f32} f = {value} * 0x1p112f;\n"
            f"  {u32} r = {back}; r = f >= 65536.0f ? (r | 0x7f800000u) : r;\n"
            f"  return {result};\n}}"
        )

    lanes.need(f"{name}({lanes.count})", text)
    return f"{name}({raw})"


def round_words(lanes: Lanes) -> None:
    """Define `bf16_words`: float32 bits whose upper half is the rounded bfloat16."""

    def text() -> str:
        f32, u32 = lanes.type("float32"), lanes.unsigned(4)
        quiet = "0x7fc00000u" if lanes.count == 1 else f"{u32}{{}} + 0x7fc00000u"
        return (
            f"INLINE {u32} bf16_words({f32} x) {{\n  {u32} u = {_bits(lanes, u32, 'x')};\n"
            f"  {u32} r = u + 0x7fffu + ((u >> 16) & 1u);\n  return x == x ? r : {quiet};\n}}"
        )

    lanes.need(f"bf16_words({lanes.count})", text)


def round_bits(lanes: Lanes, dtype: str, value: str) -> str:
    """float32 lanes rounded to 16 bits."""
    name = f"f32_to_{_name(dtype)}"
    if dtype == "bfloat16":
        round_words(lanes)

    def text() -> str:
        f32, u32, u16, _ = _halfwords(lanes)
        head = f"INLINE {u16} {name}({f32} x)"

        def narrow(words: str) -> str:
            return f"({u16})({words})" if lanes.count == 1 else resizing.narrow_u32(lanes, words)

        if dtype == "bfloat16":
            return f"{head} {{ return {narrow('bf16_words(x) >> 16')}; }}"
        builtin = resizing.f32_to_half(lanes)
        if builtin:
            return f"{head} {{ return {builtin}; }}"
        zero = "" if lanes.count == 1 else f"{u32}{{}} + "
        small = _bits(lanes, u32, f"{_bits(lanes, f32, 'u')} + 0.5f")
        return (
            f"{head} {{\n  {u32} w = {_bits(lanes, u32, 'x')}, u = w & 0x7fffffffu;\n"
            f"  {u32} huge = u > 0x7f800000u ? {zero}0x7e00u : {zero}0x7c00u;\n"
            f"  {u32} tiny = {small} - 0x3f000000u;\n"
            f"  {u32} r = (u - 0x38000000u + 0xfffu + ((u >> 13) & 1u)) >> 13;\n"
            f"  r = u < 0x38800000u ? tiny : r; r = u >= 0x47800000u ? huge : r;\n"
            f"  return {narrow('r | ((w >> 16) & 0x8000u)')};\n}}"
        )

    lanes.need(f"{name}({lanes.count})", text)
    return f"{name}({value})"


def rounded(lanes: Lanes, dtype: str, value: str) -> str:
    """A float32 register rounded through the 16-bit dtype."""
    if dtype == "bfloat16":
        return _rounded_words(lanes, value)
    return expand(lanes, dtype, round_bits(lanes, dtype, value))


def _rounded_words(lanes: Lanes, value: str) -> str:
    """The rounded upper halves where they are: nothing is narrowed and widened again."""
    round_words(lanes)

    def text() -> str:
        f32 = lanes.type("float32")
        words = _bits(lanes, f32, "bf16_words(x) & 0xffff0000u")
        return f"INLINE {f32} rounded_bf16({f32} x) {{ return {words}; }}"

    lanes.need(f"rounded_bf16({lanes.count})", text)
    return f"rounded_bf16({value})"
