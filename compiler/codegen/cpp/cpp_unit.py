"""All nests of a plan or program as one C++ unit for the CPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tcw.compiler.codegen.choices import Ask, Chooser
from tcw.compiler.codegen.cpp.nests import emit
from tcw.compiler.codegen.cpp.vocabulary import Vocabulary
from tcw.compiler.codegen.nests.same import Repeated, form_of
from tcw.compiler.codegen.unit import Function, Unit, buffer_dtypes, shared_buffers
from tcw.compiler.codegen.unit import assemble as assembled
from tcw.compiler.loops.nest import Nest, Program
from tcw.compiler.memory.plan import Plan


def unit(
    plan: Plan | None,
    program: Program,
    vocabulary: Vocabulary,
    comments: Mapping[str, str] | None = None,
    ask: Ask | None = None,
) -> Unit:
    """The unit of a program with planned memory; without a plan, nothing shares memory.

    `ask` decides each choice of the code generator; without it all are the default. Without
    `comments` and `ask`, nests that differ only in names are written once, and lines of the others
    have no origins.
    """
    chooser = None if ask is None else Chooser(ask, program.graph.name)
    dtypes = buffer_dtypes(program)
    repeated = Repeated(_renamed)

    def function_of(nest: Nest) -> Function:
        shared = shared_buffers(nest, plan)

        def emitted() -> Function:
            return emit(nest, dtypes, vocabulary, comments, shared, chooser)

        if comments is not None or chooser is not None:
            return emitted()
        return repeated.code(form_of(nest, dtypes, shared), emitted)

    nests = [step for step in program.steps if isinstance(step, Nest)]
    return assemble([(nest, function_of(nest)) for nest in nests], vocabulary)


def _renamed(made: Function, names: Mapping[str, str]) -> Function:
    """The function for other buffers."""
    return replace(made, pointers=tuple(names[buffer] for buffer in made.pointers), lines=())


def assemble(functions: Iterable[tuple[Nest, Function]], vocabulary: Vocabulary) -> Unit:
    """The unit of these functions, with what their text needs of the vocabulary."""
    made = assembled(functions, vocabulary.prelude)
    return replace(made, libraries=tuple(sorted(vocabulary.libraries)))
