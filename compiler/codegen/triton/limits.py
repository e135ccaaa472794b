"""What a GPU offers a kernel, and how much of it one needs: a model in a few numbers.

A processor hides the latency of memory if enough bytes are in flight: about 32 KB on an A100 and 64
KB on an H100 (Little's law: latency times bandwidth). A program's share of them is its tile.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from tcw.compiler.gpu.architectures import Architecture
from tcw.compiler.loops.sizes import Size, evaluate, symbols_of

UNKNOWN = 1024
"""Assumed value of a symbol without a hint."""
PERSISTENT = 1 << 14
"""Maximum length of a row that a program keeps in registers."""
COLUMN = 64
"""Maximum length of a row across memory, of which a program takes many."""
RIDING = 1 << 13
"""Maximum length if sums over the rows ride along, which take registers too."""
RIDING_STAGES = 3
"""Steps of such a program whose loads are in flight at a time."""
STEP = 1 << 11
"""Minimum number of elements that a program takes in a step."""
MOST_IN_FLIGHT = 96 << 10
"""Bytes in flight per processor beyond which more do not help."""
PART = 1 << 13
"""Minimum number of elements of a part of a row."""


def part_step(rows: int, across: bool) -> int:
    """Elements of each row that a program takes at a time from its part of the rows."""
    if not across:
        return 1 << 12
    return max(STEP // positions_across(rows), 16)


def positions_across(rows: int) -> int:
    """How many rows across memory a program takes together."""
    return min(power_of_two(rows), 64)


def power_of_two(number: int) -> int:
    """The least power of two that is at least `number`."""
    return 1 << max(number - 1, 0).bit_length()


@dataclass(frozen=True)
class Limits:
    """One GPU, and the sizes that symbols had at compile time."""

    architecture: Architecture
    hints: Mapping[str, int] = field(default_factory=dict)
    divisible: Set[str] = frozenset()
    """Symbols that are multiples of 16."""

    @property
    def processors(self) -> int:
        return self.architecture.processors

    @property
    def in_flight(self) -> int:
        """Bytes in flight per processor that keep the memory busy: its bandwidth, which is two
        transfers a clock, times its latency under load, about 1.5 µs."""
        machine = self.architecture
        seconds = 1.5e-6
        each = 2 * machine.memory_clock_khz * 1e3 * machine.memory_bus_bits / 8
        return int(each * seconds / machine.processors)

    @property
    def l2_bytes(self) -> int:
        return self.architecture.l2_bytes

    @property
    def launches_ahead(self) -> bool:
        """Whether a kernel can be launched while the one before it ends."""
        return self.architecture.capability >= (9, 0)

    def number(self, size: Size) -> int:
        """A size as a number, by the hints. Weighs choices; correctness must not depend on it."""
        if isinstance(size, int):
            return size
        return evaluate(size, {name: self.hints.get(name, UNKNOWN) for name in symbols_of(size)})

    def holds(self, length: Size, across: bool) -> bool:
        """Whether a program holds rows of this length as a whole, so that it reads them once."""
        if across and self.number(length) > COLUMN:
            return False
        return isinstance(length, int) and length <= PERSISTENT

    def parts_of_row(self, rows: int, length: int, across: bool) -> int:
        """How many programs share each row; 1 if there are enough rows for all processors.

        `across`: neighbouring rows are neighbours in memory, so one program takes many of them.
        """
        programs = -(-rows // 64) if across else rows
        wanted = (8 if across else 4) * self.processors
        if programs >= wanted // 2 or rows * length < 4 * PART:
            return 1
        least = PART // min(max(rows, 1), 64) if across else PART
        most = max(length // least, 1)
        parts = min(-(-wanted // programs), most, 1024)
        # no part without elements, and if possible all of one length
        step = part_step(rows, across)
        return -(-length // (-(-length // (parts * step)) * step))

    def riding_programs(self, rows: int, length: int, riders: int, bytes_read: int) -> int:
        """How many programs share the rows if each also sums over its rows; 0 if none can.

        As few as have enough in flight, since each leaves a row of sums. `bytes_read`: per element
        of a row.
        """
        if length * riders > 2 * RIDING or length > RIDING:
            return 0
        step = RIDING_STAGES * max(length, STEP) * bytes_read
        each = min(max(MOST_IN_FLIGHT // step, 1), 4)
        return max(min(each * self.processors, -(-rows // 4)), 1)
