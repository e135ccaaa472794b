"""Judges the findings about a machine: what works, what is missing, and how to fix it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Literal

import msgspec

from compiler.cache_folder import CacheRefused, cache_folder, cache_path
from compiler.trace.records import HookStatus
from viewers.words import bytes_text
from workbench.worker.findings import Findings
from workbench.worker.guardian import CACHES_PREFIX

OLDEST_TORCH, NEWEST_TORCH = (2, 11), (2, 15)
TRITON_OF_TORCH = {(2, 11): "3.6", (2, 12): "3.7", (2, 13): "3.7", (2, 14): "3.8", (2, 15): "3.9"}
"""The Triton release that torch's own CUDA builds require, by torch release."""

GIB = 1 << 30
ENOUGH_DISK = GIB
"""Bytes. Enough for Inductor's caches of a large model and a trace of it."""
LEAST_DISK = 64 << 20


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check."""

    name: str
    state: Literal["ok", "limited", "missing"]
    """`limited`: it works, but not everything is available."""
    found: str
    needed: bool = False
    """`tcw explain model.py` does not work without it."""
    fix: str = ""
    """What to do; "" if nothing needs to be done."""


def checks(findings: Findings, guardian_fault: str) -> tuple[Check, ...]:
    """Every check of `tcw doctor`, in the order of its output. `guardian_fault`: what a trial of
    the guardian found; "" if it works."""
    return (
        _torch(findings),
        _compiler(findings),
        _hooks(findings),
        _temporary_folder(),
        _triton(findings),
        _vector(findings),
        _engine(findings),
        _gpu(findings),
        _dot(),
        _cache(),
        _guardian(guardian_fault),
    )


def _release(version: str) -> tuple[int, int]:
    """Major and minor: `2.13.0+cpu` -> (2, 13)."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def _torch(findings: Findings) -> Check:
    if not findings.torch:
        fix = "pip install -c constraints.txt torch"
        return Check(
            name="torch", state="missing", found=findings.torch_fault, needed=True, fix=fix
        )
    build = f"built for CUDA {findings.cuda_build}" if findings.cuda_build else "built for the CPU"
    found = f"{findings.torch}, {build}, Python {findings.python}"
    if OLDEST_TORCH <= _release(findings.torch) <= NEWEST_TORCH:
        return Check(name="torch", state="ok", found=found, needed=True)
    low, high = (".".join(map(str, each)) for each in (OLDEST_TORCH, NEWEST_TORCH))
    fix = f"tcw is tested on torch {low} to {high}; hooks that this version lacks are listed below"
    return Check(name="torch", state="limited", found=found, needed=True, fix=fix)


def _compiler(findings: Findings) -> Check:
    if not findings.compiler:
        fix = "apt install g++ (or set CXX); until then: tcw explain --until codegen"
        return Check(
            name="C++ compiler",
            state="missing",
            found=findings.compiler_fault or "none",
            needed=True,
            fix=fix,
        )
    if not findings.compiler_fault:
        return Check(name="C++ compiler", state="ok", found=findings.compiler, needed=True)
    missing = re.search(r"(Python|omp)\.h", findings.compiler_fault)
    package = {"Python": "python3-dev", "omp": "g++"}[missing.group(1)] if missing else ""
    fix = f"apt install {package}" if package else "set CXX to a compiler that builds C++ here"
    found = f"{findings.compiler} cannot build a kernel: {findings.compiler_fault}"
    return Check(name="C++ compiler", state="missing", found=found, needed=True, fix=fix)


def _hooks(findings: Findings) -> Check:
    if not findings.hooks:
        found = findings.hooks_fault or "not checked without torch"
        return Check(name="hooks", state="missing", found=found, needed=True)
    lacking = [hook for hook in findings.hooks if not hook.available]
    there = len(findings.hooks) - len(lacking)
    found = f"{there} of {len(findings.hooks)} in torch {findings.torch}"
    if not lacking:
        return Check(name="hooks", state="ok", found=found, needed=True)
    fix = "what is listed below will be missing; " + _tried(lacking)
    state: Literal["limited", "missing"] = "limited" if there else "missing"
    return Check(name="hooks", state=state, found=found, needed=True, fix=fix)


def _tried(hooks: list[HookStatus]) -> str:
    versions = sorted({version for hook in hooks for version in hook.tried_on}, key=_release)
    return (
        f"the hooks are tested on torch {', '.join(versions)}" if versions else "see CHANGELOG.md"
    )


def _triton(findings: Findings) -> Check:
    if not findings.triton:
        fix = "pip install -c constraints.txt triton; needed to predict GPU code"
        return Check(name="triton", state="missing", found=findings.triton_fault, fix=fix)
    belongs = TRITON_OF_TORCH.get(_release(findings.torch), "")
    if not belongs or findings.triton.startswith(f"{belongs}."):
        return Check(name="triton", state="ok", found=findings.triton)
    fix = f"pip install 'triton=={belongs}.*': torch {findings.torch} requires that release"
    return Check(name="triton", state="limited", found=findings.triton, fix=fix)


def _vector(findings: Findings) -> Check:
    found = ", ".join(
        each
        for each in (findings.vector, findings.cpu, f"{findings.threads} threads")
        if each and findings.threads
    )
    if findings.vector and findings.vector != "DEFAULT":
        return Check(name="vector ISA", state="ok", found=found)
    fix = "C++ kernels are generated without vector instructions on this CPU"
    return Check(
        name="vector ISA", state="limited", found=found or "unknown without torch", fix=fix
    )


def _engine(findings: Findings) -> Check:
    if findings.engine and not findings.engine_fault:
        return Check(name="tcw engine", state="ok", found=findings.engine)
    found = f"{findings.engine or 'not available'}: {findings.engine_fault}"
    fix = "with --engine tcw, graphs run on ATen or their kernels are called through Python"
    return Check(
        name="tcw engine", state="limited" if findings.engine else "missing", found=found, fix=fix
    )


def _gpu(findings: Findings) -> Check:
    if findings.gpu:
        return Check(name="GPU", state="ok", found=findings.gpu)
    fix = "GPU code can still be predicted: tcw explain model.py --device cuda --arch sm_90"
    return Check(name="GPU", state="missing", found="none that torch can use", fix=fix)


def _dot() -> Check:
    path = shutil.which("dot")
    if path:
        return Check(name="dot", state="ok", found=path)
    fix = "apt install graphviz; used only for diagrams"
    return Check(name="dot", state="missing", found="not on the PATH", fix=fix)


def _temporary_folder() -> Check:
    """Where Inductor builds: TORCHINDUCTOR_CACHE_DIR, else the temporary folder."""
    folder = Path(os.environ.get("TORCHINDUCTOR_CACHE_DIR") or tempfile.gettempdir())
    there = next((each for each in (folder, *folder.parents) if each.exists()), Path("/"))
    name, free = "build folder", shutil.disk_usage(there).free
    found = f"{folder}, {bytes_text(free)} free"
    if not os.access(there, os.W_OK):
        fix = "set TORCHINDUCTOR_CACHE_DIR to a folder that you can write to"
        return Check(
            name=name, state="missing", found=f"{folder} is not writable", needed=True, fix=fix
        )
    if free >= ENOUGH_DISK:
        return Check(name=name, state="ok", found=found, needed=True)
    state: Literal["limited", "missing"] = "limited" if free >= LEAST_DISK else "missing"
    fix = "free some space or set TORCHINDUCTOR_CACHE_DIR to a larger disk"
    return Check(name=name, state=state, found=found, needed=True, fix=fix)


def _cache() -> Check:
    path = cache_path()
    if not os.path.lexists(path):
        return Check(name="cache folder", state="ok", found=f"{path}, created on first use")
    try:
        folder = cache_folder()
    except CacheRefused as refused:
        what, _, fix = str(refused).partition("; ")
        return Check(name="cache folder", state="missing", found=what, fix=fix)
    held = sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file())
    return Check(name="cache folder", state="ok", found=f"{folder}, private, {bytes_text(held)}")


def _guardian(fault: str) -> Check:
    if not fault:
        found = "removes what a killed recording leaves"
        return Check(name="guardian", state="ok", found=found)
    fix = (
        f"processes, and folders {tempfile.gettempdir()}/{CACHES_PREFIX}*, may remain after a "
        "recording is killed: end and remove them yourself"
    )
    return Check(name="guardian", state="limited", found=fault, fix=fix)
