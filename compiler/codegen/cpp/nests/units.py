"""Units of work: the positions of the outer axes, and chunks of the lane axis, as one index.

Threads take ranges of units, whose axes are in the nest's order, that of what it writes: no two
threads write into the same lines. The bands of a row of tiles follow each other, since they read
the same lines. With riders, units form blocks that depend only on the sizes, and blocks are summed
in order, so that any number of threads gives the same bits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tcw.compiler.codegen.cpp.nests.code import Code, Scope
from tcw.compiler.codegen.cpp.nests.schedule import Schedule
from tcw.compiler.codegen.nests.facts import Facts
from tcw.compiler.codegen.nests.names import Names
from tcw.compiler.loops.sizes import Size, c_expression, product

BLOCKS = 64
"""Maximum number of blocks of a nest with riders."""


class Units:
    """Names and bounds of the loops around a row."""

    def __init__(self, facts: Facts, schedule: Schedule, names: Names) -> None:
        self.facts = facts
        self.schedule = schedule
        self.chunk = schedule.chunk
        self.axis_names: dict[int, str] = {}
        self.grouped: int | None = None
        """The number of blocks that the units form, for nests with riders."""
        self.run: tuple[str, str, str] | None = None
        """The last axis of several that the units have, its first and its last position in a run of
        units that differ in it alone; None if the units have a single axis, or chunks or tiles."""
        self.head = Code()
        self.lane_name = "column"
        self._start, self._width, self.band = "start", "width", "band"
        self._name(names)
        self._part = "chunk"
        self.sizes: list[Size | str] = []
        self._split(names)

    def _name(self, names: Names) -> None:
        schedule = self.schedule
        if len(schedule.outer) == 1:
            self.axis_names[schedule.outer[0]] = names.exactly("row")
        else:
            for axis, wanted in zip(schedule.outer, _letters("ijklmn"), strict=False):
                self.axis_names[axis] = names.exactly(wanted)
        for axis, wanted in zip(schedule.inner, _letters("rstuvw"), strict=False):
            self.axis_names[axis] = names.exactly(wanted)
        if schedule.lane is not None:
            flat = not (schedule.outer or schedule.inner) and schedule.banded is None
            self.lane_name = names.exactly("element" if flat else "column")
        if self.chunk is not None:
            self._start, self._width = names.exactly("start"), names.exactly("width")
        if schedule.banded is not None:
            self.axis_names[schedule.banded] = names.exactly("row" if not schedule.outer else "r")
            self.band = names.exactly("band")

    def _size(self, axis: int) -> Size:
        return self.facts.nest.axes[axis].size

    def _unit_axes(self) -> tuple[int, ...]:
        return self.schedule.outer[: self.schedule.units]

    def _split(self, names: Names) -> None:
        """Code that splits a unit's index into axes and the start of a chunk."""
        axes = self._unit_axes()
        found: list[tuple[int, str, Size | str]] = [
            (axis, self.axis_names[axis], self._size(axis)) for axis in axes
        ]
        tile, lane = self.schedule.banded, self.schedule.lane
        if tile is not None:
            found.append(
                (tile, f"{self.band}_number", _parts(self._size(tile), self.schedule.band))
            )
        if self.chunk is not None:
            assert lane is not None
            self._part = "chunk" if not axes else names.exactly("part")
            found.append((lane, self._part, _parts(self._size(lane), self.chunk)))
        if tile is None:
            found.sort(key=lambda one: one[0])
        parts = [name for _, name, _ in found]
        self.sizes = [size for _, _, size in found]
        self.name = parts[0] if len(parts) == 1 else names.exactly("unit")
        if len(parts) > 1 and tile is None and self.chunk is None:
            last = parts[-1]
            self.run = last, names.exactly(f"{last}_begin"), names.exactly(f"{last}_end")
        if len(parts) > 1:
            for place, part in enumerate(parts):
                later = self.sizes[place + 1 :]
                text = self.name
                if later:
                    text = f"{text} / {_product(later)}"
                if place:
                    text = f"{text} % {_product(self.sizes[place : place + 1])}"
                self.head.add(f"const long {part} = {text};")
        if self.schedule.banded is not None:
            rows, size = self.schedule.band, c_expression(self._size(self.schedule.banded))
            self.head.add(f"const long {self.band} = {self.band}_number * {rows};")
            even = self.band_rows().isdigit()
            end = f"{self.band} + {rows}"
            if not even:
                end = f"{end} < {size} ? {end} : {size}"
            one = rows == self.schedule.lanes
            if not (even and (self.schedule.blocks or (one and self.whole_tiles()))):
                self.head.add(f"const long {self.band}_end = {end};")
        if self.chunk is not None:
            assert self.schedule.lane is not None
            size = c_expression(self._size(self.schedule.lane))
            chunk = c_expression(self.chunk)
            start, width = self._start, self._width
            self.head.add(f"const long {start} = {self._part} * {chunk};")
            whole = self._size(self.schedule.lane)
            even = isinstance(whole, int) and isinstance(self.chunk, int) and not whole % self.chunk
            left = f"{size} - {start} < {chunk} ? {size} - {start} : {chunk}"
            self.head.add(f"const long {width} = {chunk if even else left};")

    def axis_loops(
        self, axes: Iterable[int], scope: Scope, backwards: Collection[int] = ()
    ) -> list[tuple[Scope, str]]:
        """Scopes inside this one for axes within a unit, and the headers of their loops."""
        opened: list[tuple[Scope, str]] = []
        for axis in axes:
            name, size = self.axis_names[axis], c_expression(self._size(axis))
            header = f"for (long {name} = 0; {name} < {size}; {name}++)"
            if axis in backwards:
                header = f"for (long {name} = {size} - 1; {name} >= 0; {name}--)"
            scope = Scope(scope, scope.lanes, {axis: (name, 1)})
            opened.append((scope, header))
        return opened

    def own(self) -> dict[int, tuple[str, int]]:
        """The index of each axis in the scope of a unit."""
        known = {axis: (self.axis_names[axis], 1) for axis in self._unit_axes()}
        if self.chunk is not None:
            assert self.schedule.lane is not None
            known[self.schedule.lane] = (self._start, 1)
        return known

    def partial(self) -> int | None:
        return self.schedule.lane if self.chunk is not None else None

    def count(self) -> int | str:
        """The number of units, as a number or a C expression."""
        if all(isinstance(size, int) for size in self.sizes):
            return int(str(product(size for size in self.sizes if isinstance(size, int))))
        return _product(self.sizes)

    def loop(self, begin: str, end: str) -> str:
        if not self.sizes:
            return ""
        return f"for (long {self.name} = {begin}; {self.name} < {end}; {self.name}++)"

    def run_head(self) -> Code:
        """Where a run of units begins and ends."""
        assert self.run
        _, begin, end = self.run
        size, head = _product(self.sizes[-1:]), Code()
        head.lines.extend(self.head.lines[:-1])
        head.add(f"const long {begin} = {self.name} % {size};")
        left = f"unit_end - {self.name}"
        head.add(f"const long {end} = {begin} + {left} < {size} ? {begin} + {left} : {size};")
        head.add(f"{self.name} += {end} - {begin};")
        return head

    def runs_loop(self) -> str:
        """The loop over the runs of a block."""
        return f"for (long {self.name} = unit_begin; {self.name} < unit_end;)"

    def block_loop(self, begin: str, end: str, dealt: bool) -> str:
        """`dealt`: blocks are distributed round robin, not as a contiguous range per thread."""
        step = "block += threads" if dealt else "block++"
        return f"for (long block = {begin}; block < {end}; {step})"

    def block_head(self, code: Code) -> None:
        """Declare the units of a block; block sizes differ by at most one."""
        count, blocks = self.count(), self.grouped
        code.add(f"const long unit_begin = block * {count} / {blocks};")
        code.add(f"const long unit_end = (block + 1) * {count} / {blocks};")

    def blocks(self, most: int = BLOCKS) -> int:
        """The number of blocks of a nest with riders, at most `most`."""
        count = self.count()
        return max(min(count, most), 1) if isinstance(count, int) else most

    def lane_size(self) -> Size:
        assert self.schedule.lane is not None
        return self._size(self.schedule.lane)

    def lane_width(self) -> int | None:
        """The elements of the lane axis in each unit, if they are as many in all of them."""
        size, chunk = self.lane_size(), self.chunk
        if chunk is None:
            return size if isinstance(size, int) else None
        even = isinstance(size, int) and isinstance(chunk, int) and not size % chunk
        return chunk if even and isinstance(chunk, int) else None

    def lane_bound(self) -> str:
        return self._width if self.chunk is not None else c_expression(self.lane_size())

    def band_rows(self) -> str:
        """The number of rows in a band."""
        tile = self.schedule.tile
        whole = None if tile is None else product(map(self._size, (tile, *self.schedule.joined)))
        even = isinstance(whole, int) and whole % self.schedule.band == 0
        return str(self.schedule.band) if even else f"({self.band}_end - {self.band})"

    def whole_tiles(self) -> bool:
        """Whether there are no partial tiles at the end of the rows or columns."""
        schedule = self.schedule
        sizes = [self._size(axis) for axis in (schedule.banded, schedule.lane) if axis is not None]
        return all(isinstance(size, int) and size % schedule.lanes == 0 for size in sizes)

    def guard(self, domain: frozenset[int]) -> str:
        """A condition that is true once per position of a domain with fewer axes."""
        parts = [
            f"{self.axis_names[axis]} == 0"
            for axis in self.schedule.outer
            if axis not in domain and self._size(axis) != 1
        ]
        if self.chunk is not None and self.schedule.lane not in domain:
            parts.append(f"{self._start} == 0")
        return " && ".join(parts)


def _parts(size: Size, width: Size) -> Size | str:
    """The number of parts of this width in an axis; the last part may be smaller."""
    if isinstance(size, int) and isinstance(width, int):
        return -(-size // width)
    text, part = c_expression(size), c_expression(width)
    return f"(({text} + {part} - 1) / {part})"


def _letters(text: str) -> list[str]:
    return [*text, *(f"{letter}{number}" for number in range(2, 9) for letter in text)]


def _product(sizes: list[Size | str]) -> str:
    if all(isinstance(size, int) for size in sizes):
        return str(product(size for size in sizes if isinstance(size, int)))
    texts = [size if isinstance(size, str) else c_expression(size) for size in sizes]
    return texts[0] if len(texts) == 1 else f"({' * '.join(texts)})"
