"""A program's functions as one C++ unit. Equal functions are emitted once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tcw.compiler.codegen.device import DeviceModule
from tcw.compiler.codegen.function import Function
from tcw.compiler.codegen.nests.names import base_name
from tcw.compiler.loops.nest import Nest
from tcw.compiler.loops.program import Program
from tcw.compiler.memory.plan import InArena, Plan
from tcw.compiler.memory.segments import home


@dataclass(frozen=True, slots=True)
class Unit:
    """One translation unit."""

    code: str
    """The prelude and the functions, without an entry point."""
    kernels: dict[str, tuple[str, Function]]
    """Name of each nest -> name of its function in `code`, and the function."""
    first_lines: dict[str, int]
    """Name of each function -> the line of `code`, counted from 1, at which its body starts."""
    libraries: tuple[str, ...] = ()
    """What the code needs beyond libm: `torch_cpu`."""
    device: DeviceModule | None = None
    """The kernels that the functions launch, if they run on a GPU."""


def assemble(
    functions: Iterable[tuple[Nest, Function]],
    prelude: Callable[[], str],
    device: DeviceModule | None = None,
) -> Unit:
    """The prelude, and each distinct body once. `prelude` is called after the bodies are known."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    bodies: list[tuple[str, str]] = []
    kernels: dict[str, tuple[str, Function]] = {}
    first: dict[str, Function] = {}
    for nest, function in functions:
        name = names.get(function.key)
        if name is None:
            name = names[function.key] = _name(nest, taken)
            first[name] = function
            bodies.append((name, function.named(name)))
        else:
            same = first[name]
            function = replace(function, body=same.body, parts=same.parts, loops=same.loops)
        kernels[nest.name] = (name, function)
    code = prelude()
    lines: dict[str, int] = {}
    for name, body in bodies:
        code += "\n"
        lines[name] = code.count("\n") + 1
        code += body
    return Unit(code, kernels, lines, device=device)


def buffer_dtypes(program: Program) -> dict[str, str]:
    """The dtype of everything that a nest can read or write."""
    found = {memory.name: memory.dtype for memory in program.memories.values()}
    for name, value in program.graph.values().items():
        found.setdefault(name, value.dtype)
    return found


def shared_buffers(nest: Nest, plan: Plan | None) -> frozenset[str]:
    """Buffers of a nest that share memory with another buffer that it uses.

    Includes both the buffer that is written and the one whose memory it reuses.
    """
    if plan is None:
        return frozenset()
    buffers = {*nest.reads(), *nest.writes()}
    homes: dict[str, list[str]] = {}
    for buffer in sorted(buffers):
        owner = home(buffer, plan.placements)
        place = plan.placements.get(owner)
        shared = f"arena+{place.offset}" if isinstance(place, InArena) else owner
        homes.setdefault(shared, []).append(buffer)
    return frozenset(name for group in homes.values() if len(group) > 1 for name in group)


def _name(nest: Nest, taken: set[str]) -> str:
    """A function name after what the nest computes: softmax, add_layer_norm."""
    words = base_name(nest.label or nest.name)[:48].strip("_").lower()
    wanted, number = f"nest_{words}", 1
    name = wanted
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name
