"""What a compiled Triton kernel holds: every stage's text, and the kernel's resources."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from compiler.control.recorder import Recorder
from compiler.gpu.architectures import Architecture
from compiler.gpu.tools import disassembly, resource_usage, spills
from compiler.trace.records import KernelBinary


@dataclass(frozen=True)
class Binary:
    """One compiled kernel; texts by stage: ttir, ttgir, llir, ptx, sass."""

    configuration: str
    texts: dict[str, str] = field(default_factory=dict)
    registers: int | None = None
    shared_bytes: int | None = None
    spill_bytes: int | None = None
    stack_bytes: int | None = None
    resident_warps: int | None = None
    """Of a processor."""
    seconds: float = 0.0
    error: str = ""


def read(compiled: Any, begun: Binary, architecture: Architecture, cache: Path) -> Binary:
    """`begun` with the contents of the compiled kernel; SASS is kept in `cache`. Never raises."""
    if compiled is None:
        return begun
    start = time.perf_counter()
    try:
        cubin, ptx = compiled.asm["cubin"], compiled.asm["ptx"]
        usage = resource_usage(cubin)
        # Spilled registers live on the stack: without a stack there are none.
        spilled = spills(ptx, _target(ptx, architecture)) if usage.stack_bytes else 0
        texts = {name: compiled.asm[name] for name in ("ttir", "ttgir", "llir", "ptx")}
        return replace(
            begun,
            texts={**texts, "sass": disassembly(cubin, cache)},
            registers=usage.registers,
            # cuobjdump adds the shared memory that the system reserves in each block.
            shared_bytes=compiled.metadata.shared,
            spill_bytes=spilled if usage.stack_bytes is not None else None,
            stack_bytes=usage.stack_bytes,
            resident_warps=architecture.resident_warps(
                int(compiled.metadata.num_warps), usage.registers, int(compiled.metadata.shared)
            ),
            seconds=begun.seconds + time.perf_counter() - start,
        )
    except Exception as error:
        return replace(begun, error=words(error))


def record(recorder: Recorder, binary: Binary, kernel: str, architecture: Architecture) -> None:
    """Emit the binary of a kernel, given its id, as predicted."""
    text = {name: recorder.text(body) for name, body in binary.texts.items()}
    recorder.emit(
        KernelBinary(
            kernel=kernel,
            arch=architecture.name,
            configuration=binary.configuration,
            registers=binary.registers,
            shared_bytes=binary.shared_bytes,
            spill_bytes=binary.spill_bytes,
            stack_bytes=binary.stack_bytes,
            resident_warps=binary.resident_warps,
            most_warps=architecture.most_warps,
            seconds=round(binary.seconds, 4),
            predicted=True,
            error=binary.error,
            ttir=text.get("ttir", ""),
            ttgir=text.get("ttgir", ""),
            llir=text.get("llir", ""),
            ptx=text.get("ptx", ""),
            sass=text.get("sass", ""),
        )
    )


def words(error: Exception) -> str:
    """An error as a record holds it."""
    return f"{type(error).__name__}: {error}"[:2000]


def _target(ptx: str, architecture: Architecture) -> str:
    """The target that the PTX names: `sm_90a`, with features specific to that architecture."""
    found = re.search(r"^\.target (\w+)", ptx, re.MULTILINE)
    return found.group(1) if found else architecture.name
