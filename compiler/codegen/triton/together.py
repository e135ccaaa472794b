"""Small kernels that do not depend on each other, as one launch.

Each kernel becomes a function of its block's number, and the blocks of one follow those of another.
A launch takes a few microseconds, in which a GPU moves ten megabytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import dedent

from tcw.compiler.codegen.nests.names import Names, anonymous
from tcw.compiler.codegen.triton.alike import shared
from tcw.compiler.codegen.triton.kernel import RESERVED, TritonKernel
from tcw.compiler.codegen.triton.limits import Limits
from tcw.compiler.codegen.triton.nest_kernels import Kernels
from tcw.compiler.loops.nest import Nest, Program
from tcw.compiler.memory.plan import InArena, Plan, Segment
from tcw.compiler.memory.segments import home

WAVES = 8
"""Blocks for each processor from which on a kernel's own launch does not matter."""
MOST = 16
"""Kernels in one launch: each block looks for its own."""
LEAST = 4
"""Elements that each thread computes where a kernel gets the warps of another in its launch. Eight
norms of 512 rows, one of 1,024 elements and seven of up to 1,472, took 12.3 µs as two launches of
one and four warps on an H100; Inductor's one launch 9.1."""
_LAST_DIGITS = re.compile(r"_\d+$")
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
            apart = not any(memory.depend(other, step) for other in found[-1])
            kernels = [made[nest.name].kernels[0] for nest in (*found[-1], step)]
            if apart and _have_work(kernels):
                found[-1].append(step)
                continue
        found.append([step])
        open_group = small
    return found


def following(groups: Sequence[Sequence[Nest]], program: Program, plan: Plan | None) -> list[bool]:
    """Whether a group is launched right behind the one before it, by the same function."""
    after: set[str] = set()
    last: Nest | None = None
    for step in _in_segments(program, plan):
        if step is not None and last is not None:
            after.add(step.name)
        last = step
    return [group[0].name in after for group in groups]


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


def together(kernels: Sequence[TritonKernel], title: str) -> TritonKernel:
    """One kernel whose blocks are those of all of these, one after another.

    Kernels that are alike are one piece of its text: a block looks up its pointers and numbers, and
    then runs that.
    """
    warps = max(kernel.warps for kernel in kernels)
    kernels = shared([replace(kernel, warps=warps) for kernel in kernels])
    names = Names(RESERVED)
    parameters: dict[str, str] = {}
    types: dict[str, str] = {}
    pieces: dict[str, list[TritonKernel]] = {}
    for kernel in kernels:
        pieces.setdefault(kernel.key, []).append(kernel)
        for buffer, kind in zip(kernel.pointers, kernel.types, strict=True):
            if buffer not in parameters:
                parameters[buffer] = names.new(buffer)
                types[buffer] = kind
    text = ""
    lines: list[tuple[int, tuple[str, ...]]] = []
    for number, same in enumerate(pieces.values()):
        above = text.count("\n")
        head = rf"@triton.jit\ndef NAME__{number}(block, \1):\n"
        text += _HEAD.sub(head, same[0].body, count=1)
        text = text.replace("tl.program_id(0)", "block") + "\n\n"
        lines += [(above + line, origins) for line, origins in same[0].lines]
    calls = _calls(list(pieces.values()), parameters, names)
    head = f"@triton.jit\ndef NAME({', '.join(parameters.values())}):\n    # {title}\n"
    body = text + head + "    block = tl.program_id(0)\n" + "\n".join(calls) + "\n"
    kinds = tuple(types.values())
    return replace(
        kernels[0],
        body=body,
        pointers=tuple(parameters),
        types=kinds,
        grid=((sum(map(_count, kernels)), 1),),
        lines=tuple(lines),
        needs=frozenset().union(*(kernel.needs for kernel in kernels)),
        key=_key(list(pieces), calls, (*parameters.values(), *names.given), kinds, warps),
        numbers=(),
    )


def _calls(
    pieces: Sequence[Sequence[TritonKernel]], parameters: Mapping[str, str], names: Names
) -> list[str]:
    """The lines in which a block finds its piece, and what that works on."""
    lines: list[str] = []
    first = 0
    for number, same in enumerate(pieces):
        start, end = first, first + sum(map(_count, same))
        indent = "    "
        if len(pieces) > 1:
            last = number == len(pieces) - 1
            word = "else:" if last else f"{'el' if number else ''}if block < {end}:"
            lines.append(indent + word)
            indent += "    "
        given = [[parameters[b] for b in kernel.pointers] for kernel in same]
        for kernel, own in zip(same, given, strict=True):
            own += [repr(value.value) for value in kernel.numbers]
        if len(same) == 1:
            own_block = f"block - {start}" if start else "block"
            lines.append(f"{indent}NAME__{number}({own_block}, {', '.join(given[0])})")
        else:
            starts = []
            for kernel in same:
                starts.append(str(first))
                first += _count(kernel)
            columns = [starts, *map(list, zip(*given, strict=True))]
            wanted = ["first", *(_LAST_DIGITS.sub("", column[0]) for column in columns[1:])]
            held = [names.new(w if w.isidentifier() else "number") for w in wanted]
            for place in range(len(same)):
                last = place == len(same) - 1
                word = (
                    "else:" if last else f"{'el' if place else ''}if block < {starts[place + 1]}:"
                )
                lines.append(indent + word)
                pairs = zip(held, columns, strict=True)
                lines += [f"{indent}    {name} = {column[place]}" for name, column in pairs]
            lines.append(f"{indent}NAME__{number}(block - {held[0]}, {', '.join(held[1:])})")
        first = end
    return lines


def _key(
    pieces: Sequence[str],
    calls: Sequence[str],
    names: Sequence[str],
    kinds: Sequence[str],
    warps: int,
) -> str:
    """The pieces' keys and the calls with numbered names, as `TritonKernel.key`."""
    parts = [key.rpartition("\n") for key in pieces]
    text = "".join(part.replace("tl.program_id(0)", "block") for part, _, _ in parts)
    text += "block = tl.program_id(0)\n" + anonymous(dedent("\n".join(calls)), list(names), "#")
    tails = "; ".join(tail for _, _, tail in parts)
    return f"{text}\n{' '.join(kinds)} {warps} {tails}"


def _count(kernel: TritonKernel) -> int:
    count = kernel.programs()
    assert count is not None
    return count


def _have_work(kernels: Sequence[TritonKernel]) -> bool:
    """Whether each kernel can run with the most warps that one of them has."""
    warps = max(kernel.warps for kernel in kernels)
    return all(
        kernel.warps == warps or kernel.tile.a_thread * kernel.warps >= LEAST * warps
        for kernel in kernels
    )


def _is_small(made: Kernels, limits: Limits) -> bool:
    if len(made.kernels) != 1 or made.workspace.places:
        return False
    (kernel,) = made.kernels
    programs = None if kernel.sizes else kernel.programs()
    return programs is not None and programs <= WAVES * limits.processors


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
            block, start, end = self._place(name)
            for other, begin, stop in places:
                if block == other and begin < end and start < stop:
                    return True
        return False

    def _place(self, name: str) -> tuple[str, float, float]:
        """The block of memory, and from which byte to which."""
        placements = self.plan.placements if self.plan is not None else {}
        name = home(name, placements)
        placement = placements.get(name)
        if not isinstance(placement, InArena):
            return name, 0, 1
        size = self.program.memories[name].bytes
        if not isinstance(placement.offset, int) or not isinstance(size, int):
            return "arena", 0, float("inf")
        return "arena", placement.offset, placement.offset + size
