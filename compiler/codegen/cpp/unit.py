"""All nests of a plan or program as one C++ unit for the CPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from compiler.codegen.choices import Ask, Chooser
from compiler.codegen.cpp.nests import emit
from compiler.codegen.cpp.vocabulary import Vocabulary
from compiler.codegen.function import Function
from compiler.codegen.unit import Unit, buffer_dtypes, shared_buffers
from compiler.codegen.unit import assemble as assembled
from compiler.loops.nest import Nest
from compiler.loops.program import Program
from compiler.memory.plan import Plan


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
    """The unit of these functions, with what their text needs of the vocabulary."""
    made = assembled(functions, vocabulary.prelude)
    return replace(made, libraries=tuple(sorted(vocabulary.libraries)))
