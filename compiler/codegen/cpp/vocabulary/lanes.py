"""`Vocabulary` and `Lanes`: the source of C++ text for code generation."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from compiler.codegen.cpp.isa import Isa
from compiler.codegen.cpp.vocabulary import (
    argmax,
    conversions,
    converted,
    memory,
    operators,
    reductions,
    scans,
    strided,
    transposes,
    values,
    within,
)
from compiler.codegen.cpp.vocabulary.types import CODES, SCALARS, SIGNED, STORAGE, UNSIGNED, literal
from compiler.loops.dtypes import BYTES, compute_dtype

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
    """Text generation for one lane count: each method returns C++ and records what it needs.

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
        self._forms: dict[tuple[str, str, str], operators.Syntax] = {}

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

    def broadcast(self, scalar: str, dtype: str) -> str:
        """A scalar register's value in every lane."""
        return scalar if self.count == 1 else values.broadcast(self, scalar, dtype)

    def iota(self, start: str, dtype: str = "int64") -> str:
        """start, start+1, ... in the lanes, of an integer dtype."""
        return values.iota(self, start, dtype)

    # Memory

    def load(self, dtype: str, pointer: str) -> str:
        """The elements at `pointer`, which may be unaligned."""
        return memory.load(self, dtype, pointer)

    def load_partial(self, dtype: str, pointer: str, count: str) -> str:
        """The first `count` (0 to all) elements, then zeros. Does not read beyond them."""
        return memory.load_partial(self, dtype, pointer, count)

    def holds(self, dtype: str) -> bool:
        """Whether elements of this dtype fit a register with this many lanes."""
        return self.count == 1 or BYTES[compute_dtype(dtype)] * self.count <= self.isa.vector_bytes

    def load_converted(
        self, source: str, dtype: str, pointer: str, stride: str | None, count: str | None
    ) -> str:
        """Elements of a `source` that is too wide for this many lanes, converted to `dtype`. As for
        `load_strided`; a `stride` of None is 1."""
        return converted.load(self, source, dtype, pointer, stride, count)

    def store(self, dtype: str, pointer: str, value: str) -> str:
        """Statement: write every lane."""
        return memory.store(self, dtype, pointer, value)

    def store_partial(self, dtype: str, pointer: str, value: str, count: str) -> str:
        """Statement: write the first `count` (0 to all) lanes, touching no memory beyond them."""
        return memory.store_partial(self, dtype, pointer, value, count)

    def load_strided(self, dtype: str, pointer: str, stride: str, count: str | None = None) -> str:
        """Lane k from pointer[k*stride]. Lanes from `count` on are 0 without reading."""
        return strided.load_strided(self, dtype, pointer, stride, count)

    def store_strided(
        self, dtype: str, pointer: str, value: str, stride: str, count: str | None = None
    ) -> str:
        """Statement: lane k to pointer[k*stride], in the order of the lanes."""
        return strided.store_strided(self, dtype, pointer, value, stride, count)

    def store_interleaved(
        self, dtype: str, pointer: str, values: Sequence[str], count: str | None = None
    ) -> str:
        """Statement: lane k of value j to pointer[k*n + j], for n values and the first `count`
        lanes. Touches no memory beyond them."""
        return strided.store_interleaved(self, dtype, pointer, values, count)

    def gather(
        self,
        dtype: str,
        pointer: str,
        index: str,
        count: str | None = None,
        index_dtype: str = "int64",
    ) -> str:
        """Lane k from pointer[index[k]]. Lanes from `count` on are 0 without reading."""
        return strided.gather(self, dtype, pointer, index, count, index_dtype)

    def has_gather(self, dtype: str) -> bool:
        """Whether the machine has a fast instruction for gathers by int64."""
        return strided.has_gather(self, dtype)

    def gather_places(self, dtype: str, pointer: str, places: str, stride: str, step: str) -> str:
        """Lane k from pointer[places[k]*stride + k*step], with the places in memory."""
        return strided.gather_places(self, dtype, pointer, places, stride, step)

    def inside(self, start: str, size: str) -> str:
        """A word whose bit e says whether index start + e is in a dimension of `size` elements."""
        return within.inside(self, start, size)

    def load_within(
        self, dtype: str, pointer: str, places: within.Places, word: str, otherwise: float
    ) -> str:
        """Lane k from pointer[places[k]] if that bit of the word is set, else `otherwise`, without
        reading. Places ascend from 0 by at most `within.FARTHEST`."""
        return within.load_within(self, dtype, pointer, places, word, otherwise)

    def load_clamped(
        self, dtype: str, row: str, places: within.Places, first: str, word: str, size: str
    ) -> str:
        """Lane k from row[first + places[k]], or from the nearest end of the row, which has `size`
        elements, if that bit of the word is not set."""
        return within.load_clamped(self, dtype, row, places, first, word, size)

    def scatter(
        self,
        dtype: str,
        pointer: str,
        index: str,
        value: str,
        count: str | None = None,
        index_dtype: str = "int64",
    ) -> str:
        """Statement: lane k to pointer[index[k]], in lane order: the last duplicate wins."""
        return strided.scatter(self, dtype, pointer, index, value, count, index_dtype)

    # Values

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
        special = operators.with_constant(self, op, args, operand_dtypes, dtype)
        if special is not None:
            return special
        if op in operators.DIVISIONS and count is not None and self.count > 1:
            divisor = self.select_lanes(args[1], self.constant(1, dtype), count, dtype)
            args = (args[0], divisor)
        operand = operand_dtypes[1 if op == "where" else 0]
        key = (op, operand, dtype)
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = operators.form(self, op, operand, dtype)
        if not form.infix:
            return form.text.format(*args)
        if form.literals and self.count > 1:
            args = self._literals(args)
        return form.text.format(
            *(arg if _ATOM.fullmatch(arg) or is_call(arg) else f"({arg})" for arg in args)
        )

    def _literals(self, args: Sequence[str]) -> Sequence[str]:
        """One constant operand of a vector operator may remain a scalar literal: x * 0.5f."""
        for place, arg in enumerate(args):
            constant = self._constants.get(arg)
            if constant is not None:
                return (*args[:place], constant[0], *args[place + 1 :])
        return args

    def first(self, count: str) -> str:
        """Mask of the lanes below `count`."""
        return values.first(self, count)

    def select_lanes(self, value: str, other: str, count: str, dtype: str) -> str:
        """The lanes of `value` below `count`, and those of `other` above."""
        return self.apply("where", (self.first(count), value, other), ("bool", dtype, dtype), dtype)

    # Reductions and scans

    def identity(self, op: str, dtype: str) -> str:
        """The identity of sum, prod, max, min, any or all, in every lane."""
        return self.constant(reductions.identity(op, dtype), dtype)

    def combine(self, op: str, a: str, b: str, dtype: str) -> str:
        """Combine two partial results of sum, prod, max, min, any or all, lane by lane.

        `max_quick` and `min_quick` lose a NaN on the left: for a maximum that is used only in
        sum(exp(x - max)), where the sum propagates it.
        """
        return self.apply(reductions.OPERATOR[op], (a, b), (dtype, dtype), dtype)

    def reduce(self, op: str, vector: str, dtype: str) -> str:
        """Reduce the lanes of a register to one scalar register, by halves, in a fixed order."""
        return vector if self.count == 1 else reductions.reduce(self, op, vector, dtype)

    def arg_update(
        self,
        op: str,
        best: str,
        best_index: str,
        value: str,
        index: str,
        dtype: str,
        index_dtype: str | None = None,
    ) -> str:
        """Statement: one step of argmax or argmin. Each index must exceed the previous ones.

        `best` and `best_index` (of `index_dtype`, default `self.index_dtype`) are variables.
        Initialise them with the first elements, or with the identity of max or min and the indices
        of the first vector. The first of equal values wins, and NaN wins over all, as in ATen.
        """
        return argmax.update(
            self, op, best, best_index, value, index, dtype, index_dtype or self.index_dtype
        )

    def arg_reduce(self, op: str, best: str, best_index: str, dtype: str) -> str:
        """The winning index among the lanes, as a `long`; `reduce` (max or min) gives its value."""
        return argmax.reduce(self, op, best, best_index, dtype, self.index_dtype)

    def scan(self, op: str, vector: str, dtype: str, *, reverse: bool = False) -> str:
        """Lane k: lanes 0 to k, combined by sum, prod, max or min.

        `reverse`: lanes k to the last one instead.
        """
        return scans.scan(self, op, vector, dtype, reverse=reverse)

    def last(self, vector: str, dtype: str, *, reverse: bool = False) -> str:
        """The last lane in scan order, as a scalar register: what the next step's carry adds."""
        return scans.last(self, vector, dtype, reverse=reverse)

    def transpose(self, registers: Sequence[str], dtype: str) -> str:
        """Statement: transpose `lanes` declared registers of `lanes` lanes in place."""
        return transposes.transpose(self, registers, dtype)

    def load_transposed(
        self, dtype: str, pointer: str, stride: str, registers: Sequence[str]
    ) -> str:
        """Statement: lane k of declared register j = pointer[k*stride + j], for `lanes` of both."""
        return transposes.load_transposed(self, dtype, pointer, stride, registers)

    def transpose_tile(self, dtype: str, pointer: str, stride: str, block: str, width: str) -> str:
        """Statement: block[j*width + k] = pointer[k*stride + j], for `lanes` of both.

        The block holds elements of the compute dtype.
        """
        return transposes.transpose_tile(self, dtype, pointer, stride, block, width)

    def transpose_bits(self, dtype: str, pointer: str, stride: str, into: str, width: str) -> str:
        """`transpose_tile` into memory of the same dtype."""
        return transposes.transpose_bits(self, dtype, pointer, stride, into, width)

    def transpose_bits_edge(
        self, dtype: str, pointer: str, stride: str, into: str, width: str, rows: str, columns: str
    ) -> str:
        """`transpose_bits` that writes only the first `columns` j and `rows` k, at most `lanes` of
        each. The tile is read whole."""
        left = (rows, columns)
        return transposes.transpose_bits_edge(self, dtype, pointer, stride, into, width, left)

    def transpose_edge(
        self, dtype: str, pointer: str, stride: str, block: str, width: str, rows: str, columns: str
    ) -> str:
        """`transpose_tile` for the first `rows` j and `columns` k, at most `lanes` of each.

        Nothing else is read. The remainder of the block's tile gets unspecified values.
        """
        left = (rows, columns)
        return transposes.transpose_edge(self, dtype, pointer, stride, block, width, left)

    def convert(self, value: str, source: str, dtype: str) -> str:
        """The value converted to another dtype's register, as in ATen. `apply` uses this."""
        return conversions.convert(self, value, source, dtype)


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
