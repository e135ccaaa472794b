"""Small kernels that do not depend on each other, as one launch.

Each kernel becomes a function of its block's number, and the blocks of one follow those of another.
A launch takes a few microseconds, in which a GPU moves ten megabytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from compiler.codegen.nests.names import Names
from compiler.codegen.triton.kernel import RESERVED, Kernel
from compiler.codegen.triton.limits import Limits
from compiler.codegen.triton.nests import Kernels
from compiler.loops.dtypes import BYTES
from compiler.loops.nest import Nest
from compiler.loops.program import Program
from compiler.loops.sizes import multiply
from compiler.memory.plan import InArena, Plan, Segment, TakesOver

WAVES = 8
"""Blocks for each processor from which on a kernel's own launch does not matter."""
MOST = 16
"""Kernels in one launch: each block looks for its own."""
_HEAD = re.compile(r"@triton\.jit\ndef NAME\(([^)]*)\):\n")


def launches(
    program: Program, made: Mapping[str, Kernels], plan: Plan | None, limits: Limits
) -> list[list[Nest]]:
    """The nests in order, those that are launched together in one list."""
    memory = _Memory(program, plan)
    found: list[list[Nest]] = []
    open_group = False
    for step in _in_segments(program, plan):
        if step is None:
            open_group = False
            continue
        small = _is_small(made[step.name], limits)
        if open_group and small and len(found[-1]) < MOST:
            first = made[found[-1][0].name].kernels[0]
            apart = not any(memory.depend(other, step) for other in found[-1])
            if apart and first.warps == made[step.name].kernels[0].warps:
                found[-1].append(step)
                continue
        found.append([step])
        open_group = small
    return found


def _in_segments(program: Program, plan: Plan | None) -> Iterator[Nest | None]:
    """The nests in the order in which they run, with None where one function ends."""
    if plan is None:
        for step in program.steps:
            yield step if isinstance(step, Nest) else None
        return
    for planned in plan.steps:
        if isinstance(planned.run, Segment):
            yield from planned.run.nests
        yield None


def together(kernels: Sequence[Kernel], title: str) -> Kernel:
    """One kernel whose blocks are those of all of these, one after another."""
    names = Names(RESERVED)
    parameters: dict[str, str] = {}
    types: dict[str, str] = {}
    pieces: dict[str, str] = {}
    calls: list[str] = []
    text = ""
    lines: list[tuple[int, tuple[str, ...]]] = []
    first = 0
    for number, kernel in enumerate(kernels):
        for buffer, kind in zip(kernel.pointers, kernel.types, strict=True):
            if buffer not in parameters:
                parameters[buffer] = names.new(buffer)
                types[buffer] = kind
        piece = pieces.get(kernel.key)
        if piece is None:
            piece = pieces[kernel.key] = f"NAME__{len(pieces)}"
            above = text.count("\n")
            text += _HEAD.sub(rf"@triton.jit\ndef {piece}(block, \1):\n", kernel.body, count=1)
            text = text.replace("tl.program_id(0)", "block") + "\n\n"
            lines += [(above + line, origins) for line, origins in kernel.lines]
        given = ", ".join(parameters[buffer] for buffer in kernel.pointers)
        last = number == len(kernels) - 1
        if not last or number:
            word = (
                "else:" if last else f"{'el' if number else ''}if block < {first + _count(kernel)}:"
            )
            calls.append(f"    {word}")
        own = f"block - {first}" if first else "block"
        calls.append(f"        {piece}({own}, {given})")
        first += _count(kernel)
    head = f"@triton.jit\ndef NAME({', '.join(parameters.values())}):\n    # {title}\n"
    body = text + head + "    block = tl.program_id(0)\n" + "\n".join(calls) + "\n"
    kinds = tuple(types.values())
    return replace(
        kernels[0],
        body=body,
        pointers=tuple(parameters),
        types=kinds,
        programs=(first, 1, 1),
        across=None,
        lines=tuple(lines),
        needs=frozenset().union(*(kernel.needs for kernel in kernels)),
        key=f"{body}\n{' '.join(kinds)} {kernels[0].warps}",
    )


def _count(kernel: Kernel) -> int:
    size, block, factor = kernel.programs
    assert isinstance(size, int)
    count = -(-size // block) * factor
    if kernel.across is not None:
        other, width = kernel.across
        assert isinstance(other, int)
        count *= -(-other // width)
    return count


def _is_small(made: Kernels, limits: Limits) -> bool:
    if len(made.kernels) != 1 or made.workspace.places:
        return False
    (kernel,) = made.kernels
    sizes = [kernel.programs[0], *([kernel.across[0]] if kernel.across else [])]
    if kernel.sizes or not all(isinstance(size, int) for size in sizes):
        return False
    return _count(kernel) <= WAVES * limits.processors


@dataclass(slots=True)
class _Memory:
    """Which nests touch the same memory."""

    program: Program
    plan: Plan | None

    def depend(self, one: Nest, two: Nest) -> bool:
        """Whether one of two nests writes what the other reads or writes."""
        mine, theirs = set(one.writes()), set(two.writes())
        return self._meet(mine, {*two.reads(), *theirs}) or self._meet(theirs, set(one.reads()))

    def _meet(self, some: set[str], others: set[str]) -> bool:
        places = [self._place(name) for name in others]
        for name in some:
            home, start, end = self._place(name)
            for other, begin, stop in places:
                if home == other and begin < end and start < stop:
                    return True
        return False

    def _place(self, name: str) -> tuple[str, float, float]:
        """The block of memory, and from which byte to which."""
        placements = self.plan.placements if self.plan is not None else {}
        placement = placements.get(name)
        while isinstance(placement, TakesOver):
            name = placement.value
            placement = placements.get(name)
        if not isinstance(placement, InArena):
            return name, 0, 1
        memory = self.program.memories[name]
        size = multiply(memory.size, BYTES[memory.dtype])
        if not isinstance(placement.offset, int) or not isinstance(size, int):
            return "arena", 0, float("inf")
        return "arena", placement.offset, placement.offset + size
