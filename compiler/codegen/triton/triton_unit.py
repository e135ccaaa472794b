"""All nests of a program as one module of Triton kernels, and the C++ unit that launches them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tcw.compiler.codegen.choices import Ask, Chooser
from tcw.compiler.codegen.nests.names import Names, title_of
from tcw.compiler.codegen.nests.same import Repeated, form_of
from tcw.compiler.codegen.triton import vocabulary
from tcw.compiler.codegen.triton.ahead import launched_ahead
from tcw.compiler.codegen.triton.alike import shared
from tcw.compiler.codegen.triton.kernel import RESERVED, NumberParameter, TritonKernel
from tcw.compiler.codegen.triton.limits import Limits
from tcw.compiler.codegen.triton.nest_kernels import Kernels, Measure, emit
from tcw.compiler.codegen.triton.streams import read_by_several
from tcw.compiler.codegen.triton.together import following, launches, together
from tcw.compiler.codegen.unit import (
    DeviceKernel,
    DeviceModule,
    Function,
    Unit,
    assemble,
    buffer_dtypes,
    shared_buffers,
)
from tcw.compiler.loops.nest import Nest, Program
from tcw.compiler.loops.sizes import Size, add, c_expression
from tcw.compiler.memory.plan import Plan

HEAD = """\
import triton
import triton.language as tl
from triton.language.extra import libdevice
"""
SIGNATURE = "void* const* pointers, const long* sizes, char* workspace, int* error"
NOTHING = f"static void @({SIGNATURE}) {{}}\n"
"""The function of a nest whose kernel another function launches."""


class _Module:
    """Collects the kernels of a graph; equal ones are written once."""

    def __init__(self) -> None:
        self.names = Names(RESERVED)
        self.kernels: list[tuple[str, TritonKernel]] = []
        self._numbers: dict[str, int] = {}

    def add(self, kernel: TritonKernel, wanted: str) -> int:
        """The kernel's number."""
        number = self._numbers.get(kernel.key)
        if number is None:
            number = self._numbers[kernel.key] = len(self.kernels)
            self.kernels.append((self.names.exactly(wanted), kernel))
        return number

    def module(self) -> DeviceModule:
        return device_module(self.kernels)


def device_module(kernels: Sequence[tuple[str, TritonKernel]]) -> DeviceModule:
    """Kernels by name as one text, with the functions that they call."""
    needs = sorted({name for _, kernel in kernels for name in kernel.needs})
    text = HEAD + "".join(f"\n\n{vocabulary.function_text(name)}" for name in needs)
    device_kernels: list[DeviceKernel] = []
    for name, kernel in kernels:
        text += "\n\n"
        body = named(kernel, name)
        device_kernels.append(
            DeviceKernel(
                name=name,
                types=(
                    *kernel.types,
                    *("i64",) * len(kernel.sizes),
                    *(number.type for number in kernel.numbers),
                ),
                warps=kernel.warps,
                line=text.count("\n") + 1,
                count=body.count("\n"),
                key=_digest(kernel),
                checks="tl.device_assert(" in body,
                divisible=_divisible(kernel),
            )
        )
        text += body
    return DeviceModule(text, tuple(device_kernels))


def _digest(kernel: TritonKernel) -> str:
    parts = [HEAD, *map(vocabulary.function_text, sorted(kernel.needs)), kernel.key]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _divisible(kernel: TritonKernel) -> tuple[tuple[int, int], ...]:
    sizes = [16 if size in kernel.divisible else 1 for size in kernel.sizes]
    numbers = [number.multiple for number in kernel.numbers]
    known = enumerate((*sizes, *numbers), len(kernel.types))
    return tuple((place, many) for place, many in known if many > 1)


def named(kernel: TritonKernel, name: str) -> str:
    """The kernel's text with its name, and with names after it for its pieces."""
    return _NAME.sub(lambda match: f"{match[1]}{name}", kernel.body)


_NAME = re.compile(r"^(def | +)NAME(?=\(|__\d+\()", re.MULTILINE)


def unit(
    plan: Plan | None,
    program: Program,
    limits: Limits,
    comments: Mapping[str, str] | None = None,
    ask: Ask | None = None,
    measure: Measure | None = None,
) -> Unit:
    """The unit of a program with planned memory; without a plan, nothing shares memory.

    `ask` decides each choice; without it all are the default. With `measure`, tiles are the fastest
    of a few. Without `comments`, `ask` and `measure`, nests that differ only in names are written
    once, and lines of the others have no origins. Raises `Unwritable` if a nest holds an operation
    without Triton text.
    """
    chooser = None if ask is None else Chooser(ask, program.graph.name)
    dtypes = buffer_dtypes(program)
    module = _Module()
    nests = [step for step in program.steps if isinstance(step, Nest)]
    several = read_by_several(program)
    repeated = Repeated(_renamed)

    def kernels_of(nest: Nest) -> Kernels:
        overlapping = shared_buffers(nest, plan)

        def emitted() -> Kernels:
            return emit(nest, dtypes, limits, comments, overlapping, chooser, measure, several)

        if comments is not None or chooser is not None or measure is not None:
            return emitted()
        return repeated.code(form_of(nest, dtypes, overlapping, several), emitted)

    made = {nest.name: kernels_of(nest) for nest in nests}
    found: list[tuple[Nest, Function]] = []
    groups = launches(program, made, plan, limits)
    follows = following(groups, program, plan)
    each = launched_ahead(launched(groups, made), follows, limits)
    for group, kernels in zip(groups, each, strict=True):
        last = group[-1]
        numbers = [module.add(kernel, _wanted(group)) for kernel in kernels.kernels]
        names = tuple(module.kernels[number][0] for number in numbers)
        shown, lines = "", []
        for kernel, name in zip(kernels.kernels, names, strict=True):
            above = shown.count("\n")
            shown += named(kernel, name) + "\n"
            lines += [(above + line, origins) for line, origins in kernel.lines]
        body, buffers, symbols = host_body(group, kernels, numbers, names)
        whole = Function(
            body=body,
            pointers=buffers,
            sizes=symbols,
            workspace_bytes=kernels.workspace.bytes,
            lines=tuple(lines),
            shown=shown,
            launches=names,
            key=body,
        )
        silent = replace(whole, body=NOTHING, key=NOTHING, pointers=(), sizes=())
        found += [(nest, whole if nest is last else silent) for nest in group]
    device = module.module()
    return assemble(found, lambda: _prelude(device), device)


def _renamed(made: Kernels, names: Mapping[str, str]) -> Kernels | None:
    """The kernels for other buffers, unless one has the name of a part of the workspace."""
    if made.workspace.places.keys() & set(names.values()):
        return None
    kernels = tuple(
        replace(kernel, pointers=tuple(names.get(b, b) for b in kernel.pointers), lines=())
        for kernel in made.kernels
    )
    return Kernels(kernels, made.workspace)


def launched(groups: Sequence[Sequence[Nest]], made: Mapping[str, Kernels]) -> list[Kernels]:
    """The kernels of each group of nests; those that are alike are equal up to names."""
    found: list[Kernels] = []
    for group in groups:
        kernels = made[group[-1].name]
        if len(group) > 1:
            own = [made[nest.name].kernels[0] for nest in group]
            title = "; ".join(dict.fromkeys(title_of(nest) for nest in group))
            kernels = replace(kernels, kernels=(together(own, title),))
        found.append(kernels)
    each = iter(shared([kernel for kernels in found for kernel in kernels.kernels]))
    return [replace(one, kernels=tuple(next(each) for _ in one.kernels)) for one in found]


def _wanted(group: Sequence[Nest]) -> str:
    """The name of the kernel of some nests."""
    text = "_".join(dict.fromkeys(nest.label or nest.name for nest in group))
    words = "".join(c if c.isalnum() and c.isascii() else "_" for c in text)
    wanted = "_".join(part for part in words.lower().split("_") if part)[:48] or "nest"
    return f"nest_{wanted}" if wanted[0].isdigit() else wanted


def _prelude(device: DeviceModule) -> str:
    """The table that the loader fills with the kernels' handles, and a digest of the kernels: a
    process loads equal libraries once, so those of different kernels must differ."""
    count = max(len(device.kernels), 1)
    same = [(k.key, k.types, k.warps, k.checks, k.divisible) for k in device.kernels]
    digest = hashlib.sha256(repr(same).encode()).hexdigest()
    return f'''extern "C" {{
DeviceKernel device_kernels[{count}];
extern const char device_digest[] = "{digest}";
}}
'''


def host_body(
    nests: Sequence[Nest], made: Kernels, numbers: Sequence[int], names: Sequence[str]
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The text, with `@` for its name, of the function that launches the kernels of some nests; its
    buffers and its symbols.

    `numbers`, `names`: of each kernel in the unit's table.
    """
    places = made.workspace.places
    buffers = tuple(dict.fromkeys(b for nest in nests for b in (*nest.reads(), *nest.writes())))
    symbols = tuple(dict.fromkeys(s for kernel in made.kernels for s in kernel.sizes))
    lines = [f"static void @({SIGNATURE}) {{"]
    lines += [f"    const long {symbol} = sizes[{i}];" for i, symbol in enumerate(symbols)]
    for kernel, number, name in zip(made.kernels, numbers, names, strict=True):
        arguments = []
        inner: list[str] = []
        for buffer in kernel.pointers:
            if buffer in places:
                start = f"w{len(inner)}"
                inner.append(f"char* {start} = workspace + {c_expression(places[buffer][1])};")
                arguments.append(f"&{start}")
            else:
                arguments.append(f"(void*)&pointers[{buffers.index(buffer)}]")
        arguments += [f"(void*)&{symbol}" for symbol in kernel.sizes]
        for parameter in kernel.numbers:
            inner.append(
                f"const {_TYPES[parameter.type]} {parameter.name} = {_literal(parameter)};"
            )
            arguments.append(f"(void*)&{parameter.name}")
        given = ", ".join((*arguments, "&nothing", "&nothing"))
        lines.append(f"    {{  // {name}")
        lines += [f"        {line}" for line in inner]
        lines.append(f"        void* arguments[] = {{{given}}};")
        call = "launch_ahead" if kernel.ahead else "launch"
        lines.append(
            f"        {call}(device_kernels[{number}], {_programs(kernel)}, arguments, error);"
        )
        lines.append("    }")
    return "\n".join((*lines, "}")) + "\n", buffers, symbols


_TYPES = {"i32": "int", "fp32": "float"}


def _literal(number: NumberParameter) -> str:
    return repr(number.value) + ("f" if number.type == "fp32" else "")


def _programs(kernel: TritonKernel) -> str:
    first, *others = (_blocks(size, block) for size, block in kernel.grid)
    return " * ".join((first, *(f"({each})" if "/" in each else each for each in others)))


def _blocks(size: Size, block: int) -> str:
    if isinstance(size, int):
        return str(-(-size // block))
    return c_expression(size) if block == 1 else f"{c_expression(add(size, block - 1))} / {block}"
