"""What the worker finds out about this machine for `tcw doctor`. No torch."""

from __future__ import annotations

import msgspec

from tcw.compiler.trace.records import HookStatus


class Findings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Versions and faults; "" for what is absent."""

    python: str
    torch: str = ""
    torch_fault: str = ""
    """Why torch cannot be imported."""
    cuda_build: str = ""
    """CUDA version that torch was built for; "" for a build without CUDA."""
    triton: str = ""
    triton_fault: str = ""
    compiler: str = ""
    """First line of the C++ compiler's `--version`."""
    compiler_fault: str = ""
    """Why it cannot build what Inductor generates."""
    cpu: str = ""
    vector: str = ""
    """Vector instructions that torch uses, e.g. `AVX512`."""
    threads: int = 0
    gpu: str = ""
    engine: str = ""
    """What the tcw engine generates: `AVX-512`; "" if it cannot be imported."""
    engine_fault: str = ""
    """Why it cannot build or load code here; graphs then run on ATen."""
    hooks: tuple[HookStatus, ...] = ()
    hooks_fault: str = ""
