"""The machine and the versions, once torch is imported."""

from __future__ import annotations

import importlib.metadata

import torch

from compiler.measure.work.ceilings import cpu_name
from compiler.trace.records import Environment, HookStatus
from workbench.worker.toolchain import compiler_version


def environment(hooks: tuple[HookStatus, ...]) -> Environment:
    """Describe this machine; imports nothing beyond torch."""
    return Environment(
        torch=str(torch.__version__),
        triton=_version("triton"),
        compiler=compiler_version(),
        cpu=cpu_name(),
        vector=str(torch.backends.cpu.get_cpu_capability()),
        threads=torch.get_num_threads(),
        gpu=_gpu(),
        hooks=hooks,
    )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _gpu() -> str:
    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else ""
