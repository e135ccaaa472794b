"""The C++ of scalar operators on vectors: types, loads, arithmetic, math, reductions.

A unit has one `Vocabulary`; each loop nest takes its `Lanes` from it and asks for the text of every
expression and statement. The vocabulary remembers which pieces that text uses; `prelude()` is their
C++, which stands before the kernels:

    vocabulary = Vocabulary(detect())
    nest = vocabulary.lanes(vocabulary.isa.lanes((4, 4)))        # 16 on AVX-512
    x = nest.load("float32", "x + i")                            # load16(x + i)
    y = nest.apply("exp", [x], ["float32"], "float32")           # exp(load16(x + i))
    nest.store("float32", "y + i", y)                            # store(y + i, exp(...));
    vocabulary.prelude() + kernels

Every vector of a nest has the same number of lanes, and none is wider than the machine's:
`Isa.lanes` of the sizes of all dtypes in the nest, indices included. One lane is scalar code.
The 16-bit floats are float32 in registers; integers have vectors of their own and wrap; a bool is
a mask of 32-bit lanes, 0 or -1 (a plain bool in scalar code).

The text takes no header, and needs `isa.COMPILE_FLAGS` and the flags of the `Isa`. What has no
polynomial here calls libm, so the unit links with -lm.

An integer division by zero answers 0 and stores `DIVISION_BY_ZERO` in `*error`: a kernel that
divides integers must have an `int*` of that name. No variable of a kernel may be one of `NAMES`.

Files: `types` names and literals · `values` constants, iota · `memory`, `strided` loads, stores ·
`conversions`, `sixteen` (bf16 and half) · `operators` the text of each · `arithmetic`, `division` ·
`functions` over `exponentials`, `logarithms`, `circular`, `powers`, `libm`,
`special_functions` (their C++ is in `special/`) · `reductions`,
`argmax`, `scans`, `transposes` across lanes · GCC's builtins in `hardware`, `masked`, `resizing`.
"""

from compiler.codegen.cpp.vocabulary.lanes import Lanes, Vocabulary
from compiler.codegen.cpp.vocabulary.operators import NAMES
from compiler.codegen.cpp.vocabulary.types import DIVISION_BY_ZERO, INDEX_OUT_OF_RANGE, SAYS

__all__ = ["DIVISION_BY_ZERO", "INDEX_OUT_OF_RANGE", "NAMES", "SAYS", "Lanes", "Vocabulary"]
