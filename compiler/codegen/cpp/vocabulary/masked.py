"""GCC's builtins that move only some lanes between memory and a register, and those that gather."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary.hardware import all_lanes, foreign, is_avx512, mask_type

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes


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
