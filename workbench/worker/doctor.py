"""The part of `tcw doctor` that imports torch: installed packages, and the hooks available."""

from __future__ import annotations

import contextlib
import importlib
import platform
import sys
from typing import Any

import msgspec

from tcw.compiler.control.hooks import Hook
from tcw.compiler.processor import processor_name
from tcw.compiler.trace.records import HookStatus
from tcw.workbench.worker.failures import NO_TORCH
from tcw.workbench.worker.findings import Findings
from tcw.workbench.worker.toolchain import compiler_fault, compiler_version


def report() -> None:
    """Write the findings to stdout as one line of JSON, and nothing else."""
    with contextlib.redirect_stdout(sys.stderr):
        found = findings()
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    sys.stdout.flush()


def findings() -> Findings:
    """Examine this environment. Raises nothing: what cannot be found out becomes a fault, in
    words."""
    compiler = compiler_version()
    torch, torch_fault = _imported("torch")
    triton, triton_fault = _imported("triton")
    engine, engine_fault = _engine() if torch is not None else ("", "not known without torch")
    hooks, hooks_fault = _hooks() if torch is not None else ((), "")
    return Findings(
        python=platform.python_version(),
        torch=_version(torch),
        torch_fault=torch_fault,
        cuda_build=str(torch.version.cuda or "") if torch is not None else "",
        triton=_version(triton),
        triton_fault=triton_fault,
        compiler=compiler,
        compiler_fault=compiler_fault(),
        cpu=processor_name(),
        vector=str(torch.backends.cpu.get_cpu_capability()) if torch is not None else "",
        threads=int(torch.get_num_threads()) if torch is not None else 0,
        gpu=_gpu(torch) if torch is not None else "",
        engine=engine,
        engine_fault=engine_fault,
        hooks=hooks,
        hooks_fault=hooks_fault,
    )


def _imported(name: str) -> tuple[Any, str]:
    """The module, or None and the reason: a broken installation raises more than ImportError."""
    try:
        return importlib.import_module(name), ""
    except ModuleNotFoundError as error:
        if error.name == name:
            return None, NO_TORCH if name == "torch" else f"{name} is not installed"
        return None, f"{name} cannot be imported: {error}"
    except Exception as error:
        return None, f"{name} cannot be imported: {type(error).__name__}: {error}"


def _version(module: Any) -> str:
    return str(getattr(module, "__version__", "")) if module is not None else ""


def _hooks() -> tuple[tuple[HookStatus, ...], str]:
    try:
        from tcw.compiler import pipeline
        from tcw.compiler.measure.hooks import HOOKS
        from tcw.workbench.worker import measuring_hooks

        checked = (hook.check() for hook in (*HOOKS, *_of_engine()))
        return (*pipeline.statuses(), *measuring_hooks.statuses(), *checked), ""
    except Exception as error:
        return (), f"the hooks cannot be checked: {type(error).__name__}: {error}"


def _of_engine() -> tuple[Hook, ...]:
    """Our engine's hooks: only what it cannot do without, if it cannot be imported."""
    try:
        from tcw.compiler.engine.hooks import HOOKS
    except (ImportError, AttributeError):
        from tcw.compiler.engine.requirements import HOOK

        return (HOOK,)
    return HOOKS


def _engine() -> tuple[str, str]:
    """Name what our own compiler generates code for, or the reason why it cannot."""
    try:
        import tcw.compiler.engine.backend  # noqa: F401
        from tcw.compiler.codegen.cpp.isa import detect
        from tcw.compiler.runtime.toolchain import NoCompiler, find_compiler

        isa, found = detect(), find_compiler()
    except Exception as error:
        return "", f"{type(error).__name__}: {error}"
    words = f"C++ for {isa.name}, {8 * isa.vector_bytes} bits"
    if isinstance(found, NoCompiler):
        return words, str(found.reason)
    return words, ""


def _gpu(torch: Any) -> str:
    """`NVIDIA H100 80GB HBM3, sm_90, 80 GiB`."""
    try:
        if not torch.cuda.is_available():
            return ""
        properties = torch.cuda.get_device_properties(0)
        memory = properties.total_memory / (1 << 30)
        arch = f"sm_{properties.major}{properties.minor}"
        return f"{properties.name}, {arch}, {memory:.0f} GiB"
    except Exception as error:
        return f"the GPU cannot be queried: {error}"
