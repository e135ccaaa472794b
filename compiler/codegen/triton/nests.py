"""The kernels of one nest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from compiler.codegen.nests.rounding import without_round_trips
from compiler.codegen.nests.workspace import Workspace
from compiler.codegen.triton.kernel import Kernel, Writer
from compiler.codegen.triton.limits import Limits
from compiler.codegen.triton.split import Split
from compiler.codegen.triton.tiles import choose
from compiler.loops.nest import Nest


@dataclass(frozen=True, slots=True)
class Kernels:
    """What one nest becomes."""

    kernels: tuple[Kernel, ...]
    workspace: Workspace


def emit(
    nest: Nest,
    dtypes: Mapping[str, str],
    limits: Limits,
    comments: Mapping[str, str] | None = None,
    shared: Iterable[str] = (),
) -> Kernels:
    """The kernels of a nest, in order.

    `dtypes`: of each buffer. `comments`: origin -> the user's line. `shared`: buffers that may
    occupy the same memory as another buffer of the nest, element for element. Raises `Unwritable`.
    """
    split = Split(without_round_trips(nest), limits, frozenset(shared))
    parts = split.parts()
    known = {**dtypes, **{name: dtype for name, (dtype, _) in split.workspace.places.items()}}
    written = tuple(
        Writer(part, choose(part, limits), known, comments or {}, frozenset(shared)).write()
        for part in parts
    )
    return Kernels(written, split.workspace)
