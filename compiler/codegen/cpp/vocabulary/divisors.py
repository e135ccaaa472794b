"""Greatest common divisors of integers: Euclid's algorithm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import arithmetic, conversions, hardware, special_functions
from tcw.compiler.codegen.cpp.vocabulary.division import QUOTIENTS, by_halves, if_too_large
from tcw.compiler.loops.dtypes import BYTES

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes


def gcd(lanes: Lanes, held: str) -> str:
    """A call. Vectors divide as floats, whose truncated quotients are exact (`division`), until all
    lanes are done. Lanes are taken one by one where no instruction converts 64-bit integers to
    floats, or one of these is too large."""
    if lanes.count == 1 or (held == "int64" and not hardware.is_avx512(lanes)):
        return special_functions.gcd(lanes, held, "gcd")
    register, wide = lanes.type(held), QUOTIENTS.get(held, "float32")
    two = f"{register} a, {register} b"
    if BYTES[wide] * lanes.count > lanes.isa.vector_bytes:
        gcd(lanes.vocabulary.lanes(lanes.count // 2), held)
        return arithmetic.function(lanes, "gcd", two, register, by_halves(lanes, "gcd({a}, {b})"))
    far = ""
    if held == "int64":
        each = special_functions.gcd(lanes, held, "gcd_far")
        far = f"{if_too_large(lanes, each.format('a', 'b'))}\n  "
    body = f"{far}{_euclid(lanes, held, wide)}"
    return arithmetic.function(lanes, "gcd", two, register, body, "OUTLINE")


def _euclid(lanes: Lanes, held: str, wide: str) -> str:
    """The statements: x and y start as the magnitudes, and a lane is done when its y is 0."""
    mask, some = lanes.type("bool"), arithmetic.any_lane(lanes)
    if BYTES[wide] == 8:
        mask, some = lanes.signed(8), arithmetic.any_wide_lane(lanes, "v")
    floats = lanes.type(wide)
    magnitude = "{0}" if held == "uint8" else "({0} < 0 ? -{0} : {0})"
    x, y = (conversions.cast(lanes, magnitude.format(name), held, wide) for name in "ab")
    whole = arithmetic.of_floats(lanes, "trunc", wide).format("x / d")
    return (
        f"{floats} x = {x}, y = {y};\n"
        "  for (;;) {\n"
        f"    {mask} v = y != 0;\n"
        f"    if (!({some})) return {conversions.cast(lanes, 'x', wide, held)};\n"
        f"    {floats} d = v ? y : {floats}{{}} + 1, r = x - {whole} * d;\n"
        f"    x = v ? y : x; y = v ? r : {floats}{{}};\n"
        "  }"
    )
