"""`Vocabulary` and `Lanes`: the source of C++ text for code generation."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tcw.compiler.codegen.cpp.isa import Isa
from tcw.compiler.codegen.cpp.vocabulary import (
    conversions,
    loads_stores,
    operator_text,
    reductions,
    strided,
    transposes,
    within,
)
from tcw.compiler.codegen.cpp.vocabulary.types import (
    CODES,
    SCALARS,
    SIGNED,
    STORAGE,
    UNSIGNED,
    literal,
)
from tcw.compiler.loops.dtypes import BYTES, REDUCED, compute_dtype
from tcw.compiler.loops.operators import identity

_ATOM = re.compile(r"[\w.]+")


class Vocabulary:
    """The pieces that one C++ unit uses, in dependency order."""

    def __init__(self, isa: Isa, *, sleef: bool = False) -> None:
        """`sleef`: the unit may be linked with torch's SLEEF."""
        self.isa = isa
        self.sleef = sleef
        self.libraries: set[str] = set()
        """What the text needs beyond libm: `torch_cpu`."""
        self._pieces: dict[str, str] = {}
        self._lanes: dict[int, Lanes] = {}

    def lanes(self, lanes: int) -> Lanes:
        """The vocabulary of a loop nest with this many lanes; 1 is scalar code."""
        if lanes not in self._lanes:
            self._lanes[lanes] = Lanes(self, lanes)
        return self._lanes[lanes]

    def need(self, key: str, text: Callable[[], str]) -> None:
        """Add a piece to the prelude, unless present; `text` adds its own dependencies."""
        if key not in self._pieces:
            written = text()
            self._pieces[key] = written

    def prelude(self) -> str:
        """The C++ of exactly the pieces that are used, each after its dependencies."""
        if not self._pieces:
            return ""
        return "\n".join((_OPENING, *self._pieces.values(), "}  // namespace", ""))


_OPENING = """\
#define INLINE inline __attribute__((always_inline))
#define OUTLINE __attribute__((noinline))
namespace {"""


class Lanes:
    """Text generation for one lane count: each method returns C++ and records what it needs. Most
    are functions of the files beside this one.

    Expressions come without a semicolon, statements with one. Arguments are expressions; pointers
    point to the dtype's storage type. Counts, indices and strides are `long`.
    """

    def __init__(self, vocabulary: Vocabulary, count: int) -> None:
        self.vocabulary = vocabulary
        self.isa = vocabulary.isa
        self.count = count
        self.suffix = str(count) if count > 1 else ""
        """Suffix of functions whose arguments do not determine the number of lanes: load16."""
        self.index_dtype = "int64" if count == 1 or 8 * count <= self.isa.vector_bytes else "int32"
        """The widest integer that a register of this nest holds; argmax uses it."""
        self._constants: dict[str, tuple[str, bool | int | float]] = {}
        self._types: dict[str, str] = {}
        self._forms: dict[tuple[str, str, str], operator_text.Syntax] = {}

    # Types and values

    def type(self, dtype: str) -> str:
        """The type of a register: f32x16, i64x8, mask16; float, long, bool for one lane.

        Raises ValueError if the vector would be wider than the machine's.
        """
        known = self._types.get(dtype)
        if known is None:
            known = self._types[dtype] = self._name_type(dtype)
        return known

    def _name_type(self, dtype: str) -> str:
        dtype = compute_dtype(dtype)
        if self.count == 1:
            return SCALARS[dtype]
        if dtype == "bool":
            integers, name = self.type("int32"), f"mask{self.count}"
            self.need(name, lambda: f"typedef {integers} {name};  // each lane 0 or -1")
            return name
        return self._vector(CODES[dtype], SCALARS[dtype], BYTES[dtype])

    def _vector(self, code: str, scalar: str, size: int) -> str:
        if size * self.count > self.isa.vector_bytes:
            raise ValueError(
                f"{code} in {self.count} lanes is wider than the {self.isa.vector_bytes} bytes"
                f" of a vector of {self.isa.name}; give the nest Isa.lanes() lanes"
            )
        name = f"{code}x{self.count}"
        attribute = f"vector_size({size * self.count})"
        self.need(name, lambda: f"typedef {scalar} {name} __attribute__(({attribute}));")
        return name

    def unsigned(self, size: int) -> str:
        """The type of unsigned lanes of `size` bytes: u32x16; unsigned for one lane."""
        if self.count == 1:
            return UNSIGNED[size]
        return self._vector(f"u{8 * size}" if size > 1 else "u8", UNSIGNED[size], size)

    def signed(self, size: int) -> str:
        """The type of signed lanes of `size` bytes, as returned by comparisons of that size."""
        if self.count == 1:
            return SIGNED[size]
        return self._vector(f"i{8 * size}", SIGNED[size], size)

    def unaligned(self, name: str, element: str, size: int) -> str:
        """A vector type for memory with only element alignment."""
        own = f"{name}_in_memory"
        self.need(own, lambda: f"typedef {name} {own} __attribute__((aligned({size})));")
        return own

    def storage(self, dtype: str) -> str:
        """The element type in memory: float, bf16, half, long, bool."""
        name = STORAGE[dtype]
        if name in ("bf16", "half"):
            self.need(name, lambda: f"struct {name} {{ unsigned short bits; }};")
        return name

    def need(self, key: str, text: Callable[[], str]) -> None:
        """Add a piece to the prelude, unless present."""
        self.vocabulary.need(key, text)

    def constant(self, value: bool | int | float, dtype: str) -> str:
        """An exact literal in every lane (NaN, infinities, -0.0 and the least integers)."""
        text = literal(value, dtype)
        if self.count > 1:
            text = self.broadcast(text, dtype)
        elif text.startswith("-"):
            text = f"({text})"
        self._constants[text] = (literal(value, dtype), value)
        return text

    def known(self, text: str) -> tuple[str, bool | int | float] | None:
        """The literal and the value of a text that `constant` returned."""
        return self._constants.get(text)

    # Memory

    load = loads_stores.load
    load_partial = loads_stores.load_partial
    load_strided = strided.load_strided
    load_converted = conversions.load_converted
    load_within = within.load_within
    load_clamped = within.load_clamped
    load_transposed = transposes.load_transposed
    gather = strided.gather
    gather_places = strided.gather_places
    has_gather = strided.has_gather
    inside = within.inside
    store = loads_stores.store
    store_partial = loads_stores.store_partial
    store_strided = strided.store_strided
    store_interleaved = strided.store_interleaved
    scatter = strided.scatter
    transpose_tile = transposes.transpose_tile
    transpose_edge = transposes.transpose_edge
    transpose_bits = transposes.transpose_bits
    transpose_bits_edge = transposes.transpose_bits_edge

    def holds(self, dtype: str) -> bool:
        """Whether elements of this dtype fit a register with this many lanes."""
        return self.count == 1 or BYTES[compute_dtype(dtype)] * self.count <= self.isa.vector_bytes

    # Values

    convert = conversions.convert
    transpose = transposes.transpose

    def broadcast(self, scalar: str, dtype: str) -> str:
        """A scalar register's value in every lane."""
        if self.count == 1:
            return scalar
        vector, name = self.type(dtype), f"broadcast{self.suffix}"
        element = SCALARS["float32" if dtype in REDUCED else dtype]
        value = "-(int)x" if dtype == "bool" else "x"
        self.need(
            f"{name}({element})",
            lambda: (
                f"INLINE {vector} {name}({element} x) "
                f"{{ return {vector}{{{', '.join([value] * self.count)}}}; }}"
            ),
        )
        return f"{name}({scalar})"

    def iota(self, start: str, dtype: str = "int64") -> str:
        """start, start+1, ... in the lanes, of an integer dtype."""
        if self.count == 1:
            return f"({SCALARS[dtype]})({start})"
        vector, name = self.type(dtype), f"iota_{self.type(dtype)}"
        steps = ", ".join(map(str, range(self.count)))
        self.need(
            name,
            lambda: (
                f"INLINE {vector} {name}({SCALARS[dtype]} start) "
                f"{{ return {vector}{{{steps}}} + start; }}"
            ),
        )
        return f"{name}({start})"

    def first(self, count: str) -> str:
        """A mask of the lanes below `count`."""
        if self.count == 1:
            return f"({count}) > 0"
        mask, name = self.type("bool"), f"first{self.suffix}"
        steps = ", ".join(map(str, range(self.count)))
        self.need(
            name,
            lambda: (
                f"INLINE {mask} {name}(long count) {{ return {mask}{{{steps}}} < (int)count; }}"
            ),
        )
        return f"{name}({count})"

    def apply(
        self,
        op: str,
        args: Sequence[str],
        operand_dtypes: Sequence[str],
        dtype: str,
        count: str | None = None,
    ) -> str:
        """One of `OPERATORS`, as ATen computes it.

        Also accepts `exp_nonpositive` (a cheaper exp for x <= 0), `max_quick` and `min_quick` (see
        `combine`). An integer division reports a divisor of 0 through `*error`. If `count` is
        given, only the first lanes hold data, and the others (0 after a partial load) are not
        reported. Constant exponents and divisors (texts from `constant`) are simplified. Raises
        KeyError if ATen does not define `op` on the dtype.
        """
        special = operator_text.with_constant(self, op, args, operand_dtypes, dtype)
        if special is not None:
            return special
        if op in operator_text.DIVISIONS and count is not None and self.count > 1:
            divisor = self.select_lanes(args[1], self.constant(1, dtype), count, dtype)
            args = (args[0], divisor)
        operand = operand_dtypes[1 if op == "where" else 0]
        key = (op, operand, dtype)
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = operator_text.form(self, op, operand, dtype)
        if not form.infix:
            return form.text.format(*args)
        if form.literals and self.count > 1:
            args = self._literals(args)
        return form.text.format(
            *(arg if _ATOM.fullmatch(arg) or is_call(arg) else f"({arg})" for arg in args)
        )

    def held_as(self, value: str, source: str, dtype: str) -> str:
        """A register of a dtype as one of another, which may be held alike."""
        if compute_dtype(source) == compute_dtype(dtype):
            return value
        return self.apply("convert", (value,), (source,), dtype)

    def _literals(self, args: Sequence[str]) -> Sequence[str]:
        """One constant operand of a vector operator may remain a scalar literal: x * 0.5f."""
        for place, arg in enumerate(args):
            constant = self._constants.get(arg)
            if constant is not None:
                return (*args[:place], constant[0], *args[place + 1 :])
        return args

    def select_lanes(self, value: str, other: str, count: str, dtype: str) -> str:
        """The lanes of `value` below `count`, and those of `other` above."""
        return self.apply("where", (self.first(count), value, other), ("bool", dtype, dtype), dtype)

    # Reductions and scans

    reduce = reductions.reduce
    arg_update = reductions.arg_update
    arg_reduce = reductions.arg_reduce
    scan = reductions.scan
    last = reductions.last

    def identity(self, op: str, dtype: str) -> str:
        """The identity of sum, prod, max, min, any or all, in every lane."""
        return self.constant(identity(op.removesuffix("_quick"), dtype).number, dtype)

    def combine(self, op: str, a: str, b: str, dtype: str) -> str:
        """Combine two partial results of sum, prod, max, min, any or all, lane by lane.

        `max_quick` and `min_quick` lose a NaN on the left: for a maximum that is used only in
        sum(exp(x - max)), where the sum propagates it.
        """
        return self.apply(reductions.OPERATOR[op], (a, b), (dtype, dtype), dtype)


def is_call(text: str) -> bool:
    """Whether the text is one call or parenthesised, so that an operator may be adjacent to it."""
    if not text.endswith(")"):
        return False
    head = re.match(r"\w*", text)
    start = head.end() if head else 0
    if start >= len(text) or text[start] != "(":
        return False
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place == len(text) - 1
    return False
