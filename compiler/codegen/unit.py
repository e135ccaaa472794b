"""A program's functions, each of one loop nest, as one C++ unit, with the kernels of a GPU that
they launch. Equal functions are emitted once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import msgspec

from tcw.compiler.codegen.nests.names import base_name
from tcw.compiler.loops.nest import Nest, Program
from tcw.compiler.loops.sizes import Size
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


class DeviceKernel(msgspec.Struct, frozen=True):
    """One kernel of a module, in the order in which the unit numbers them."""

    name: str
    types: tuple[str, ...]
    """Of its parameters, as Triton writes them: `*fp32`, `i64`."""
    warps: int
    line: int
    """Of the module's text at which it begins, from 1."""
    count: int
    """How many lines it has."""
    key: str
    """A digest of its code without names and comments: equal for kernels that do the same."""
    checks: bool = False
    """It checks indices, and ends the program if one is out of range."""
    divisible: tuple[tuple[int, int], ...] = ()
    """(parameter, besides pointers; the power of two that it is a multiple of), up to 16."""


@dataclass(frozen=True, slots=True)
class DeviceModule:
    """All kernels of a graph."""

    text: str
    """Python text that defines them with Triton."""
    kernels: tuple[DeviceKernel, ...]


@dataclass(frozen=True, slots=True)
class PhaseLines:
    """One of the phases of a function: loops that run before or after those of the others. Lines
    are of the function's body, from 1."""

    call: int
    """Of the statement that runs it, on one thread or on all."""
    loop: int
    """Of its first outermost loop; of its head if it has none."""


@dataclass(frozen=True, slots=True)
class Function:
    """One nest's code.

    Nests that differ only in the names of their buffers and symbols share one body: the unit
    contains each distinct `body` once. In C++ its signature is

        static void NAME(void* const* pointers, const long* sizes, char* workspace, int* error)
    """

    body: str
    """The text, with `@` in place of its name; an `@` in a comment is the user's."""
    pointers: tuple[str, ...]
    """Buffers, in the order in which the body takes them."""
    sizes: tuple[str, ...]
    """Symbols, in the order in which the body takes them."""
    workspace_bytes: Size = 0
    """Scratch memory per call; it need not be zeroed."""
    lines: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """(line of the body, counted from 1; origins that the line computes)."""
    parts: tuple[PhaseLines, ...] = ()
    """The phases that are functions of their own, in the order in which they run."""
    loops: tuple[int, ...] = ()
    """Lines of the body, from 1, at which its outermost loops begin."""
    shown: str = ""
    """The kernels that it launches, in their language; "" if the body is what runs. Then `lines`
    are those of this text."""
    launches: tuple[str, ...] = ()
    """Names of these kernels, in order."""
    key: str = ""
    """The text without comments and with numbered names: equal for functions that do the same to
    pointers and sizes in the same order. "" if unknown."""

    def named(self, name: str) -> str:
        """The body with the given name."""
        return _NAME_OR_COMMENT.sub(lambda match: name if match[0] == "@" else match[0], self.body)


_NAME_OR_COMMENT = re.compile(r"//[^\n]*|@")
