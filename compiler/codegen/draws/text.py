"""The C++ of the library that draws random numbers: `draws.cpp`, with the vectors of a machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tcw.compiler.codegen.cpp.isa import Isa
from tcw.compiler.codegen.cpp.nests.parallel import DECLARATIONS
from tcw.compiler.codegen.cpp.vocabulary import Lanes, Vocabulary, polynomials
from tcw.compiler.loops.dtypes import BYTES, REDUCED

FILE = Path(__file__).with_name("draws.cpp")


@dataclass(frozen=True, slots=True)
class Family:
    """A way to make random numbers from the generator's 32-bit words."""

    function: str
    """Its name in `draws.cpp`."""
    words: int
    """The number of words that a random number takes."""
    held: str
    """The dtype in which the function makes them."""
    dtypes: tuple[str, ...]
    """The dtypes that can be requested."""
    shared: bool = True
    """Threads share it, since most of the time goes to transforming the words."""
    sixteens: bool = False
    """Sixteen numbers are made together, as by `at::normal_fill`."""
    rounded: bool = False
    """Every step is rounded to 16 bits, as in torch before 2.13."""


_WIDE = ("float64", "float32", "float16", "bfloat16")
_SINGLE = ("float32", "float16", "bfloat16")

FAMILIES = {
    "uniform": Family("uniform", 2, "float64", ("float64",), shared=False),
    "uniform_single": Family("uniform_single", 1, "float32", _SINGLE, shared=False),
    "bernoulli": Family("bernoulli", 2, "bool", ("bool",), shared=False),
    "exponential": Family("exponential", 2, "float64", _WIDE),
    "geometric": Family("geometric", 2, "float64", tuple(d for d in BYTES if d != "bool")),
    "integers": Family("integers", 1, "int64", tuple(BYTES), shared=False),
    "cauchy": Family("cauchy", 2, "float64", _WIDE),
    "log_normal": Family("log_normal", 2, "float64", _WIDE),
    "normal": Family("normal", 2, "float64", ("float64",), sixteens=True),
    "normal_single": Family("normal_single", 1, "float32", _SINGLE, sixteens=True),
    "normal_pairs": Family("normal_pairs", 2, "float64", _WIDE),
} | {
    f"{name}_rounded_{dtype}": Family(
        f"{name}_rounded<{dtype}_steps>", 1, "float32", (dtype,), shared, shared, True
    )
    for dtype in REDUCED
    for name, shared in (("uniform", False), ("normal", True))
}
"""All of them; a family's number in the library is its place here."""

DTYPES = tuple(BYTES)
"""A dtype's number in the library is its place here."""

MUTEX = 16
"""Bytes from a generator's begin to its mutex, which follows the reference count in
`c10::GeneratorImpl`."""

_TORCH = """\
struct Engine;
struct Kept { double value; bool some; };  // std::optional<double>
struct TorchGenerator {
  Engine (*engine)(void*);                 // at::CPUGeneratorImpl::engine()
  void (*set_engine)(void*, Engine);       // set_engine(at::mt19937)
  Kept (*kept)(void*);                     // next_double_normal_sample()
  void (*set_kept)(void*, Kept);           // set_next_double_normal_sample(...)
};
extern "C" {
TorchGenerator torch_generator;
int pthread_mutex_lock(void*);
int pthread_mutex_unlock(void*);
int sched_yield();
}
"""

_ENTRY = """
extern "C" void draw_numbers(void* generator, int family, int dtype, void* out, long n,
                             const double* a) {
  void* mutex = (char*)generator + MUTEX;
  pthread_mutex_lock(mutex);
  Engine engine = torch_generator.engine(generator);
  Job job = {&engine, families + family, conversions[family][dtype], a, (char*)out, bytes[dtype]};
  if (job.family->sixteens) {
    run_normal(job, n, job.bytes >= 4 || job.family->rounded);
  } else if (job.family->made == log_normal || job.family->made == normal_pairs) {
    Kept kept = torch_generator.kept(generator);
    run_pairs(job, n, kept);
    torch_generator.set_kept(generator, kept);
  } else {
    run(job, n);
  }
  torch_generator.set_engine(generator, engine);
  pthread_mutex_unlock(mutex);
}

extern "C" void draw_slopes(void* generator, bool wide, const void* x, void* out, long n,
                            const double* a) {
  void* mutex = (char*)generator + MUTEX;
  pthread_mutex_lock(mutex);
  Engine engine = torch_generator.engine(generator);
  Slopes job = {&engine, x, out, a, n};
  void (*work)(void*) = wide ? work_on_slopes<double> : work_on_slopes<float>;
  if (n >= LARGE && omp_get_max_threads() > 1) GOMP_parallel(work, &job, 0, 0);
  else work(&job);
  torch_generator.set_engine(generator, engine);
  pthread_mutex_unlock(mutex);
}
"""


@cache
def draws_text(isa: Isa) -> str:
    """The library's translation unit for an instruction set."""
    vocabulary = Vocabulary(isa)
    vocabulary.need("libgomp", lambda: DECLARATIONS)
    wide = vocabulary.lanes(isa.lanes((8, 8)))
    for op in ("log", "log1p", "exp", "sqrt", "ceil"):
        wide.apply(op, ["x"], ["float64"], "float64")
    lines = [*_eight(vocabulary), *_steps(vocabulary), *_names(wide), *_conversions(wide)]
    lines.append(FILE.read_text("utf-8"))
    mutex = f"enum {{ MUTEX = {MUTEX} }};"
    return "\n".join((_TORCH, vocabulary.prelude(), *lines, *_tables(), mutex, _ENTRY))


def _eight(vocabulary: Vocabulary) -> Iterator[str]:
    """Vectors of eight floats, with which ATen makes normal numbers: its AVX2 code serves AVX-512
    too."""
    lanes = vocabulary.lanes(8)
    if lanes.holds("float32"):
        polynomials.multiply_add(lanes, lanes.type("float32"))
        lanes.apply("sqrt", ["x"], ["float32"], "float32")
        yield f"typedef {lanes.type('float32')} eight;"
        yield f"typedef {lanes.type('int32')} eight_ints;"
    else:
        yield from _PARTED
    yield "typedef eight eight_in_memory __attribute__((aligned(4), may_alias));"
    yield "typedef eight_ints ints_in_memory __attribute__((aligned(4), may_alias));"


_PARTED = (
    "typedef float eight __attribute__((vector_size(32)));",
    "typedef int eight_ints __attribute__((vector_size(32)));",
    "static INLINE eight multiply_add(eight a, eight b, eight c) { return a * b + c; }",
    "static INLINE eight sqrt(eight x) {"
    " for (int k = 0; k < 8; k++) x[k] = __builtin_sqrtf(x[k]); return x; }",
)
"""For machines without such vectors. The bits differ from ATen's, which calls libm there."""


def _steps(vocabulary: Vocabulary) -> Iterator[str]:
    """A dtype of 16 bits, for `draws.cpp`: its significand's bits, and how to round to it."""
    lanes, eight = vocabulary.lanes(1), vocabulary.lanes(8)
    for dtype, bits in (("float16", 11), ("bfloat16", 8)):
        single = lanes.convert("x", "float32", dtype)
        yield f"struct {dtype}_steps {{"
        yield f"  enum {{ BITS = {bits} }};"
        yield f"  static INLINE float rounded(float x) {{ return {single}; }}"
        if eight.holds("float32"):
            several = eight.convert("x", "float32", dtype)
            yield f"  static INLINE eight rounded(eight x) {{ return {several}; }}"
        else:
            each = "for (int k = 0; k < 8; k++) x[k] = rounded((float)x[k]);"
            yield f"  static INLINE eight rounded(eight x) {{ {each} return x; }}"
        yield "};"


def _names(lanes: Lanes) -> Iterator[str]:
    """What `draws.cpp` calls the machine's vectors."""
    count = lanes.count
    yield f"enum {{ LANES = {count} }};"
    yield f"typedef {lanes.type('float64')} wide;"
    yield f"typedef {lanes.unsigned(8)} words;"
    for name in ("wide", "words"):
        yield f"typedef {name} {name}_in_memory __attribute__((aligned(4), may_alias));"
    pairs = range(2 * count)
    zipped = [i // 2 + i % 2 * count for i in pairs]
    for name, indices in (
        ("EVEN", pairs[::2]),
        ("ODD", pairs[1::2]),
        ("FIRST", zipped[:count]),
        ("SECOND", zipped[count:]),
    ):
        yield f"#define {name} {{{', '.join(map(str, indices))}}}"


def _conversions(lanes: Lanes) -> Iterator[str]:
    """`float64_as_int8` and the others: `n` numbers, from whole vectors of the source."""
    for held in ("float64", "float32", "int64"):
        for dtype in DTYPES:
            wanted = any(f.held == held and dtype in f.dtypes for f in FAMILIES.values())
            if wanted and dtype != held:
                yield from _conversion(lanes, held, dtype)


def _conversion(lanes: Lanes, held: str, dtype: str) -> Iterator[str]:
    count = lanes.count
    source, target = lanes.storage(held), lanes.storage(dtype)
    value = lanes.convert(lanes.load(held, "x + i"), held, dtype)
    yield f"static void {held}_as_{dtype}(const void* from, void* to, long n) {{"
    yield f"  const {source}* x = (const {source}*)from; {target}* y = ({target}*)to; long i = 0;"
    yield f"  for (; i + {count} <= n; i += {count}) {{ {lanes.store(dtype, 'y + i', value)} }}"
    yield f"  if (i < n) {{ {lanes.store_partial(dtype, 'y + i', value, 'n - i')} }}"
    yield "}"


def _tables() -> Iterator[str]:
    yield f"static const long bytes[] = {{{', '.join(str(BYTES[d]) for d in DTYPES)}}};"
    rows = (
        f"{{{f.function}, {f.words}, {f.shared:d}, {f.sixteens:d}, {f.rounded:d}}}"
        for f in FAMILIES.values()
    )
    yield f"static const Family families[] = {{{', '.join(rows)}}};"
    yield f"static Converted* const conversions[][{len(DTYPES)}] = {{"
    for family in FAMILIES.values():
        names = (
            f"{family.held}_as_{dtype}" if dtype in family.dtypes and dtype != family.held else "0"
            for dtype in DTYPES
        )
        yield f"  {{{', '.join(names)}}},"
    yield "};"
