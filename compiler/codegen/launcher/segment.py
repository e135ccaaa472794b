"""The C++ text of a segment: a run of kernels as one function that Python calls.

`segment_0_run` calls the kernels one after another. `segment_0` describes to the launcher the
arguments, the allocations and the results, so that no code is generated for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcw.compiler.loops.dtypes import BYTES, WIDEST_ITEM
from tcw.compiler.loops.sizes import Size, add, c_expression, multiply, product, symbols_of

SCALAR_TYPES = {
    "uint8": 0,
    "int8": 1,
    "int16": 2,
    "int32": 3,
    "int64": 4,
    "float16": 5,
    "float32": 6,
    "float64": 7,
    "bool": 11,
    "bfloat16": 15,
}
"""The numbers in c10/core/ScalarType.h, which are part of torch's C ABI."""

METH_FASTCALL, METH_O = 0x80, 0x08

STACK_BYTES = 1 << 17
"""Maximum size of a workspace on the stack, the same as for a kernel's own rows."""


@dataclass(frozen=True, slots=True)
class TensorForm:
    """The layout of a tensor in memory; strides are in elements."""

    dtype: str
    sizes: tuple[Size, ...]
    strides: tuple[Size, ...]
    elements: Size | None = None
    """Elements of its memory, if that is not the product of the sizes."""

    @property
    def bytes(self) -> Size:
        count = product(self.sizes) if self.elements is None else self.elements
        return multiply(count, BYTES.get(self.dtype, WIDEST_ITEM))


TENSOR, NUMBER, UNUSED = "t", "n", "-"
"""Kinds of parameters, as the launcher spells them: a number is the value of a symbol, and no
kernel needs an unused one."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a segment."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One call of a kernel, `void NAME(pointers, sizes, workspace, error)`."""

    function: str
    pointers: tuple[str, ...]
    """Names of parameters, outputs or temporaries."""
    sizes: tuple[Size, ...] = ()
    workspace_bytes: Size = 0
    comment: str = ""


@dataclass(frozen=True, slots=True)
class KernelSite:
    """The line of a text that calls a kernel: `NAME(p, s, workspace, error);`.

    The line is in a block of its own, in which `p` are the pointers, and in the function
    `SEGMENT_run`, in which `n` are the segment's numbers.
    """

    line: int
    """From 1."""
    segment: str
    function: str
    pointers: str
    """Their C text: `t[0], arena + 128`."""
    symbols: tuple[str, ...]
    """What the segment's numbers stand for, in order."""
    sizes: bool
    """Whether it passes sizes, `s`; else 0."""
    workspace: bool
    """Whether it passes `workspace`; else 0."""


@dataclass(frozen=True, slots=True)
class NewTensor:
    """A result: an output as it was allocated."""

    output: str


@dataclass(frozen=True, slots=True)
class ViewOf:
    """A result: other sizes and strides over the memory of an output."""

    output: str
    sizes: tuple[Size, ...]
    strides: tuple[Size, ...]
    offset: Size = 0


@dataclass(frozen=True, slots=True)
class Passed:
    """A result: a parameter, returned unchanged."""

    parameter: str


ReturnedValue = NewTensor | ViewOf | Passed | Size | None


@dataclass(frozen=True, slots=True)
class SegmentFunction:
    """All that the text of a segment depends on."""

    name: str
    parameters: tuple[Parameter, ...]
    outputs: tuple[tuple[str, TensorForm], ...]
    calls: tuple[KernelCall, ...]
    temporaries: tuple[tuple[str, Size], ...] = ()
    """Name and byte offset in the arena."""
    arena_bytes: Size = 0
    moved_bytes: Size = 0
    """Rough number of bytes that the kernels access; if large, Python's lock is released."""
    returned: tuple[ReturnedValue, ...] | None = None
    """The results; None means every output, in order."""
    device: int = -1
    """Index of the GPU that runs its kernels; -1 for the CPU."""

    @property
    def boxed(self) -> bool:
        """It is a whole graph, which takes all arguments in one list and returns a list, as
        AOTAutograd requires."""
        return self.returned is not None

    def named(self, kind: str) -> tuple[str, ...]:
        """The names of its parameters of a kind, in order."""
        return tuple(parameter.name for parameter in self.parameters if parameter.kind == kind)

    @property
    def symbols(self) -> tuple[str, ...]:
        """All symbols in its text, sorted."""
        sizes = [*_shapes(self)[0], *(size for call in self.calls for size in call.sizes)]
        sizes.extend(offset for _, offset in self.temporaries)
        return tuple(sorted(frozenset().union(*map(symbols_of, sizes))))

    @property
    def results(self) -> tuple[ReturnedValue, ...]:
        if self.returned is not None:
            return self.returned
        return tuple(NewTensor(name) for name, _ in self.outputs)


def segment_text(segment: SegmentFunction) -> tuple[str, list[KernelSite]]:
    """The segment's functions and its description, and the kernel calls in them. Kernels must be
    declared before it."""
    shapes, places = _shapes(segment)
    lines, sites = _run(segment)
    lines += ["", *_shapes_text(segment, shapes)]
    outputs = [
        f"{{{SCALAR_TYPES[form.dtype]}, {len(form.sizes)}, {place}}}"
        for (_, form), place in zip(segment.outputs, places, strict=False)
    ]
    results = _results(segment, places[len(segment.outputs) :])
    name = segment.name
    if outputs:
        lines.append(f"static const Output {name}_outputs[] = {{{', '.join(outputs)}}};")
    if results:
        lines.append(f"static const Result {name}_results[] = {{{', '.join(results)}}};")
    lines.extend(_description(segment, shapes, bool(outputs), bool(results)))
    return "\n".join(lines) + "\n", sites


def methods_text(segments: Sequence[SegmentFunction]) -> str:
    """The table from which the loader creates a unit's Python functions, and its one variable."""
    rows = [
        f'{{"{s.name}", (void*){s.name}_entry, {METH_O if s.boxed else METH_FASTCALL}, 0}}'
        for s in segments
    ]
    return (
        'extern "C" {\n'
        "const Launcher* launcher;\n"
        f"extern Method methods[] = {{{', '.join(rows)}}};\n"
        "}\n"
    )


def _run(segment: SegmentFunction) -> tuple[list[str], list[KernelSite]]:
    words = ", ".join(dict.fromkeys(call.function for call in segment.calls))
    where = _places(segment)
    lines = [
        f"// {segment.name}: {words}",
        f"static int {segment.name}_run(void* const* t, const long* n, char* arena) {{",
        *_symbols(segment),
        "  alignas(8) int error[8] = {0};",
    ]
    workspace = _workspace(segment)
    if segment.device >= 0:
        lines.append(f"  stream = launcher->stream({segment.device});")
    if _on_stack(segment):
        lines.append(f"  alignas(64) char workspace[{workspace}];")
    elif workspace != 0:
        lines.append(f"  char* const workspace = arena + {c_expression(segment.arena_bytes)};")
    sites: list[KernelSite] = []
    symbols = segment.named(NUMBER)
    for call in segment.calls:
        pointers = ", ".join(where[name] for name in call.pointers)
        lines.append(f"  {{  // {call.comment}" if call.comment else "  {")
        lines.append(f"    void* const p[] = {{{pointers}}};")
        if call.sizes:
            sizes = ", ".join(c_expression(size) for size in call.sizes)
            lines.append(f"    const long s[] = {{{sizes}}};")
        sized, room = bool(call.sizes), call.workspace_bytes != 0
        given = f"p, {'s' if sized else '0'}, {'workspace' if room else '0'}, error"
        lines.append(f"    {call.function}({given});")
        sites.append(
            KernelSite(len(lines), segment.name, call.function, pointers, symbols, sized, room)
        )
        lines.append("  }")
    end = "ended(error, arena)" if segment.device < 0 else "*error"
    return [*lines, f"  return {end};", "}"], sites


def _symbols(segment: SegmentFunction) -> list[str]:
    return [f"  const long {name} = n[{i}];" for i, name in enumerate(segment.named(NUMBER))]


def _places(segment: SegmentFunction) -> dict[str, str]:
    """C text of each buffer's address."""
    names = [*segment.named(TENSOR), *(name for name, _ in segment.outputs)]
    places = {name: f"t[{i}]" for i, name in enumerate(names)}
    for name, offset in segment.temporaries:
        places[name] = "arena" if offset == 0 else f"arena + {c_expression(offset)}"
    return places


def _shapes(segment: SegmentFunction) -> tuple[list[Size], list[int]]:
    """The contents of `shapes`, and where the part of each output, then of each result, begins."""
    workspace = _workspace(segment)
    allocated = 0 if _on_stack(segment) else workspace
    shapes: list[Size] = [add(segment.arena_bytes, allocated), segment.moved_bytes]
    places: list[int] = []
    for _, form in segment.outputs:
        places.append(len(shapes))
        shapes.extend((form.bytes, *form.sizes, *form.strides))
    for value in segment.results:
        places.append(len(shapes))
        if isinstance(value, ViewOf):
            shapes.extend((value.offset, *value.sizes, *value.strides))
        elif value is not None and not isinstance(value, (NewTensor, Passed)):
            shapes.append(value)
    return shapes, places


def _workspace(segment: SegmentFunction) -> Size:
    """Bytes sufficient for each call: the maximum, plus the sum of the symbolic sizes."""
    distinct = list(dict.fromkeys(call.workspace_bytes for call in segment.calls))
    numbers = [size for size in distinct if isinstance(size, int)]
    total: Size = max(numbers, default=0)
    for size in distinct:
        if not isinstance(size, int):
            total = add(total, size)
    return total


def _on_stack(segment: SegmentFunction) -> bool:
    """Whether partial sums are on the stack of the segment's caller instead of after its arena."""
    workspace = _workspace(segment)
    if segment.device >= 0:
        return False
    return isinstance(workspace, int) and 0 < workspace <= STACK_BYTES


def _shapes_text(segment: SegmentFunction, shapes: list[Size]) -> list[str]:
    name = segment.name
    values = ", ".join(c_expression(size) for size in shapes)
    if all(isinstance(size, int) for size in shapes):
        return [f"static const long {name}_shapes[] = {{{values}}};"]
    return [
        f"static void {name}_shapes_of(const long* n, long* shapes) {{",
        *_symbols(segment),
        f"  const long values[] = {{{values}}};",
        f"  for (int i = 0; i < {len(shapes)}; i++) shapes[i] = values[i];",
        "}",
    ]


def _results(segment: SegmentFunction, places: list[int]) -> list[str]:
    outputs = {name: i for i, (name, _) in enumerate(segment.outputs)}
    parameters = {p.name: i for i, p in enumerate(segment.parameters) if p.kind != NUMBER}
    rows: list[str] = []
    for value, place in zip(segment.results, places, strict=True):
        if isinstance(value, NewTensor):
            rows.append(f"{{NEW, {outputs[value.output]}, 0, 0}}")
        elif isinstance(value, ViewOf):
            rank = len(value.sizes)
            rows.append(f"{{VIEW, {outputs[value.output]}, {rank}, {place}}}")
        elif isinstance(value, Passed):
            rows.append(f"{{ARGUMENT, {parameters[value.parameter]}, 0, 0}}")
        elif value is None:
            rows.append("{NOTHING, 0, 0, 0}")
        else:
            rows.append(f"{{NUMBER, 0, 0, {place}}}")
    return rows


def _description(
    segment: SegmentFunction, contents: list[Size], outputs: bool, results: bool
) -> list[str]:
    name = segment.name
    kinds = "".join(parameter.kind for parameter in segment.parameters)
    static = all(isinstance(size, int) for size in contents)
    shapes = f"{name}_shapes, 0" if static else f"0, {name}_shapes_of"
    counts = (
        f"{len(kinds)}, {kinds.count(TENSOR)}, {kinds.count(NUMBER)}, "
        f"{len(segment.outputs)}, {len(segment.results)}"
    )
    signature, call = (
        ("PyObject* list", "call_boxed(&{0}, self, list)")
        if segment.boxed
        else ("PyObject* const* a, long count", "call(&{0}, self, a, count)")
    )
    return [
        f'extern "C" const Segment {name} = {{',
        f'  "{name}", "{kinds}", {counts},',
        f"  {f'{name}_outputs' if outputs else '0'}, {f'{name}_results' if results else '0'},",
        f"  {len(contents)}, {shapes}, {name}_run, {segment.device}}};",
        f"static PyObject* {name}_entry(PyObject* self, {signature}) {{",
        f"  return launcher->{call.format(name)};",
        "}",
    ]
