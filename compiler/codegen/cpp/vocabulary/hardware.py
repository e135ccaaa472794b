"""GCC's builtins of AVX-512, AVX2 and SSE, where the generic text would compile to worse code.

Each function answers the text of an expression (or of statements), or None where this width, this
machine or this compiler has no such builtin and the caller writes the generic form. Builtins need
no header; their argument types are GCC's, so that vectors are cast to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.loops.dtypes import BYTES, INTEGERS

if TYPE_CHECKING:
    from compiler.codegen.cpp.vocabulary.lanes import Lanes


def _mask_type(lanes: Lanes) -> str:
    """Of an AVX-512 lane mask."""
    return "unsigned char" if lanes.count <= 8 else "unsigned short"


def _all(lanes: Lanes) -> str:
    return f"({_mask_type(lanes)})-1"


def _wide(lanes: Lanes) -> bool:
    return lanes.isa.builtins and lanes.isa.name == "avx512"


def _foreign(lanes: Lanes, scalar: str, size: int, count: int = 0) -> str:
    """A vector type as GCC's builtins take it: of `char` and `long long` too, of any count."""
    count = count or lanes.count
    name = f"{scalar.replace(' ', '_')}x{count}"
    attribute = f"vector_size({size * count})"
    lanes.need(name, lambda: f"typedef {scalar} {name} __attribute__(({attribute}));")
    return name


def _memory(lanes: Lanes, size: int) -> tuple[str, str, str] | None:
    """Of an AVX-512 masked move: the builtin's element letters, element type and vector type."""
    if not _wide(lanes) or size * lanes.count < 16:
        return None
    if size == 8:
        return "upd", "double", lanes.type("float64")
    if size == 4:
        return "ups", "float", lanes.type("float32")
    if size == 2:
        return "dquhi", "short", lanes.signed(2)
    return "dquqi", "char", _foreign(lanes, "char", 1)


def _select(lanes: Lanes) -> str:
    return f"{_mask_type(lanes)} lanes = ({_mask_type(lanes)})((1u << count) - 1u);"


def _avx2(lanes: Lanes, size: int) -> tuple[str, str, str] | None:
    """Of an AVX2 masked move: the builtin's letters, vector type, and the mask's text."""
    if not lanes.isa.builtins or lanes.isa.name != "avx2" or size * lanes.count < 16 or size < 4:
        return None
    wide = "256" if size * lanes.count == 32 else ""
    steps = ", ".join(map(str, range(lanes.count)))
    if size == 4:
        vector = lanes.type("int32")
        return "d" + wide, vector, f"{vector}{{{steps}}} < (int)count"
    vector = _foreign(lanes, "long long", 8)
    return "q" + wide, vector, f"{vector}{{{steps}}} < count"


def load_masked(lanes: Lanes, vector: str, size: int) -> str | None:
    """Statements: `raw` of type `vector` is the first `count` elements at `p`, then zeros."""
    found = _memory(lanes, size)
    if found:
        letters, element, own = found
        bits = 8 * size * lanes.count
        return (
            f"{_select(lanes)} {vector} raw = ({vector})__builtin_ia32_load{letters}{bits}_mask("
            f"(const {element}*)p, {own}{{}}, lanes);"
        )
    other = _avx2(lanes, size)
    if other:
        letters, own, mask = other
        return (
            f"{vector} raw = ({vector})__builtin_ia32_maskload{letters}("
            f"(const {own}*)p, ({own})({mask}));"
        )
    return None


def store_masked(lanes: Lanes, size: int) -> str | None:
    """Statements: the first `count` lanes of `raw` go to `p`."""
    found = _memory(lanes, size)
    if found:
        letters, element, own = found
        bits = 8 * size * lanes.count
        return (
            f"{_select(lanes)} __builtin_ia32_store{letters}{bits}_mask("
            f"({element}*)p, ({own})raw, lanes);"
        )
    other = _avx2(lanes, size)
    if other:
        letters, own, mask = other
        return f"__builtin_ia32_maskstore{letters}(({own}*)p, ({own})({mask}), ({own})raw);"
    return None


def widen_u16(lanes: Lanes, bits: str) -> str:
    """16-bit lanes zero-extended to 32."""
    u32 = lanes.unsigned(4)
    if _wide(lanes) and lanes.count == 16:
        i16, i32 = lanes.signed(2), lanes.signed(4)
        return f"({u32})__builtin_ia32_pmovzxwd512_mask(({i16}){bits}, {i32}{{}}, {_all(lanes)})"
    return f"__builtin_convertvector({bits}, {u32})"


def narrow_u32(lanes: Lanes, words: str) -> str:
    """The low 16 bits of 32-bit lanes."""
    u16 = lanes.unsigned(2)
    if _wide(lanes) and lanes.count == 16:
        i16, i32 = lanes.signed(2), lanes.signed(4)
        move = f"__builtin_ia32_pmovdw512_mask(({i32})({words}), {i16}{{}}, {_all(lanes)})"
        return f"({u16}){move}"
    return f"__builtin_convertvector({words}, {u16})"


def half_to_f32(lanes: Lanes) -> str | None:
    """`bits` (u16 lanes) as float32 by F16C or AVX-512."""
    if not lanes.isa.builtins:
        return None
    if lanes.count == 1:
        return "(float)__builtin_bit_cast(_Float16, bits)"
    i16 = lanes.signed(2)
    if lanes.count == 16:
        f32 = lanes.type("float32")
        return f"__builtin_ia32_vcvtph2ps512_mask(({i16})bits, {f32}{{}}, {_all(lanes)}, 4)"
    if lanes.count == 8:
        return f"__builtin_ia32_vcvtph2ps256(({i16})bits)"
    return None


def f32_to_half(lanes: Lanes) -> str | None:
    """`x` (float32) rounded to nearest even as u16 lanes."""
    if not lanes.isa.builtins:
        return None
    if lanes.count == 1:
        return "__builtin_bit_cast(unsigned short, (_Float16)x)"
    i16, u16 = lanes.signed(2), lanes.unsigned(2)
    if lanes.count == 16:
        return f"({u16})__builtin_ia32_vcvtps2ph512_mask(x, 0, {i16}{{}}, {_all(lanes)})"
    if lanes.count == 8:
        return f"({u16})__builtin_ia32_vcvtps2ph256(x, 0)"
    return None


def _unary(lanes: Lanes, dtype: str, wide: str, narrow: str, immediate: str) -> str | None:
    """One instruction on every lane of `x`."""
    bits = lanes.count * (64 if dtype == "float64" else 32)
    letters = "pd" if dtype == "float64" else "ps"
    if not lanes.isa.builtins or lanes.count == 1 or bits < 128:
        return None
    if bits == 512:
        width = "512" if wide == "sqrt" else ""
        call = f"(x{immediate}, x, {_all(lanes)}, 4)"
        return f"__builtin_ia32_{wide}{letters}{width}_mask{call}"
    return f"__builtin_ia32_{narrow}{letters}{'256' if bits == 256 else ''}(x{immediate})"


def sqrt(lanes: Lanes, dtype: str) -> str | None:
    """The square root of each lane of `x`."""
    return _unary(lanes, dtype, "sqrt", "sqrt", "")


ROUNDINGS = {"round": 8, "floor": 9, "ceil": 10, "trunc": 11}
"""Immediates of the rounding instructions: nearest even, down, up, to zero; no exception."""


def rounding(lanes: Lanes, dtype: str, op: str) -> str | None:
    """Each lane of `x` rounded to a whole number."""
    return _unary(lanes, dtype, "rndscale", "round", f", {ROUNDINGS[op]}")


def fma(lanes: Lanes, dtype: str) -> str | None:
    """a*b+c of each lane with one rounding."""
    bits = lanes.count * (64 if dtype == "float64" else 32)
    letters = "pd" if dtype == "float64" else "ps"
    if not lanes.isa.builtins or lanes.count == 1 or bits < 128:
        return None
    if bits == 512:
        return f"__builtin_ia32_vfmadd{letters}512_mask(a, b, c, {_all(lanes)}, 4)"
    return f"__builtin_ia32_vfmadd{letters}{'256' if bits == 256 else ''}(a, b, c)"


def scale(lanes: Lanes) -> str | None:
    """`x` * 2^n of float32 lanes, n whole: overflow and denormals as rounding once gives them."""
    if not _wide(lanes) or lanes.count * 32 < 128:
        return None
    bits = lanes.count * 32
    rounding_mode = ", 4" if bits == 512 else ""
    return f"__builtin_ia32_scalefps{bits}_mask(x, n, x, {_all(lanes)}{rounding_mode})"


def any_lane(lanes: Lanes) -> str | None:
    """Whether a lane of the mask `v` is set."""
    bits = lanes.count * 32
    if not lanes.isa.builtins or bits < 128:
        return None
    if _wide(lanes):
        return f"__builtin_ia32_ptestmd{bits}(v, v, {_all(lanes)}) != 0"
    return f"__builtin_ia32_movmskps{'256' if bits == 256 else ''}(({lanes.type('float32')})v) != 0"


_LETTERS = {1: "b", 2: "w", 4: "d", 8: "q"}


def resize(lanes: Lanes, source: str, dtype: str) -> str | None:
    """`x`, lanes of one integer dtype, as lanes of another size.

    GCC 12 moves small vectors through scalar registers and splits large ones in halves.
    """
    small, large = sorted((BYTES[source], BYTES[dtype]))
    if not {source, dtype} <= INTEGERS or small == large:
        return None
    if not lanes.isa.builtins or lanes.count * large < 16:
        return None
    own = lanes.type(dtype)
    if BYTES[source] == small:
        return _widen(lanes, source, small, large, own)
    return _shorten(lanes, source, small, large, own)


def _widen(lanes: Lanes, source: str, small: int, large: int, own: str) -> str | None:
    sign = "z" if source == "uint8" else "s"
    bits, mask = 8 * large * lanes.count, ""
    if large == 8 and small != 4:
        return None
    if bits == 512:
        mask = f", {_foreign(lanes, *_ELEMENT[large])}{{}}, {_all(lanes)}"
    value = _padded(lanes, small)
    if value is None:
        return None
    move = f"pmov{sign}x{_LETTERS[small]}{_LETTERS[large]}{bits}{'_mask' if mask else ''}"
    return f"({own})__builtin_ia32_{move}({value}{mask})"


_ELEMENT = {1: ("char", 1), 2: ("short", 2), 4: ("int", 4), 8: ("long long", 8)}
"""Elements of the vectors that GCC's builtins take."""


def _padded(lanes: Lanes, size: int) -> str | None:
    """`x` as the vector of at least 16 bytes that a builtin takes."""
    scalar, _ = _ELEMENT[size]
    total = size * lanes.count
    target = _foreign(lanes, scalar, size, max(lanes.count, 16 // size))
    if total >= 16:
        return f"({target})x"
    if total == 8:
        return f"({target})({_foreign(lanes, 'long', 8, 2)}){{(long)x, 0}}"
    if total == 4:
        return f"({target})({_foreign(lanes, 'int', 4, 4)}){{(int)x, 0, 0, 0}}"
    return None


def _shorten(lanes: Lanes, source: str, small: int, large: int, own: str) -> str | None:
    bits, total = 8 * large * lanes.count, small * lanes.count
    if not _wide(lanes):
        if bits < 128:
            return None
        pieces = _foreign(lanes, _ELEMENT[small][0], small, lanes.count * large // small)
        order = ", ".join(str(lane * large // small) for lane in range(lanes.count))
        return f"({own})__builtin_shufflevector(({pieces})x, ({pieces})x, {order})"
    if total not in (8, 16, 32):
        return None
    taken = _foreign(lanes, *_ELEMENT[large])
    count = max(lanes.count, 16 // small)
    target = _foreign(lanes, *_ELEMENT[small], count)
    move = f"pmov{_LETTERS[large]}{_LETTERS[small]}{bits}_mask"
    moved = f"__builtin_ia32_{move}(({taken})x, {target}{{}}, {_all(lanes)})"
    if total >= 16:
        return f"({own}){moved}"
    return f"({own})(({_foreign(lanes, 'long', 8, 2)}){moved})[0]"
