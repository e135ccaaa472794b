"""bfloat16 and float16: 16 bits in memory, float32 in registers.

Rounds to nearest even, as c10/util/BFloat16.h and Half.h do; every NaN becomes the quiet NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import resizing

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes


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
