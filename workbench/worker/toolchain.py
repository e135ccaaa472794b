"""The C++ compiler that Inductor calls: which it is, and whether it builds a kernel. No torch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

TRIAL = """\
#include <Python.h>
#include <omp.h>
extern "C" int threads() { return omp_get_max_threads(); }
"""
"""What each of Inductor's C++ kernels needs: Python's headers, OpenMP, a shared library."""

TRIAL_SECONDS = 60


def compiler_command() -> str:
    """`CXX`, else g++, as torch/_inductor/config.py chooses it."""
    return os.environ.get("CXX") or "g++"


def compiler_version() -> str:
    """First line of the C++ compiler's `--version`; "" if there is none."""
    compiler = shutil.which(compiler_command())
    if compiler is None:
        return ""
    try:
        done = _run([compiler, "--version"], seconds=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.partition("\n")[0].strip()


def compiler_fault() -> str:
    """Why the compiler cannot build a kernel, in its own words; "" if it can."""
    compiler = shutil.which(compiler_command())
    if compiler is None:
        return f"there is no {compiler_command()}"
    include = sysconfig.get_paths()["include"]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "trial.cpp")
        source.write_text(TRIAL, encoding="utf-8")
        options = ["-shared", "-fPIC", "-fopenmp", f"-I{include}", "-o", f"{folder}/trial.so"]
        try:
            done = _run([compiler, str(source), *options], seconds=TRIAL_SECONDS)
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
    if not done.returncode:
        return ""
    lines = done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"]
    return next((line for line in lines if "error" in line), lines[0]).strip()


def _run(command: list[str], seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds,
        stdin=subprocess.DEVNULL,
    )
