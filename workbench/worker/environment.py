"""The machine and the versions, once torch is imported."""

from __future__ import annotations

import importlib.metadata
import os

import torch

from tcw.compiler.capture.settings import setting_variables
from tcw.compiler.processor import processor_name
from tcw.compiler.trace.records import Environment, HookStatus
from tcw.workbench.worker.toolchain import compiler_version


def environment(hooks: tuple[HookStatus, ...], only_begun: bool = False) -> Environment:
    """Describe this machine; imports nothing besides torch. `only_begun`: look at CUDA only if the
    process uses it already, since asking for a GPU's name begins a context, after which a program
    cannot fork."""
    return Environment(
        torch=str(torch.__version__),
        triton=_version("triton"),
        compiler=compiler_version(),
        cpu=processor_name(),
        vector=str(torch.backends.cpu.get_cpu_capability()),
        threads=torch.get_num_threads(),
        gpu=_gpu(only_begun),
        hooks=hooks,
        variables=setting_variables(os.environ),
    )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _gpu(begun: bool) -> str:
    there = torch.cuda.is_initialized() if begun else torch.cuda.is_available()
    return str(torch.cuda.get_device_name()) if there else ""
