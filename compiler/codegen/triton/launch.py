"""The host's side of a nest: a C++ function that launches its kernels.

`launch` and `launch_ahead` are in codegen/launcher/device.cpp. A kernel takes its pointers, then
its sizes and numbers, then two pointers to scratch memory, which these kernels do not use
(triton/backends/nvidia/driver.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.codegen.triton.kernel import NumberParameter, TritonKernel
from tcw.compiler.codegen.triton.nests import Kernels
from tcw.compiler.loops.nest import Nest
from tcw.compiler.loops.sizes import Size, add, c_expression

SIGNATURE = "void* const* pointers, const long* sizes, char* workspace, int* error"
NOTHING = f"static void @({SIGNATURE}) {{}}\n"
"""The function of a nest whose kernel another function launches."""


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
        for one in kernel.numbers:
            inner.append(f"const {_TYPES[one.type]} {one.name} = {_literal(one)};")
            arguments.append(f"(void*)&{one.name}")
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
