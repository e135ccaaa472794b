"""Triton's compiler, one stage after another: a kernel's text to machine code. No GPU is needed.

`triton.compile` does the same, and besides it hashes Triton itself and writes each stage's text to
a cache of its own, a third of the time of a kernel; our store has the machine code already. Several
threads may compile: the stages in C++ release the GIL, as does ptxas, and each thread has an MLIR
context. Triton's front end in Python runs in one thread at a time.
"""

from __future__ import annotations

import inspect
import linecache
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any

from compiler.codegen.device import DeviceKernel
from compiler.runtime.store import digest

DIVISIBLE = [["tt.divisibility", 16]]
"""Every buffer begins at a multiple of 16 bytes, the launcher sees to it; some sizes are such
multiples."""
MAKE_IR = ["self", "target", "options", "codegen_fns", "module_map", "context"]
"""The parameters of `ASTSource.make_ir` (triton/compiler/compiler.py)."""

_front_end = threading.Lock()
_own = threading.local()


class NoTriton(Exception):
    """Triton cannot compile a kernel here. The message says why."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a launch must know."""

    name: str
    """Of the entry."""
    num_warps: int
    shared: int
    """Bytes of shared memory per program."""


@dataclass(frozen=True, slots=True)
class Made:
    """One compiled kernel, with the names of Triton's `CompiledKernel`."""

    asm: dict[str, Any]
    """The machine code `cubin` and, if they were asked for, the texts of the other stages."""
    metadata: Metadata


def load_module(text: str) -> dict[str, Any]:
    """The names that a module's text defines. Triton reads the text again, through linecache."""
    name = f"<tcw kernels {digest(text.encode())[:16]}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, Any] = {"__name__": "tcw_kernels"}
    exec(compile(text, name, "exec", dont_inherit=True), names)
    return names


def compiled(
    module: dict[str, Any], kernel: DeviceKernel, arch: str, *, texts: bool = False
) -> Made:
    """The kernel for `arch` such as `sm_90`, with every stage's text if asked for.

    Raises `NoTriton`.
    """
    triton = _triton()
    target = triton.target("cuda", int(arch.removeprefix("sm_")), 32)
    # Triton drops assertions unless it debugs; then it would check integers for overflow, too.
    debug = {"debug": True, "sanitize_overflow": False} if kernel.checks else {}
    try:
        return _through_stages(triton, target, module[kernel.name], kernel, debug, texts)
    except Exception as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise NoTriton(f"Triton cannot compile {kernel.name}: {cause}") from error


def _through_stages(
    triton: _Triton, target: Any, function: Any, kernel: DeviceKernel, debug: Any, texts: bool
) -> Made:
    backend = triton.backend(target)
    options = backend.parse_options({"num_warps": kernel.warps, **debug})
    context = _context(triton, backend)
    with _front_end:
        signature = dict(zip(function.arg_names, kernel.types, strict=True))
        pointers = [i for i, kind in enumerate(kernel.types) if kind.startswith("*")]
        divisible = {(i,): DIVISIBLE for i in (*pointers, *kernel.divisible)}
        source = triton.source(function, signature, {}, divisible)
        stages: dict[str, Any] = {}
        backend.add_stages(stages, options, source.language)
        functions, modules = backend.get_codegen_implementation(options), backend.get_module_map()
        code = source.make_ir(target, options, functions, modules, context)
    metadata: dict[str, Any] = {"target": target, **options.__dict__}
    asm: dict[str, Any] = {}
    for name, stage in stages.items():
        code = stage(code, metadata)
        if texts and name != "cubin":
            asm[name] = str(code)  # now: the next stage changes it in place
    words, warps, shared = (metadata[name] for name in ("name", "num_warps", "shared"))
    return Made({**asm, "cubin": bytes(code)}, Metadata(str(words), int(warps), int(shared)))


@dataclass(frozen=True, slots=True)
class _Triton:
    """What is taken from Triton."""

    target: Any
    source: Any
    backend: Any
    ir: Any


@cache
def _triton() -> _Triton:
    """Raises `NoTriton`, naming what the installed Triton lacks."""
    try:
        import triton
        from triton._C.libtriton import ir
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
        from triton.compiler.compiler import make_backend
    except ImportError as error:
        raise NoTriton(f"Triton is not installed ({error}); pip install triton") from error
    found = list(inspect.signature(ASTSource.make_ir).parameters)
    if found != MAKE_IR:
        raise NoTriton(
            f"not available in Triton {triton.__version__}: ASTSource.make_ir"
            f"({', '.join(MAKE_IR)}); it takes ({', '.join(found)})"
        )
    return _Triton(GPUTarget, ASTSource, make_backend, ir)


def _context(triton: _Triton, backend: Any) -> Any:
    """This thread's MLIR context: kernels of one thread share it."""
    found = getattr(_own, "context", None)
    if found is None:
        found = triton.ir.context()
        triton.ir.load_dialects(found)
        backend.load_dialects(found)
        _own.context = found
    return found
