"""All nests of a program as one module of Triton kernels, and the C++ unit that launches them."""

from __future__ import annotations

from collections.abc import Mapping

from compiler.codegen.device import DeviceKernel, DeviceModule
from compiler.codegen.function import Function
from compiler.codegen.nests.names import Names
from compiler.codegen.triton import functions
from compiler.codegen.triton.kernel import RESERVED, Kernel
from compiler.codegen.triton.launch import host_body
from compiler.codegen.triton.limits import Limits
from compiler.codegen.triton.nests import emit
from compiler.codegen.unit import Unit, assemble, buffer_dtypes, shared_buffers
from compiler.loops.nest import Nest
from compiler.loops.program import Program
from compiler.memory.plan import Plan

HEAD = """\
import triton
import triton.language as tl
from triton.language.extra import libdevice
"""


class _Module:
    """Collects the kernels of a graph; equal ones are written once."""

    def __init__(self) -> None:
        self.names = Names(RESERVED)
        self.kernels: list[tuple[str, Kernel]] = []
        self._numbers: dict[str, int] = {}

    def add(self, kernel: Kernel, wanted: str) -> int:
        """The kernel's number."""
        number = self._numbers.get(kernel.key)
        if number is None:
            number = self._numbers[kernel.key] = len(self.kernels)
            self.kernels.append((self.names.exactly(wanted), kernel))
        return number

    def module(self) -> DeviceModule:
        needs = sorted({name for _, kernel in self.kernels for name in kernel.needs})
        text = HEAD
        for name in needs:
            text += f"\n\n{functions.text(name)}"
        found: list[DeviceKernel] = []
        for name, kernel in self.kernels:
            text += "\n\n"
            body = named(kernel, name)
            found.append(
                DeviceKernel(
                    name=name,
                    types=(*kernel.types, *("i64",) * len(kernel.sizes)),
                    warps=kernel.warps,
                    line=text.count("\n") + 1,
                    count=body.count("\n"),
                    checks="tl.device_assert(" in body,
                )
            )
            text += body
        return DeviceModule(text, tuple(found))


def named(kernel: Kernel, name: str) -> str:
    """The kernel's text with its name."""
    return kernel.body.replace("def NAME(", f"def {name}(", 1)


def unit(
    plan: Plan | None,
    program: Program,
    limits: Limits,
    comments: Mapping[str, str] | None = None,
) -> Unit:
    """The unit of a program with planned memory; without a plan, nothing shares memory.

    Raises `Unwritable` if a nest holds an operation without Triton text.
    """
    dtypes = buffer_dtypes(program)
    module = _Module()
    found: list[tuple[Nest, Function]] = []
    for step in program.steps:
        if not isinstance(step, Nest):
            continue
        made = emit(step, dtypes, limits, comments, shared_buffers(step, plan))
        words = "".join(c if c.isalnum() and c.isascii() else "_" for c in step.label or step.name)
        wanted = "_".join(part for part in words.lower().split("_") if part)[:48] or "nest"
        wanted = f"nest_{wanted}" if wanted[0].isdigit() else wanted
        numbers = [module.add(kernel, wanted) for kernel in made.kernels]
        names = [module.kernels[number][0] for number in numbers]
        body, buffers, symbols = host_body(step, made, numbers, names)
        shown, lines = "", []
        for kernel, name in zip(made.kernels, names, strict=True):
            above = shown.count("\n")
            shown += named(kernel, name) + "\n"
            lines += [(above + line, origins) for line, origins in kernel.lines]
        found.append(
            (
                step,
                Function(
                    body=body,
                    pointers=buffers,
                    sizes=symbols,
                    workspace_bytes=made.workspace.bytes,
                    lines=tuple(lines),
                    nests=(step.name,),
                    shown=shown,
                    launches=tuple(names),
                    key=body,
                ),
            )
        )
    device = module.module()
    return assemble(found, lambda: _prelude(device), device)


def _prelude(device: DeviceModule) -> str:
    """The table that the loader fills with the kernels' handles."""
    count = max(len(device.kernels), 1)
    return f'extern "C" {{ DeviceKernel device_kernels[{count}]; }}\n'
