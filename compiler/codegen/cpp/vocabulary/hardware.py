"""GCC's builtins for AVX-512, AVX2 and SSE, where generic text would compile to worse code.

Here and in `resizing`, each function returns the text of an expression (or statements). It returns
None if this width, machine or compiler has no such builtin: the caller then writes the generic
form. Builtins need no header. Their argument types are GCC's, so vectors are cast to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes


def mask_type(lanes: Lanes) -> str:
    """The type of an AVX-512 lane mask."""
    return "unsigned char" if lanes.count <= 8 else "unsigned short"


def all_lanes(lanes: Lanes) -> str:
    return f"({mask_type(lanes)})-1"


def is_avx512(lanes: Lanes) -> bool:
    return lanes.isa.builtins and lanes.isa.name == "avx512"


def foreign(lanes: Lanes, scalar: str, size: int, count: int = 0) -> str:
    """A vector type for GCC's builtins, possibly of `char` or `long long`, and of any count."""
    count = count or lanes.count
    name = f"{scalar.replace(' ', '_')}x{count}"
    attribute = f"vector_size({size * count})"
    lanes.need(name, lambda: f"typedef {scalar} {name} __attribute__(({attribute}));")
    return name


def _floats(lanes: Lanes, dtype: str) -> tuple[int, str] | None:
    """The bits of a vector of floats, and the letters of its lanes in the names of builtins."""
    bits = lanes.count * (64 if dtype == "float64" else 32)
    if not lanes.isa.builtins or lanes.count == 1 or bits < 128:
        return None
    return bits, "pd" if dtype == "float64" else "ps"


def _masked(lanes: Lanes, dtype: str, name: str, operands: str, held: str = "") -> str | None:
    """An AVX-512 instruction on floats, of the lanes in the mask `held`, or of all."""
    found = _floats(lanes, dtype)
    if found is None or not is_avx512(lanes):
        return None
    bits, letters = found
    end = ", 4" if bits == 512 else ""
    width = "" if name == "rndscale" else bits
    call = f"({operands}, {held or all_lanes(lanes)}{end})"
    return f"__builtin_ia32_{name}{letters}{width}_mask{call}"


def _each(lanes: Lanes, dtype: str, call: tuple[str, str], masked: tuple[str, str]) -> str | None:
    """An instruction for all lanes, by its name and operands: those of AVX2 and SSE, and those of
    AVX-512, which has a mask."""
    found = _floats(lanes, dtype)
    if found is None or found[0] == 512:
        return _masked(lanes, dtype, *masked)
    bits, letters = found
    return f"__builtin_ia32_{call[0]}{letters}{'256' if bits == 256 else ''}({call[1]})"


def sqrt(lanes: Lanes, dtype: str) -> str | None:
    """The square root of each lane of `x`."""
    return _each(lanes, dtype, ("sqrt", "x"), ("sqrt", "x, x"))


ROUNDINGS = {"round": 8, "floor": 9, "ceil": 10, "trunc": 11}
"""Immediates of the rounding instructions: nearest even, down, up, to zero; without exceptions."""


def rounding(lanes: Lanes, dtype: str, op: str) -> str | None:
    """Each lane of `x` rounded to a whole number."""
    how = ROUNDINGS[op]
    return _each(lanes, dtype, ("round", f"x, {how}"), ("rndscale", f"x, {how}, x"))


def fma(lanes: Lanes, dtype: str) -> str | None:
    """a*b+c in each lane, rounded once."""
    call = ("vfmadd", "a, b, c")
    return _each(lanes, dtype, call, call)


def scale(lanes: Lanes, dtype: str) -> str | None:
    """`x` * 2^n in each lane for whole n, rounded once, including overflow and denormals."""
    return _masked(lanes, dtype, "scalef", "x, n, x")


def exponent(lanes: Lanes, dtype: str) -> tuple[str, str] | None:
    """The exponent of each lane of `x`, as a float, and its fraction, from 3/4 to 3/2, which is
    below 1 where the exponent is one too small. Denormal numbers have those of normal ones."""
    power = _masked(lanes, dtype, "getexp", "x, x")
    fraction = _masked(lanes, dtype, "getmant", "x, 3, x")
    return None if power is None or fraction is None else (power, fraction)


def of_logarithm(lanes: Lanes, dtype: str) -> str | None:
    """`y` where `x` is positive and finite; elsewhere the logarithm of `x`."""
    if _floats(lanes, dtype) is None or not is_avx512(lanes):
        return None
    kind, size = ("long long", 8) if dtype == "float64" else ("int", 4)
    table = f"{foreign(lanes, kind, size)}{{}} + 0x03530422"
    # a hexadecimal digit for each class, from the right: two NaNs, zero, one, minus infinity,
    # infinity, negative and positive numbers; 0 keeps y, 2 is x, 3 NaN, 4 and 5 an infinity
    return _masked(lanes, dtype, "fixupimm", f"y, x, {table}, 0")


COMPARISONS = {"==": 0, "<": 1, "!>": 10}
"""Immediates of the comparing instructions. Of a NaN only `!>`, not greater, is true."""


def not_all(lanes: Lanes, dtype: str, comparisons: Sequence[tuple[str, str, str]]) -> str | None:
    """Whether one of the comparisons is false in a lane."""
    whole = str((1 << lanes.count) - 1)
    held: str | None = whole
    for left, sign, right in comparisons:
        held = held and _masked(lanes, dtype, "cmp", f"{left}, {right}, {COMPARISONS[sign]}", held)
    return held and f"{held} != {whole}"


def any_lane(lanes: Lanes) -> str | None:
    """Whether a lane of the mask `v` is set."""
    bits = lanes.count * 32
    if not lanes.isa.builtins or bits < 128:
        return None
    if is_avx512(lanes):
        return f"__builtin_ia32_ptestmd{bits}(v, v, {all_lanes(lanes)}) != 0"
    return f"__builtin_ia32_movmskps{'256' if bits == 256 else ''}(({lanes.type('float32')})v) != 0"


def any_wide_lane(lanes: Lanes, mask: str) -> str | None:
    """Whether a lane of a mask of 64-bit lanes is set."""
    bits = lanes.count * 64
    if not lanes.isa.builtins or bits < 128:
        return None
    if is_avx512(lanes):
        wide = foreign(lanes, "long long", 8)
        return (
            f"__builtin_ia32_ptestmq{bits}(({wide}){mask}, ({wide}){mask}, {all_lanes(lanes)}) != 0"
        )
    doubles = foreign(lanes, "double", 8)
    return f"__builtin_ia32_movmskpd{'256' if bits == 256 else ''}(({doubles}){mask}) != 0"


def _memory(lanes: Lanes, size: int) -> tuple[str, str, str] | None:
    """For an AVX-512 masked move: the builtin's element letters, element type and vector type."""
    if not is_avx512(lanes) or size * lanes.count < 16:
        return None
    if size == 8:
        return "upd", "double", lanes.type("float64")
    if size == 4:
        return "ups", "float", lanes.type("float32")
    if size == 2:
        return "dquhi", "short", lanes.signed(2)
    return "dquqi", "char", foreign(lanes, "char", 1)


def _chosen(lanes: Lanes) -> str:
    return f"{mask_type(lanes)} lanes = ({mask_type(lanes)})((1u << count) - 1u);"


def _avx2(lanes: Lanes, size: int) -> tuple[str, str, str] | None:
    """For an AVX2 masked move: the builtin's letters, vector type, and the text of the mask."""
    if not lanes.isa.builtins or lanes.isa.name != "avx2" or size * lanes.count < 16 or size < 4:
        return None
    wide = "256" if size * lanes.count == 32 else ""
    steps = ", ".join(map(str, range(lanes.count)))
    if size == 4:
        vector = lanes.type("int32")
        return "d" + wide, vector, f"{vector}{{{steps}}} < (int)count"
    vector = foreign(lanes, "long long", 8)
    return "q" + wide, vector, f"{vector}{{{steps}}} < count"


def load(lanes: Lanes, vector: str, size: int) -> str | None:
    """Statements: `raw` of type `vector` gets the first `count` elements at `p`, then zeros."""
    found = _memory(lanes, size)
    if found:
        letters, element, own = found
        bits = 8 * size * lanes.count
        return (
            f"{_chosen(lanes)} {vector} raw = ({vector})__builtin_ia32_load{letters}{bits}_mask("
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


def load_where(
    lanes: Lanes, vector: str, size: int, pointer: str, bits: str, other: str
) -> str | None:
    """A vector whose lane k is pointer[k] if bit k of `bits` (a word) is set, else that of the
    vector `other`."""
    found = _memory(lanes, size)
    if found:
        letters, element, own = found
        chosen = f"({mask_type(lanes)})({bits})"
        return (
            f"({vector})__builtin_ia32_load{letters}{8 * size * lanes.count}_mask("
            f"(const {element}*)({pointer}), ({own}){other}, {chosen})"
        )
    avx2 = _avx2(lanes, size)
    if avx2:
        letters, own, _ = avx2
        kind = lanes.signed(size)
        powers = ", ".join(str(1 << lane) for lane in range(lanes.count))
        scalar = "int" if size == 4 else "long"
        mask = f"(({kind}{{{powers}}} & ({scalar})({bits})) != 0)"
        load = f"__builtin_ia32_maskload{letters}((const {own}*)({pointer}), ({own}){mask})"
        return f"({mask} ? ({vector}){load} : {other})"
    return None


def gather(lanes: Lanes, vector: str, size: int, count: str | None) -> str | None:
    """Statements: `raw` of type `vector` gets the elements at `p[index[k]]`, and zeros from lane
    `count` on. None where AVX-512 has no fast instruction for it."""
    if not is_avx512(lanes) or not lanes.isa.gathers or size < 4 or lanes.count != 8:
        return None
    own, suffix = ("float64", "8df") if size == 8 else ("float32", "16sf")
    every = f"const {mask_type(lanes)} lanes = {all_lanes(lanes)};"
    return (
        f"{every if count is None else _chosen(lanes)} {vector} raw = ({vector})"
        f"__builtin_ia32_gatherdiv{suffix}({lanes.type(own)}{{}}, p, "
        f"({foreign(lanes, 'long long', 8)})index, lanes, {size});"
    )


def store(lanes: Lanes, size: int) -> str | None:
    """Statements: store the first `count` lanes of `raw` at `p`."""
    found = _memory(lanes, size)
    if found:
        letters, element, own = found
        bits = 8 * size * lanes.count
        return (
            f"{_chosen(lanes)} __builtin_ia32_store{letters}{bits}_mask("
            f"({element}*)p, ({own})raw, lanes);"
        )
    other = _avx2(lanes, size)
    if other:
        letters, own, mask = other
        return f"__builtin_ia32_maskstore{letters}(({own}*)p, ({own})({mask}), ({own})raw);"
    return None
