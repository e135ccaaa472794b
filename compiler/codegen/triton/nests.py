"""The kernels of one nest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tcw.compiler.codegen.choices import Chooser, NestChooser, of_nest
from tcw.compiler.codegen.nests.rounding import without_round_trips
from tcw.compiler.codegen.nests.workspace import Workspace
from tcw.compiler.codegen.triton import questions
from tcw.compiler.codegen.triton.kernel import TritonKernel, Writer
from tcw.compiler.codegen.triton.limits import Limits
from tcw.compiler.codegen.triton.parts import Part
from tcw.compiler.codegen.triton.split import Split
from tcw.compiler.codegen.triton.streams import streamed
from tcw.compiler.codegen.triton.tiles import Tile, candidates, choose
from tcw.compiler.loops.nest import Nest
from tcw.compiler.loops.sizes import product

GAIN = 0.97
"""Part of the default's time that another tile may take at most to be chosen."""

WORTH_MEASURING = 1 << 20
"""Elements of a kernel from which on its tile matters more than its launch. Smaller ones differ by
chance, and with different tiles they cannot share a launch."""


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
    found: list[TritonKernel] = []
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
                tile = questions.tile(asked, part, limits, tile, others, took, number)
        found.append(written(part, tile))
    return Kernels(tuple(found), split.workspace, asked)


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
