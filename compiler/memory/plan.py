"""The memory plan: segments and calls in order, and the placement of each value.

A segment is a run of nests between two calls, compiled to one C function. Its temporaries share one
arena. A value that leaves it (read by a call or another segment, or an output) gets its own tensor,
unless it reuses the memory of a value that dies there.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcw.compiler.loops.graph import Call
from tcw.compiler.loops.nest import Nest
from tcw.compiler.loops.sizes import Size


@dataclass(frozen=True, slots=True)
class New:
    """A separate tensor, allocated by the segment."""


@dataclass(frozen=True, slots=True)
class InArena:
    """A temporary of one segment, at this byte offset in its arena (a multiple of 64)."""

    offset: Size


@dataclass(frozen=True, slots=True)
class TakesOver:
    """The memory of another value of the same size in bytes, which dies here.

    `in_place`: the writing nest also reads the other value, at the same addresses, and reads each
    element for the last time before overwriting it.
    """

    value: str
    in_place: bool


Placement = New | InArena | TakesOver


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of nests, compiled to one C function."""

    name: str
    """For example `segment_0`."""
    nests: tuple[Nest, ...]
    takes: tuple[str, ...]
    """Outside values whose memory it reads or writes, in parameter order. A value that reuses
    another value's memory is represented by that value (the first of the chain)."""
    gives: tuple[str, ...]
    """Values that leave the segment, in the order in which it returns them. A value that reuses
    outside memory is written there, and returned as a new view of it if shape or dtype differ."""
    sizes: tuple[str, ...]
    """Symbols that it needs, passed after the tensors."""
    arena_bytes: Size
    """The size of the arena that holds all its temporaries."""


@dataclass(frozen=True, slots=True)
class Step:
    """A segment or a call, with the values that die after it."""

    run: Segment | Call
    dies: tuple[str, ...] = ()
    """Names that nothing needs after the step. A value whose memory is reused remains as long as a
    later segment needs that memory."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The output of the memory stage."""

    steps: tuple[Step, ...]
    placements: dict[str, Placement]
    """The placement of every value that a nest writes, except mutated inputs."""
    peak_bytes: int | None
    """Peak bytes of temporaries and outputs; None if a size has no hint."""
    without_reuse_bytes: int | None
    """The peak if each value had its own memory throughout the run."""
