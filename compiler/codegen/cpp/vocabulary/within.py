"""Loads of near elements, some of which may lie beyond the ends of a dimension.

Which ones is a word: bit e is set if the element e places after the first lane's is inside. Other
elements are not read; their lanes get the same given number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import hardware, loads_stores
from tcw.compiler.codegen.cpp.vocabulary.loads_stores import Raw
from tcw.compiler.codegen.cpp.vocabulary.strided import near_starts, shuffled
from tcw.compiler.codegen.cpp.vocabulary.types import SIGNED, bits_of, literal
from tcw.compiler.loops.dtypes import REDUCED
from tcw.compiler.loops.sizes import Size

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes

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
    """A word whose bit e says whether index start + e is in a dimension of `size` elements."""
    lanes.need("inside", lambda: INSIDE)
    return f"inside({start}, {size})"


Places = tuple[int, ...]
"""Where each lane's element is, counted from the first one read: 0, 2, 4, … or 0, 0, 1, 1, …"""


def load_within(
    lanes: Lanes, dtype: str, pointer: str, places: Places, word: str, otherwise: float
) -> str:
    """Lane k from pointer[places[k]] if that bit of the word is set, else `otherwise`, without
    reading. Places ascend from 0 by at most `FARTHEST`."""
    element, raw = lanes.storage(dtype), loads_stores.raw_of(lanes, dtype)
    name = _name(lanes, "within", places)

    def text() -> str:
        others = f"{{{', '.join(['other'] * lanes.count)}}}"
        lines = [f"const {raw.element}* q = (const {raw.element}*)start;"]
        found = _parts(lanes, raw, places, ["others"] * lanes.count)
        if found:
            lines += [f"const {raw.vector} others = {others};", *found]
        else:
            lines += _one_by_one(lanes, raw, places, "other")
        parameters = f"const {element}* start, unsigned long word, {raw.element} other"
        return _function(lanes, dtype, name, parameters, lines)

    lanes.need(f"{name}({element})", text)
    return f"{name}({pointer}, {word}, {_raw_number(dtype, otherwise)})"


def load_clamped(
    lanes: Lanes, dtype: str, row: str, places: Places, first: str, word: str, size: str
) -> str:
    """Lane k from row[first + places[k]], or from the nearest end of the row, which has `size`
    elements, if that bit of the word is not set."""
    element, raw = lanes.storage(dtype), loads_stores.raw_of(lanes, dtype)
    name = _name(lanes, "clamped", places)

    def text() -> str:
        signed = lanes.signed(raw.size)
        low, high = (f"{{{', '.join([end] * lanes.count)}}}" for end in ("low", "high"))
        lines = [
            f"const {raw.element}* row = (const {raw.element}*)start;",
            f"const {raw.element} low = row[0], high = row[size - 1], *q = row + first;",
            "const long under = first < 0 ? first < -100 ? 100 : -first : 0;",
        ]
        ends = f"const {raw.vector} lows = {low}, highs = {high};"
        others, chosen = [], [ends]
        for v, begin in enumerate(_starts(lanes, places)):
            steps = ", ".join(str(begin + k) for k in range(lanes.count))
            chosen.append(
                f"const {raw.vector} others_{v} = "
                f"{signed}{{{steps}}} < ({SIGNED[raw.size]})under ? lows : highs;"
            )
            others.append(f"others_{v}")
        found = _parts(lanes, raw, places, others)
        if found:
            lines += [*chosen, *found]
        else:
            lines += _one_by_one(lanes, raw, places, "places[k] < under ? low : high")
        parameters = f"const {element}* start, long first, unsigned long word, long size"
        return _function(lanes, dtype, name, parameters, lines)

    lanes.need(f"{name}({element})", text)
    return f"{name}({row}, {first}, {word}, {size})"


def _name(lanes: Lanes, kind: str, places: Places) -> str:
    """`load16_within_2` of every second element, `load16_within_0_1_1_2` of others."""
    step = places[1] - places[0]
    if places == tuple(k * step for k in range(lanes.count)):
        return f"load{lanes.suffix}_{kind}_{step}"
    period = "_".join(map(str, places[: places.index(2) + 1 if 2 in places else len(places)]))
    return f"load{lanes.suffix}_{kind}_{period}"


def _function(lanes: Lanes, dtype: str, name: str, parameters: str, lines: list[str]) -> str:
    body = "\n".join(f"  {line}" for line in lines)
    result = loads_stores.widened(lanes, dtype, "taken")
    return f"INLINE {lanes.type(dtype)} {name}({parameters}) {{\n{body}\n  return {result};\n}}"


def _starts(lanes: Lanes, places: Places) -> list[int]:
    """Where the vectors begin that hold the elements."""
    step = -(-places[-1] // (lanes.count - 1))
    return near_starts(lanes.count, step) if step > 1 else [0]


def _parts(lanes: Lanes, raw: Raw, places: Places, others: list[str]) -> list[str] | None:
    """Statements: `taken`, of masked vectors; None if the machine has none."""
    lines: list[str] = []
    starts = _starts(lanes, places)
    within = sum(1 << place for place in range(places[-1] + 1))
    for v, start in enumerate(starts):
        bits = f"(word & {within}ul) >> {start}"
        load = hardware.load_where(lanes, raw.vector, raw.size, f"q + {start}", bits, others[v])
        if load is None:
            return None
        lines.append(f"const {raw.vector} v{v} = {load};")
    taken = "v0" if places == tuple(range(lanes.count)) else shuffled(list(places), starts)
    return [*lines, f"const {raw.vector} taken = {taken};"]


def _one_by_one(lanes: Lanes, raw: Raw, places: Places, other: str) -> list[str]:
    """Statements: `taken`, whole if all its elements are inside, else an element at a time."""
    every = sum(1 << place for place in set(places))
    whole = [f"  taken = {raw.vector}{{{', '.join(f'q[{place}]' for place in places)}}};"]
    if places[-1] + 1 >= lanes.count:
        starts = _starts(lanes, places)
        kind = lanes.unaligned(raw.vector, raw.element, raw.size)
        whole = [
            f"  const {raw.vector} v{v} = *(const {kind}*)(q + {start});"
            for v, start in enumerate(starts)
        ]
        taken = "v0" if len(starts) == 1 else shuffled(list(places), starts)
        whole.append(f"  taken = {taken};")
    one = f"taken[k] = word >> places[k] & 1 ? q[places[k]] : {other};"
    return [
        f"{raw.vector} taken;",
        f"static const int places[] = {{{', '.join(map(str, places))}}};",
        f"if ((word & {every}ul) == {every}ul) {{",
        *whole,
        f"}} else for (long k = 0; k < {lanes.count}; k++) {one}",
    ]


def _raw_number(dtype: str, number: bool | int | float) -> str:
    """The literal of a number as it lies in memory. 16-bit floats must hold it exactly."""
    if dtype in REDUCED:
        return str(bits_of(number, dtype) & 0xFFFF)
    return str(int(number)) if dtype == "bool" else literal(number, dtype)
