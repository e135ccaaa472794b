"""GCC's builtins that widen or narrow lanes, including 16-bit floats and float64."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary.hardware import all_lanes, foreign, is_avx512
from tcw.compiler.loops.dtypes import BYTES, INTEGERS

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes


def widen_u16(lanes: Lanes, bits: str) -> str:
    """16-bit lanes zero-extended to 32."""
    u32 = lanes.unsigned(4)
    if is_avx512(lanes) and lanes.count == 16:
        i16, i32 = lanes.signed(2), lanes.signed(4)
        operands = f"({i16}){bits}, {i32}{{}}, {all_lanes(lanes)}"
        return f"({u32})__builtin_ia32_pmovzxwd512_mask({operands})"
    if lanes.isa.builtins and lanes.count == 8:
        eight = foreign(lanes, "short", 2)
        return f"({u32})__builtin_ia32_pmovzxwd256(({eight}){bits})"
    return f"__builtin_convertvector({bits}, {u32})"


def narrow_u32(lanes: Lanes, words: str) -> str:
    """32-bit lanes below 2^16 as 16-bit lanes."""
    u16 = lanes.unsigned(2)
    if is_avx512(lanes) and lanes.count == 16:
        i16, i32 = lanes.signed(2), lanes.signed(4)
        move = f"__builtin_ia32_pmovdw512_mask(({i32})({words}), {i16}{{}}, {all_lanes(lanes)})"
        return f"({u16}){move}"
    if lanes.isa.builtins and lanes.count == 8:
        eight = foreign(lanes, "int", 4)
        half = f"__builtin_ia32_vextractf128_si256(({eight})w, "
        packed = f"__builtin_ia32_packusdw128({half}0), {half}1))"
        return f"({{ auto w = {words}; ({u16}){packed}; }})"
    return f"__builtin_convertvector({words}, {u16})"


def half_to_f32(lanes: Lanes) -> str | None:
    """`bits` (u16 lanes) as float32, with F16C or AVX-512."""
    if not lanes.isa.builtins:
        return None
    if lanes.count == 1:
        # not through _Float16: GCC 12 compares them with a call that no library defines
        eight = "short __attribute__((vector_size(16)))"
        return f"__builtin_ia32_vcvtph2ps(({eight}){{(short)bits}})[0]"
    i16 = lanes.signed(2)
    if lanes.count == 16:
        f32 = lanes.type("float32")
        return f"__builtin_ia32_vcvtph2ps512_mask(({i16})bits, {f32}{{}}, {all_lanes(lanes)}, 4)"
    if lanes.count == 8:
        return f"__builtin_ia32_vcvtph2ps256(({i16})bits)"
    if lanes.count == 4:
        eight, two = foreign(lanes, "short", 2, 8), foreign(lanes, "long", 8, 2)
        return f"__builtin_ia32_vcvtph2ps(({eight})({two}){{(long)bits, 0}})"
    return None


def f32_to_half(lanes: Lanes) -> str | None:
    """`x` (float32) rounded to nearest even as u16 lanes."""
    if not lanes.isa.builtins:
        return None
    if lanes.count == 1:
        four = "float __attribute__((vector_size(16)))"
        return f"(unsigned short)__builtin_ia32_vcvtps2ph(({four}){{x}}, 0)[0]"
    i16, u16 = lanes.signed(2), lanes.unsigned(2)
    if lanes.count == 16:
        return f"({u16})__builtin_ia32_vcvtps2ph512_mask(x, 0, {i16}{{}}, {all_lanes(lanes)})"
    if lanes.count == 8:
        return f"({u16})__builtin_ia32_vcvtps2ph256(x, 0)"
    if lanes.count == 4:
        return f"({u16})(({foreign(lanes, 'long', 8, 2)})__builtin_ia32_vcvtps2ph(x, 0))[0]"
    return None


_BETWEEN_FLOATS = {
    ("float32", "float64"): "cvtps2pd",
    ("int32", "float64"): "cvtdq2pd",
    ("float64", "float32"): "cvtpd2ps",
    ("float64", "int32"): "cvttpd2dq",
}


def between_floats(lanes: Lanes, source: str, dtype: str) -> str | None:
    """`x`, lanes of float64, from 32 bits or to 32 bits. GCC 12 and 13 move one half of a small
    vector through memory, 13 in a way that waits for the write."""
    name = _BETWEEN_FLOATS.get((source, dtype))
    if name is None or not lanes.isa.builtins or lanes.count != 4:
        return None
    return f"__builtin_ia32_{name}256(x)"


_LETTERS = {1: "b", 2: "w", 4: "d", 8: "q"}


def resize(lanes: Lanes, source: str, dtype: str) -> str | None:
    """`x`, lanes of one integer dtype, resized to another.

    By itself, GCC 12 moves small vectors through scalar registers and splits large ones into
    halves.
    """
    small, large = sorted((BYTES[source], BYTES[dtype]))
    if not {source, dtype} <= INTEGERS or small == large:
        return None
    if not lanes.isa.builtins or lanes.count * large < 16:
        return None
    own = lanes.type(dtype)
    if BYTES[source] == small:
        return _widen(lanes, source, small, large, own)
    return _shorten(lanes, small, large, own)


def _widen(lanes: Lanes, source: str, small: int, large: int, own: str) -> str | None:
    sign = "z" if source == "uint8" else "s"
    bits, mask = 8 * large * lanes.count, ""
    if bits == 512:
        mask = f", {foreign(lanes, *_ELEMENT[large])}{{}}, {all_lanes(lanes)}"
    value = _padded(lanes, small)
    if value is None:
        return None
    move = f"pmov{sign}x{_LETTERS[small]}{_LETTERS[large]}{bits}{'_mask' if mask else ''}"
    return f"({own})__builtin_ia32_{move}({value}{mask})"


_ELEMENT = {1: ("char", 1), 2: ("short", 2), 4: ("int", 4), 8: ("long long", 8)}
"""Element types of the vectors that GCC's builtins take."""


def _padded(lanes: Lanes, size: int) -> str | None:
    """`x` as the vector of at least 16 bytes that a builtin takes.

    GCC (12 and 13) merges a narrower one from memory, its extension and a mask into an instruction
    that it "could not split". The empty assembly keeps them apart.
    """
    scalar, _ = _ELEMENT[size]
    total = size * lanes.count
    target = foreign(lanes, scalar, size, max(lanes.count, 16 // size))
    if total >= 16:
        return f"({target})x"
    number = {8: "long", 4: "int"}.get(total)
    if number is None:
        return None
    zeros = ", 0" * (16 // total - 1)
    padded = f"({target})({foreign(lanes, number, total, 16 // total)}){{({number})x{zeros}}}"
    return f'({{ {target} y = {padded}; asm("" : "+v"(y)); y; }})' if is_avx512(lanes) else padded


def _shorten(lanes: Lanes, small: int, large: int, own: str) -> str | None:
    bits, total = 8 * large * lanes.count, small * lanes.count
    if not is_avx512(lanes):
        if bits < 128:
            return None
        pieces = foreign(lanes, _ELEMENT[small][0], small, lanes.count * large // small)
        order = ", ".join(str(lane * large // small) for lane in range(lanes.count))
        return f"({own})__builtin_shufflevector(({pieces})x, ({pieces})x, {order})"
    if total not in (8, 16, 32):
        return None
    taken = foreign(lanes, *_ELEMENT[large])
    count = max(lanes.count, 16 // small)
    target = foreign(lanes, *_ELEMENT[small], count)
    move = f"pmov{_LETTERS[large]}{_LETTERS[small]}{bits}_mask"
    moved = f"__builtin_ia32_{move}(({taken})x, {target}{{}}, {all_lanes(lanes)})"
    if total >= 16:
        return f"({own}){moved}"
    return f"({own})(({foreign(lanes, 'long', 8, 2)}){moved})[0]"
