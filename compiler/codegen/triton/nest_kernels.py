"""The kernels of one nest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tcw.compiler.codegen.choices import Chooser, NestChooser, of_nest
from tcw.compiler.codegen.nests.rounding import without_round_trips
from tcw.compiler.codegen.nests.workspace import Workspace
from tcw.compiler.codegen.triton.kernel import TritonKernel, Writer
from tcw.compiler.codegen.triton.limits import Limits
from tcw.compiler.codegen.triton.parts import Part
from tcw.compiler.codegen.triton.split_nest import Split
from tcw.compiler.codegen.triton.streams import streamed
from tcw.compiler.codegen.triton.tiles import WARP, Tile, bytes_a_step, candidates, choose
from tcw.compiler.loops.nest import Nest
from tcw.compiler.loops.sizes import product
from tcw.compiler.trace.plurals import plural

GAIN = 0.97
"""Part of the default's time that another tile may take at most to be chosen."""

WORTH_MEASURING = 1 << 20
"""Elements of a kernel from which on its tile matters more than its launch. Smaller ones differ by
chance, and with different tiles they cannot share a launch."""
TILE = "tile"
TILE_MEANS = "positions x elements of a row that a program holds at a time, by how many warps"


@dataclass(frozen=True, slots=True)
class Kernels:
    """What one nest becomes."""

    kernels: tuple[TritonKernel, ...]
    workspace: Workspace
    asked: NestChooser | None = None
    """What asks about the nest's choices."""


Measure = Callable[[Sequence[TritonKernel], Workspace], list[float | None]]
"""Microseconds that each of these kernels takes, which do the same; None if that is unknown."""


def emit(
    nest: Nest,
    dtypes: Mapping[str, str],
    limits: Limits,
    comments: Mapping[str, str] | None = None,
    shared: Iterable[str] = (),
    chooser: Chooser | None = None,
    measure: Measure | None = None,
    elsewhere: frozenset[str] = frozenset(),
) -> Kernels:
    """The kernels of a nest, in order.

    `dtypes`: of each buffer. `comments`: origin -> the user's line. `shared`: buffers that may
    occupy the same memory as another buffer of the nest, element for element. `chooser` may
    override a tile; with `measure`, the default is the fastest of a few. `elsewhere`: buffers that
    other steps of the program read. Raises `Unwritable`.
    """
    split = Split(without_round_trips(nest), limits, frozenset(shared))
    parts = split.parts()
    known = {**dtypes, **{name: dtype for name, (dtype, _) in split.workspace.places.items()}}

    def read_last(part: Part) -> frozenset[str]:
        others = (other.nest.reads() for other in parts if other is not part)
        return streamed(part, limits) - elsewhere.union(*others)

    def written(part: Part, tile: Tile) -> TritonKernel:
        once = read_last(part)
        return Writer(part, tile, limits, known, comments or {}, frozenset(shared), once).write()

    asked = of_nest(chooser, nest)
    kernels: list[TritonKernel] = []
    for number, part in enumerate(parts):
        tile = choose(part, limits, bool(read_last(part)))
        if asked is not None or measure is not None:
            others = candidates(part, tile)
            took: dict[str, float] = {}
            whole = limits.number(product(axis.size for axis in part.nest.axes))
            if measure is not None and whole >= WORTH_MEASURING:
                tiles = [tile, *others]
                took = _measured(tiles, measure, [written(part, one) for one in tiles], split)
                tile = _fastest(tiles, took)
                others = [one for one in tiles if one != tile]
            if asked is not None:
                tile = decided_tile(asked, part, limits, tile, others, took, number)
        kernels.append(written(part, tile))
    return Kernels(tuple(kernels), split.workspace, asked)


def _measured(
    tiles: Sequence[Tile], measure: Measure, kernels: Sequence[TritonKernel], split: Split
) -> dict[str, float]:
    took = measure(kernels, split.workspace)
    pairs = zip(tiles, took, strict=True)
    return {tile.words: us for tile, us in pairs if us is not None}


def _fastest(tiles: Sequence[Tile], took: Mapping[str, float]) -> Tile:
    """The fastest tile; the default, which is the first, if none is clearly faster."""
    default = tiles[0]
    known = [tile for tile in tiles if tile.words in took]
    if default not in known:
        return default
    best = min(known, key=lambda tile: took[tile.words])
    return best if took[best.words] < GAIN * took[default.words] else default


def decided_tile(
    choose: NestChooser,
    part: Part,
    limits: Limits,
    default: Tile,
    others: Sequence[Tile],
    microseconds: dict[str, float],
    number: int,
) -> Tile:
    """The tile of a nest's kernel, of which it is the `number`th. `microseconds`: measured ones."""
    tiles = {other.words: other for other in (default, *others)}
    numbers = numbers_of(part, limits, default)
    numbers |= {f"us_{words}": took for words, took in microseconds.items()}
    flight, wanted = numbers["bytes_in_flight"], numbers["most_bytes_in_flight"]
    reason = (
        f"{plural(default.a_thread, 'element')} a thread, "
        f"{plural(int(numbers['programs']), 'program')}, "
        f"{flight} of {wanted} bytes in flight per processor"
    )
    if microseconds:
        best = microseconds[default.words]
        reason = f"{best:g} µs, the fastest of {len(microseconds)} that were measured; {reason}"
    choice = choose.choose(
        TILE,
        default.words,
        list(tiles),
        "measured" if microseconds else "bytes in flight",
        reason,
        numbers=numbers,
        means=TILE_MEANS,
        about="" if not number else f"{choose.names[0]}+{part.form}{number}",
    )
    return tiles[choice]


def numbers_of(part: Part, limits: Limits, tile: Tile) -> dict[str, int | float]:
    """What the model weighs."""
    positions = limits.number(part.nest.size(tile.x))
    programs = -(-positions // tile.x_block)
    if part.form == "partial":
        programs *= part.programs
    elif part.form == "riding":
        programs = part.programs
    elif tile.r_block and not any(axis.reduced for axis in part.nest.axes):
        programs *= -(-limits.number(part.nest.size(tile.r)) // tile.r_block)
    machine = limits.architecture
    threads = WARP * tile.warps
    step = bytes_a_step(part, tile) * tile.stages
    registers = min(max(2 * tile.a_thread + 24, 32), 255)
    fits = min(
        machine.threads_per_processor // threads,
        machine.registers_per_processor // (registers * threads),
    )
    resident = max(min(fits, -(-programs // limits.processors)), 1)
    return {
        "programs": programs,
        "threads": threads,
        "elements_a_thread": tile.a_thread,
        "registers_at_least": registers,
        "programs_a_processor": resident,
        "bytes_in_flight": resident * step,
        "most_bytes_in_flight": limits.in_flight,
    }
