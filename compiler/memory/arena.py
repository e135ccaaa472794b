"""The arena of a segment: temporaries at byte offsets, sharing bytes if lifetimes do not overlap.

Values of known size are placed largest first, each into the smallest free gap between those that
are alive at the same time (the greedy-by-size rule of Pisarchyk and Lee, 2020). Symbolic sizes
cannot be compared, so such values share only slots of equal size, stacked after the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcw.compiler.loops.sizes import Size, add, from_terms, terms

ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Temporary:
    """Bytes that are needed from one nest of a segment to another, both inclusive."""

    value: str
    bytes: Size
    first: int
    last: int

    alone: bool = False
    """The temporary must not share its bytes."""

    def meets(self, other: Temporary) -> bool:
        if self.alone or other.alone:
            return True
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class Arena:
    """The temporaries of one segment with their byte offsets."""

    offsets: dict[str, Size]
    bytes: Size
    shares: dict[str, str]
    """Value -> an earlier value whose bytes it reuses, in the order of the values' first nests."""


def aligned(size: Size) -> Size:
    """The size rounded up to whole cache lines; of a symbolic size, each coefficient."""
    return from_terms((s, -(-factor // ALIGNMENT) * ALIGNMENT) for s, factor in terms(size))


def pack(temporaries: Sequence[Temporary]) -> Arena:
    """Offsets for all temporaries, in multiples of 64."""
    known = [(t, size) for t in temporaries if isinstance(size := aligned(t.bytes), int)]
    placed: list[tuple[int, int, Temporary]] = []
    total = 0
    for temporary, size in sorted(known, key=lambda item: (-item[1], item[0].first, item[0].value)):
        offset = _best_gap(temporary, size, placed)
        placed.append((offset, size, temporary))
        total = max(total, offset + size)
    offsets: dict[str, Size] = {t.value: offset for offset, _, t in placed}
    shares = _shares(placed)
    end: Size = total
    slots: list[tuple[Size, list[Temporary]]] = []
    for temporary in sorted(temporaries, key=lambda t: (t.first, t.value)):
        wanted = aligned(temporary.bytes)
        if isinstance(wanted, int):
            continue
        slot = next((s for s in slots if s[0] == wanted and not _meets(temporary, s[1])), None)
        if slot is None:
            offsets[temporary.value] = end
            end = add(end, wanted)
            slots.append((wanted, [temporary]))
        else:
            offsets[temporary.value] = offsets[slot[1][0].value]
            shares[temporary.value] = slot[1][-1].value
            slot[1].append(temporary)
    return Arena(offsets, end, {t.value: shares[t.value] for t in temporaries if t.value in shares})


def _meets(temporary: Temporary, others: list[Temporary]) -> bool:
    return any(temporary.meets(other) for other in others)


def _best_gap(temporary: Temporary, size: int, placed: list[tuple[int, int, Temporary]]) -> int:
    """The smallest sufficient gap between the values that are alive at the same time."""
    best: tuple[int, int] | None = None
    end = 0
    for start, length, other in sorted(placed, key=lambda item: item[:2]):
        if not temporary.meets(other):
            continue
        gap = start - end
        if gap >= size and (best is None or gap < best[0]):
            best = gap, end
        end = max(end, start + length)
    return end if best is None else best[1]


def _shares(placed: list[tuple[int, int, Temporary]]) -> dict[str, str]:
    """For each value, the most recently dead value with which it shares bytes."""
    found: dict[str, str] = {}
    for offset, size, temporary in placed:
        before = [
            other
            for start, length, other in placed
            if other.last < temporary.first and start < offset + size and offset < start + length
        ]
        if before:
            found[temporary.value] = max(before, key=lambda other: (other.last, other.value)).value
    return found
