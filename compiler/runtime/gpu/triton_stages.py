"""Triton's compiler, one stage after another: a kernel's text to machine code. No GPU is needed.

`triton.compile` does the same. Besides, it hashes Triton itself and writes each stage's text to a
cache of its own, which takes a third of a kernel's time. Our store has the machine code already.
Several threads may compile: the stages in C++ release the GIL, as does ptxas, and each thread has
an MLIR context. Triton's front end in Python runs in one thread at a time.
"""

from __future__ import annotations

import linecache
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from tcw.compiler.codegen.unit import DeviceKernel
from tcw.compiler.control.hooks import signature_of
from tcw.compiler.runtime.store import digest

ALIGNED = 16
"""Every buffer begins at a multiple of this many bytes, the launcher sees to it."""
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
class Ptx:
    """One kernel as NVIDIA's assembly."""

    ptx: str
    metadata: Metadata
    assemble: Callable[[str], bytes]
    """PTX to machine code, by ptxas."""
    asm: dict[str, str]
    """The texts of the stages, if they were asked for."""


@dataclass(frozen=True, slots=True)
class CompiledStages:
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
) -> CompiledStages:
    """The kernel for `arch` such as `sm_90`, with every stage's text if asked for.

    Raises `NoTriton`.
    """
    with _failures_of(kernel.name):
        made = _through_stages(module, kernel, arch, texts)
        code = made.assemble(made.ptx)
    return CompiledStages({**made.asm, "cubin": code}, made.metadata)


def to_ptx(module: dict[str, Any], kernel: DeviceKernel, arch: str) -> Ptx:
    """The kernel up to PTX, for `assembled`. Raises `NoTriton`."""
    with _failures_of(kernel.name):
        return _through_stages(module, kernel, arch, texts=False)


def assembled(kernels: Sequence[Ptx]) -> list[bytes]:
    """The machine code that has each of these kernels, which are for one architecture.

    ptxas takes 15 ms to start, as long as it works on a small kernel: it is given all at once, but
    those that declare more than their entry. If it refuses, each is assembled alone. Raises
    `NoTriton`.
    """
    found: dict[str, bytes] = {}
    plain = [kernel for kernel in kernels if _parts(kernel.ptx) is not None]
    if len(plain) > 1:
        with suppress(NoTriton), _failures_of(f"{len(plain)} kernels together"):
            code = plain[0].assemble(_merged([ptx.ptx for ptx in plain]))
            found.update(dict.fromkeys((ptx.metadata.name for ptx in plain), code))
    for kernel in kernels:
        if kernel.metadata.name not in found:
            with _failures_of(kernel.metadata.name):
                found[kernel.metadata.name] = kernel.assemble(kernel.ptx)
    return [found[kernel.metadata.name] for kernel in kernels]


_DECLARATION = re.compile(r"^\.(?:extern \.shared|global) [^\n]*;$", re.MULTILINE)
_ENTRY = "version|target|address_size|visible \\.entry|reqntid|maxntid|minnctapersm|maxnreg"
_OTHER = re.compile(rf"^\.(?!(?:{_ENTRY})\b)\w+", re.MULTILINE)
_WHERE = re.compile(r"^\s*\.loc[^\n]*\n", re.MULTILINE)
_REFLECTED = "_$_str"
"""A text that libdevice asks the compiler with; nothing reads it."""


def _parts(ptx: str) -> tuple[str, list[str], str] | None:
    """(head, declarations, entry) of a kernel's PTX, without its lines' places; None if it declares
    what another kernel's PTX may declare in another way."""
    code, _, _ = ptx.partition("\n\t.file")
    code = _WHERE.sub("", code)
    declared = _DECLARATION.findall(code)
    shared = all(".shared" in one or _REFLECTED in one for one in declared)
    code = _DECLARATION.sub("", code)
    if not shared or _OTHER.search(code):
        return None
    head, size, entry = code.partition(".address_size 64")
    return head + size, declared, entry


def _merged(texts: Sequence[str]) -> str:
    parts = [found for text in texts if (found := _parts(text)) is not None]
    declared = dict.fromkeys(one for _, declared, _ in parts for one in declared)
    return "\n".join((parts[0][0], *declared, *(entry for _, _, entry in parts)))


@contextmanager
def _failures_of(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise NoTriton(f"Triton cannot compile {name}: {cause}") from error


def _through_stages(module: dict[str, Any], kernel: DeviceKernel, arch: str, texts: bool) -> Ptx:
    triton = _triton()
    target = triton.target("cuda", int(arch.removeprefix("sm_")), 32)
    # Triton drops assertions unless it debugs; then it would check integers for overflow, too.
    debug = {"debug": True, "sanitize_overflow": False} if kernel.checks else {}
    function = module[kernel.name]
    backend = triton.backend(target)
    options = backend.parse_options({"num_warps": kernel.warps, **debug})
    context = _context(triton, backend)
    with _front_end:
        signature = dict(zip(function.arg_names, kernel.types, strict=True))
        pointers = [i for i, kind in enumerate(kernel.types) if kind.startswith("*")]
        multiples = {**dict.fromkeys(pointers, ALIGNED), **dict(kernel.divisible)}
        divisible = {(i,): [["tt.divisibility", many]] for i, many in multiples.items()}
        source = triton.source(function, signature, {}, divisible)
        stages: dict[str, Any] = {}
        backend.add_stages(stages, options, source.language)
        functions, modules = backend.get_codegen_implementation(options), backend.get_module_map()
        code = source.make_ir(target, options, functions, modules, context)
    metadata: dict[str, Any] = {"target": target, **options.__dict__}
    asm: dict[str, Any] = {}
    last = stages.pop("cubin")
    for name, stage in stages.items():
        code = stage(code, metadata)
        if texts:
            asm[name] = str(code)  # now: the next stage changes it in place
    words, warps, shared = (metadata[name] for name in ("name", "num_warps", "shared"))
    known = Metadata(str(words), int(warps), int(shared))
    return Ptx(str(code), known, lambda text: bytes(last(text, metadata)), asm)


@dataclass(frozen=True, slots=True)
class _Triton:
    """What this uses of Triton."""

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
    found = list(signature_of(ASTSource.make_ir).parameters)
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
