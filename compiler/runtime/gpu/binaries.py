"""A module's kernels as machine code, by Triton's compiler; cached by their text.

No GPU is needed. Triton keeps its own files in our cache.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import threading
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec

from compiler.codegen.device import DeviceKernel
from compiler.runtime.libraries import without_comments
from compiler.runtime.store import Store, digest

FORMAT = 2
STAGES = ("ttir", "ttgir", "llir", "ptx")
DIVISIBLE = [["tt.divisibility", 16]]
"""Every buffer begins at a multiple of 16 bytes: the launcher sees to it."""

_lock = threading.Lock()


class Binary(msgspec.Struct, frozen=True):
    """One kernel's machine code in the store."""

    name: str
    """Of its entry."""
    code: str
    """Digest of the machine code."""
    threads: int
    """Per program."""
    shared: int
    """Bytes of shared memory per program."""
    cpu_seconds: float


_BINARY = msgspec.json.Decoder(Binary)


class NoTriton(Exception):
    """Triton cannot compile a kernel here. The message says why."""


@cache
def triton_version() -> str:
    """The installed Triton's version; "" if there is none."""
    try:
        return version("triton")
    except PackageNotFoundError:
        return ""


def binaries(text: str, kernels: Sequence[DeviceKernel], arch: str, store: Store) -> list[Binary]:
    """The machine code of each kernel, from the store or compiled.

    `text` defines the kernels, for `arch` such as `sm_90`. Raises `NoTriton`, OSError.
    """
    lines = text.split("\n")
    shared_part = "\n".join(lines[: kernels[0].line - 1]) if kernels else ""
    found: list[Binary] = []
    module: dict[str, Any] | None = None
    for kernel in kernels:
        own = "\n".join(lines[kernel.line - 1 : kernel.line - 1 + kernel.count])
        parts = [FORMAT, shared_part, without_comments(own, "#"), kernel.types, kernel.warps]
        parts.append(kernel.checks)
        key = digest(msgspec.json.encode([*parts, arch, triton_version()]))
        binary = _find(key, store)
        if binary is None:
            with store.locked(key):
                binary = _find(key, store)
                if binary is None:
                    if module is None:
                        module = load_module(text)
                    binary = _compile(module, kernel, arch, key, store)
        found.append(binary)
    return found


def _find(key: str, store: Store) -> Binary | None:
    content = store.read_sealed("binaries", f"{key}.json")
    if content is None:
        return None
    try:
        found = _BINARY.decode(content)
    except msgspec.MsgspecError:
        return None
    return found if code_of(found, store) is not None else None


def code_of(binary: Binary, store: Store) -> bytes | None:
    """The machine code, or None if it is gone or damaged."""
    content = store.read("objects", f"{binary.code}.cubin")
    return content if content is not None and digest(content) == binary.code else None


def load_module(text: str) -> dict[str, Any]:
    """The names that a module's text defines. Triton reads the text again, through linecache."""
    name = f"<tcw kernels {digest(text.encode())[:16]}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, Any] = {"__name__": "tcw_kernels"}
    exec(compile(text, name, "exec", dont_inherit=True), names)
    return names


def _compile(
    module: dict[str, Any], kernel: DeviceKernel, arch: str, key: str, store: Store
) -> Binary:
    start = _cpu_seconds()
    made = compiled(module, kernel, arch, store)
    code = bytes(made.asm["cubin"])
    binary = Binary(
        name=str(made.metadata.name),
        code=digest(code),
        threads=32 * int(made.metadata.num_warps),
        shared=int(made.metadata.shared),
        cpu_seconds=round(_cpu_seconds() - start, 4),
    )
    store.write("objects", f"{binary.code}.cubin", code)
    store.write_sealed("binaries", f"{key}.json", msgspec.json.encode(binary))
    return binary


def compiled(module: dict[str, Any], kernel: DeviceKernel, arch: str, store: Store) -> Any:
    """Triton's compiled kernel, with every stage's text in `.asm`. Raises `NoTriton`."""
    try:
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
    except ImportError as error:
        raise NoTriton(f"Triton is not installed ({error}); pip install triton") from error
    function = module[kernel.name]
    signature = dict(zip(function.arg_names, kernel.types, strict=True))
    pointers = [i for i, kind in enumerate(kernel.types) if kind.startswith("*")]
    source = ASTSource(function, signature, {}, {(i,): DIVISIBLE for i in pointers})
    target = GPUTarget("cuda", int(arch.removeprefix("sm_")), 32)
    # Triton drops assertions unless it debugs; then it would check integers for overflow, too.
    debug = {"debug": True, "sanitize_overflow": False} if kernel.checks else {}
    options = {"num_warps": kernel.warps, **debug}
    try:
        with _lock, _triton_in(store):
            return triton.compile(source, target=target, options=options)
    except Exception as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise NoTriton(f"Triton cannot compile {kernel.name}: {cause}") from error


@contextlib.contextmanager
def _triton_in(store: Store) -> Iterator[None]:
    """Triton keeps its files in the store's folder."""
    name = "TRITON_CACHE_DIR"
    before = os.environ.get(name)
    os.environ[name] = str(store.folder / "triton")
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before


def _cpu_seconds() -> float:
    """CPU seconds of this process and of the children that it waited for, such as ptxas."""
    return sum(os.times()[:4])
