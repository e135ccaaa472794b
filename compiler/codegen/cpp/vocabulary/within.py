"""Loads of near elements of which some may lie beyond the ends of a dimension.

Which ones is a word: bit e is set if the element e places after the first lane's is inside. Other
elements are not read; their lanes get the same given number.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from compiler.codegen.cpp.vocabulary import masked, memory
from compiler.codegen.cpp.vocabulary.memory import Raw
from compiler.codegen.cpp.vocabulary.strided import near_starts, shuffled
from compiler.codegen.cpp.vocabulary.types import literal
from compiler.loops.sizes import Size

if TYPE_CHECKING:
    from compiler.codegen.cpp.vocabulary.lanes import Lanes

FARTHEST = 4
"""The greatest distance of two lanes' elements: 16 lanes of them span less than 64 bits."""

INSIDE = """\
INLINE unsigned long inside(long start, long size) {
  const long end = size - start, skipped = start < 0 ? -start : 0;
  if (end <= skipped || skipped >= 64) return 0;
  return (end >= 64 ? ~0ul : (1ul << end) - 1) >> skipped << skipped;
}"""


def fits(step: Size) -> bool:
    """Whether elements this far apart can be loaded by `load_within`."""
    return isinstance(step, int) and 1 <= step <= FARTHEST


def inside(lanes: Lanes, start: str, size: str) -> str:
    """The word for elements from index `start` of a dimension of `size` elements."""
    lanes.need("inside", lambda: INSIDE)
    return f"inside({start}, {size})"


def load_within(
    lanes: Lanes, dtype: str, pointer: str, step: int, word: str, otherwise: bool | int | float
) -> str:
    """Lane k from pointer[k*step] if bit k*step of the word is set, else `otherwise`."""
    element, register = lanes.storage(dtype), lanes.type(dtype)
    name = f"load{lanes.suffix}_within_{step}"

    def text() -> str:
        raw = memory.raw_of(lanes, dtype)
        lines = [f"const {raw.element}* q = (const {raw.element}*)start;"]
        lines += _parts(lanes, raw, step) or _one_by_one(lanes, raw, step)
        body = "\n".join(f"  {line}" for line in lines)
        result = memory.widened(lanes, dtype, "taken")
        return (
            f"INLINE {register} {name}(const {element}* start, unsigned long word, "
            f"{raw.element} other) {{\n{body}\n  return {result};\n}}"
        )

    lanes.need(f"{name}({element})", text)
    return f"{name}({pointer}, {word}, {_raw_number(dtype, otherwise)})"


def _parts(lanes: Lanes, raw: Raw, step: int) -> list[str] | None:
    """Statements: `taken`, of masked vectors; None if the machine has none."""
    lines = [f"const {raw.vector} others = {{{', '.join(['other'] * lanes.count)}}};"]
    starts = near_starts(lanes.count, step)
    for v, start in enumerate(starts):
        bits = f"word >> {start}"
        load = masked.load_where(lanes, raw.vector, raw.size, f"q + {start}", bits, "others")
        if load is None:
            return None
        lines.append(f"const {raw.vector} v{v} = {load};")
    taken = "v0" if step == 1 else shuffled([k * step for k in range(lanes.count)], starts)
    return [*lines, f"const {raw.vector} taken = {taken};"]


def _one_by_one(lanes: Lanes, raw: Raw, step: int) -> list[str]:
    """Statements: `taken`, whole if all its elements are inside, else an element at a time."""
    places = [k * step for k in range(lanes.count)]
    every = sum(1 << place for place in places)
    unaligned = lanes.unaligned(raw.vector, raw.element, raw.size)
    starts = near_starts(lanes.count, step)
    lines = [f"{raw.vector} taken;", f"if ((word & {every}ul) == {every}ul) {{"]
    for v, start in enumerate(starts):
        lines.append(f"  const {raw.vector} v{v} = *(const {unaligned}*)(q + {start});")
    lines.append(f"  taken = {'v0' if step == 1 else shuffled(places, starts)};")
    one = f"taken[k] = word >> k * {step} & 1 ? q[k * {step}] : other;"
    return [*lines, f"}} else for (long k = 0; k < {lanes.count}; k++) {one}"]


def _raw_number(dtype: str, number: bool | int | float) -> str:
    """The literal of a number as it lies in memory. 16-bit floats must hold it exactly."""
    if dtype == "float16":
        return str(struct.unpack("<H", struct.pack("<e", number))[0])
    if dtype == "bfloat16":
        return str(struct.unpack("<I", struct.pack("<f", number))[0] >> 16)
    return str(int(number)) if dtype == "bool" else literal(number, dtype)
