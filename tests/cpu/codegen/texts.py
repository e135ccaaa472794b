"""The C++ of a function, as tests of its text see it."""

from __future__ import annotations

import torch

from tcw.compiler.codegen.cpp.isa import AVX512, Isa
from tcw.compiler.codegen.cpp.nests import emit
from tcw.compiler.codegen.cpp.vocabulary import Vocabulary
from tcw.compiler.codegen.unit import buffer_dtypes
from tcw.compiler.loops.nest import Nest
from tests.cpu.codegen.nests import programs


def text(fn, *inputs: torch.Tensor, comment: str, isa: Isa = AVX512) -> str:
    """The functions of a graph, one line of the user for every operation."""
    (program,) = programs(fn, *inputs)
    nests = [step for step in program.steps if isinstance(step, Nest)]
    origins = {origin: f"model.py:12  {comment}" for nest in nests for origin in nest.origins()}
    dtypes = buffer_dtypes(program)
    return "\n".join(emit(nest, dtypes, Vocabulary(isa), origins).body for nest in nests)
