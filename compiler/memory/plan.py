"""The memory plan: segments and calls in order, and where each value's memory comes from.

A segment is a run of nests between two calls: one C function. Inside it temporaries live in one
arena. What leaves it (read by a call, by another segment, or an output) is a tensor of its own,
unless it takes over the memory of one that dies there.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.loops.graph import Call
from compiler.loops.nest import Nest
from compiler.loops.sizes import Size


@dataclass(frozen=True, slots=True)
class New:
    """A tensor of its own, allocated by the segment."""


@dataclass(frozen=True, slots=True)
class InArena:
    """A temporary of one segment, at this byte offset of its arena (a multiple of 64)."""

    offset: Size


@dataclass(frozen=True, slots=True)
class TakesOver:
    """The memory of another value of the same bytes, which dies here.

    `in_place`: the writing nest reads that one, at the same addresses, and each element for the
    last time before it is written.
    """

    value: str
    in_place: bool


Placement = New | InArena | TakesOver


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of nests, one C function."""

    name: str
    """`segment_0`."""
    nests: tuple[Nest, ...]
    takes: tuple[str, ...]
    """Values from outside whose memory it reads or writes, in order of its parameters. Where a
    value took over another's memory, that other one (the first of the chain) stands here."""
    gives: tuple[str, ...]
    """Values that leave it, in the order in which it answers them. One that takes over memory from
    outside is written there, and answered as a new view of it where shape or dtype differ."""
    sizes: tuple[str, ...]
    """Symbols that it needs, passed after the tensors."""
    arena_bytes: Size
    """Of all its temporaries together."""


@dataclass(frozen=True, slots=True)
class Step:
    """A segment or a call, and which values have no reader after it."""

    run: Segment | Call
    dies: tuple[str, ...] = ()
    """Names that nothing needs after it. One whose memory was taken over stays as long as a later
    segment needs that memory."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the memory stage hands on."""

    steps: tuple[Step, ...]
    placements: dict[str, Placement]
    """Of every value that a nest writes, but for mutated inputs."""
    peak_bytes: int | None
    """Most bytes of temporaries and outputs alive at once; None where a size has no hint."""
    without_reuse_bytes: int | None
    """The same, if each value had memory of its own for the whole run."""
