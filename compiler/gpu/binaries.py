"""What a compiled Triton kernel holds: every stage's text, and the kernel's resources."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import structs

from tcw.compiler.control.recorder import Recorder
from tcw.compiler.gpu.architectures import Architecture
from tcw.compiler.gpu.tools import disassembly, resource_usage, spills
from tcw.compiler.trace.records import KernelBinary


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
    found = re.search(r"^\.target (\w+)", ptx, re.MULTILINE)
    return found.group(1) if found else architecture.name
