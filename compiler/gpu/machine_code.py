"""What a compiled Triton kernel holds: every stage's text, and the kernel's resources, as NVIDIA's
tools that are bundled with Triton report them."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import importlib.util
import inspect
import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import structs

from tcw.compiler.control.recorder import Recorder
from tcw.compiler.gpu.architectures import Architecture
from tcw.compiler.runtime.store import FileStore
from tcw.compiler.trace.records import KernelBinary

SECONDS = 60


class ToolFailed(Exception):
    """A tool is missing or failed; the message names it."""


@dataclass(frozen=True)
class Usage:
    """One kernel's resource usage per thread."""

    registers: int | None
    stack_bytes: int | None


def tool(name: str) -> Path:
    """Triton's own copy of `ptxas`, `cuobjdump` or `nvdisasm`."""
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        raise ToolFailed("Triton is not installed")
    path = Path(spec.origin).parent / "backends" / "nvidia" / "bin" / name
    if not path.exists():
        raise ToolFailed(f"Triton {tool_version()} carries no {name}")
    return path


def assembler(arch: str) -> Path:
    """The `ptxas` that Triton itself runs for `sm_90a`.

    Triton bundles two, and which one an architecture needs depends on Triton's version.
    """
    number = re.search(r"\d+", arch)
    try:
        from triton.backends.nvidia.compiler import get_ptxas
    except ImportError:
        return tool("ptxas")
    return Path(get_ptxas(int(number[0]) if number else 0).path)


@functools.cache
def _allocation() -> tuple[str, ...]:
    """The register allocation option that this Triton passes to ptxas; Triton 3.6 passes none."""
    try:
        from triton.backends.nvidia.compiler import CUDABackend

        match = re.search(r"--regAllocOptLevel=\d", inspect.getsource(CUDABackend.make_cubin))
    except (ImportError, AttributeError, OSError):
        return ()
    return (match[0],) if match else ()


def resource_usage(cubin: bytes) -> Usage:
    """`cuobjdump --dump-resource-usage`: ` Function k: REG:12 STACK:0 SHARED:0 LOCAL:0 …`."""
    text = _run_on(cubin, ".cubin", "cuobjdump", "--dump-resource-usage")
    numbers = {key: int(value) for key, value in re.findall(r"\b([A-Z]+):(\d+)", text)}
    stack, local = numbers.get("STACK"), numbers.get("LOCAL", 0)
    return Usage(registers=numbers.get("REG"), stack_bytes=None if stack is None else stack + local)


def disassembly(cubin: bytes, cache: Path) -> str:
    """The SASS that `nvdisasm` prints, with source lines of the kernel, without encodings.

    Stored in the folder `cache` by the cubin's content: nvdisasm takes 0.25 s for any kernel.
    """
    name = hashlib.blake2b(cubin + tool_version().encode(), digest_size=16).hexdigest()
    store = FileStore(cache)
    kept = store.read_sealed("sass", name)
    if kept is not None:
        return kept.decode()
    text = _run_on(cubin, ".cubin", "nvdisasm", "--print-code", "--print-line-info")
    with contextlib.suppress(OSError):
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        store.write_sealed("sass", name, text.encode())
    return text


def tool_version() -> str:
    """NVIDIA's tools are bundled with Triton and change with it."""
    return importlib.metadata.version("triton")


def spills(ptx: str, arch: str) -> int | None:
    """Bytes per thread that ptxas spills to local memory; None if it does not report them.

    `ptx` is assembled again, with the options that Triton uses, to read the report of ptxas.
    """
    options = ("-v", "-lineinfo", *_allocation(), f"--gpu-name={arch}", "-o", os.devnull)
    text = _run_on(ptx.encode(), ".ptx", "ptxas", *options, program=assembler(arch))
    found = re.findall(r"(\d+) bytes spill stores", text)
    return max(map(int, found)) if found else None


def _run_on(
    content: bytes, suffix: str, name: str, *options: str, program: Path | None = None
) -> str:
    with tempfile.NamedTemporaryFile(suffix=suffix) as file:
        file.write(content)
        file.flush()
        try:
            done = subprocess.run(
                [str(program or tool(name)), *options, file.name],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SECONDS,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise ToolFailed(f"{name} did not run: {error}") from error
    if done.returncode:
        raise ToolFailed(f"{name} failed: {(done.stderr or done.stdout).strip()[:500]}")
    return done.stdout + done.stderr


@dataclass(frozen=True)
class Binary:
    """One compiled kernel."""

    facts: KernelBinary
    """Without the kernel's id and the texts."""
    texts: dict[str, str] = field(default_factory=dict)
    """By stage: ttir, ttgir, llir, ptx, sass."""


def read(
    compiled: Any,
    architecture: Architecture,
    cache: Path,
    configuration: str,
    seconds: float,
    error: str = "",
) -> Binary:
    """The contents of the compiled kernel; SASS is kept in `cache`. Without a kernel, `error` says
    why. Never raises. `seconds`: of compiling."""
    begun = KernelBinary(
        kernel="",
        arch=architecture.name,
        configuration=configuration,
        most_warps=architecture.most_warps,
        seconds=seconds,
        error=error,
    )
    if compiled is None:
        return Binary(begun)
    start = time.perf_counter()
    try:
        cubin, ptx = compiled.asm["cubin"], compiled.asm["ptx"]
        usage = resource_usage(cubin)
        # Spilled registers live on the stack: without a stack there are none.
        spilled = spills(ptx, _target(ptx, architecture)) if usage.stack_bytes else 0
        texts = {name: compiled.asm[name] for name in ("ttir", "ttgir", "llir", "ptx")}
        texts["sass"] = disassembly(cubin, cache)
        facts = structs.replace(
            begun,
            registers=usage.registers,
            # cuobjdump adds the shared memory that the system reserves in each block.
            shared_bytes=compiled.metadata.shared,
            spill_bytes=spilled if usage.stack_bytes is not None else None,
            stack_bytes=usage.stack_bytes,
            resident_warps=architecture.resident_warps(
                int(compiled.metadata.num_warps), usage.registers, int(compiled.metadata.shared)
            ),
            seconds=seconds + time.perf_counter() - start,
        )
        return Binary(facts, texts)
    except Exception as failed:
        return Binary(structs.replace(begun, error=words(failed)))


def record(recorder: Recorder, binary: Binary, kernel: str) -> None:
    """Emit the binary of a kernel, given its id, as predicted."""
    facts, texts = binary.facts, {name: recorder.text(body) for name, body in binary.texts.items()}
    recorder.emit(structs.replace(facts, kernel=kernel, seconds=round(facts.seconds, 4), **texts))


def words(error: Exception) -> str:
    """An error as a record holds it."""
    return f"{type(error).__name__}: {error}"[:2000]


def _target(ptx: str, architecture: Architecture) -> str:
    """The target that the PTX names: `sm_90a`, with features specific to that architecture."""
    match = re.search(r"^\.target (\w+)", ptx, re.MULTILINE)
    return match.group(1) if match else architecture.name
