"""The C++ of scalar operators on vectors: types, loads, arithmetic, math, reductions.

A unit has one `Vocabulary`. Each loop nest takes its `Lanes` from it, which provide the text of
every expression and statement. The vocabulary records the pieces that this text uses; `prelude()`
is their C++ and precedes the kernels:

    vocabulary = Vocabulary(detect())
    nest = vocabulary.lanes(vocabulary.isa.lanes((4, 4)))        # 16 on AVX-512
    x = nest.load("float32", "x + i")                            # load16(x + i)
    y = nest.apply("exp", [x], ["float32"], "float32")           # exp(load16(x + i))
    nest.store("float32", "y + i", y)                            # store(y + i, exp(...));
    vocabulary.prelude() + kernels

All vectors of a nest have the same number of lanes, and none is wider than the machine's:
`Isa.lanes` of the sizes of all dtypes in the nest, including indices. One lane is scalar code.
16-bit floats are float32 in registers; integers have their own vector types and wrap; a bool is a
mask of 32-bit lanes, 0 or -1 (a plain bool in scalar code).

The text needs no header, but `isa.COMPILE_FLAGS` and the flags of the `Isa`. Functions without a
polynomial here call SLEEF's vector functions, which need torch's libtorch_cpu
(`Vocabulary.libraries`), or libm lane by lane, so the unit links with -lm.

An integer division by zero returns 0 and stores `DIVISION_BY_ZERO` in `*error`: a kernel that
divides integers must have an `int*` of that name. No variable of a kernel may be in `NAMES`.

Files: `types` names and literals · `loads_stores`, `strided` · `conversions` (bf16 and half too) ·
`operator_text` of each operator · `arithmetic`, `division` · `functions` over `exponentials`,
`logarithms`, `circular`, `powers`, `sleef` · `reductions`, `transposes` across lanes ·
GCC's builtins in `hardware`, `resizing`.
"""

from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes, Vocabulary
from tcw.compiler.codegen.cpp.vocabulary.operator_text import NAMES
from tcw.compiler.codegen.cpp.vocabulary.types import DIVISION_BY_ZERO, INDEX_OUT_OF_RANGE, SAYS

__all__ = ["DIVISION_BY_ZERO", "INDEX_OUT_OF_RANGE", "NAMES", "SAYS", "Lanes", "Vocabulary"]
