"""All nests of a plan or program as one C++ unit. Equal functions are emitted once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from compiler.codegen.choices import Ask, Chooser
from compiler.codegen.cpp.nests import emit
from compiler.codegen.cpp.nests.names import base_name
from compiler.codegen.cpp.vocabulary import Vocabulary
from compiler.codegen.function import Function
from compiler.loops.nest import Nest
from compiler.loops.program import Program
from compiler.memory.plan import InArena, Plan, TakesOver


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


def unit(
    plan: Plan | None,
    program: Program,
    vocabulary: Vocabulary,
    comments: Mapping[str, str] | None = None,
    ask: Ask | None = None,
) -> Unit:
    """The unit of a program with planned memory; without a plan, nothing shares memory.

    `ask` decides each choice of the code generator; without it all are the default.
    """
    chooser = None if ask is None else Chooser(ask, program.graph.name)
    dtypes = buffer_dtypes(program)
    functions: list[tuple[Nest, Function]] = []
    for step in program.steps:
        if isinstance(step, Nest):
            shared = shared_buffers(step, plan)
            functions.append((step, emit(step, dtypes, vocabulary, comments, shared, chooser)))
    return assemble(functions, vocabulary)


def assemble(functions: Iterable[tuple[Nest, Function]], vocabulary: Vocabulary) -> Unit:
    """The prelude, and each distinct body once."""
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
    code = vocabulary.prelude()
    lines: dict[str, int] = {}
    for name, body in bodies:
        code += "\n"
        lines[name] = code.count("\n") + 1
        code += body
    return Unit(code, kernels, lines, tuple(sorted(vocabulary.libraries)))


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
        homes.setdefault(_home(buffer, plan), []).append(buffer)
    return frozenset(name for group in homes.values() if len(group) > 1 for name in group)


def _home(buffer: str, plan: Plan) -> str:
    placement = plan.placements.get(buffer)
    while isinstance(placement, TakesOver):
        buffer = placement.value
        placement = plan.placements.get(buffer)
    return f"arena+{placement.offset}" if isinstance(placement, InArena) else buffer


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
