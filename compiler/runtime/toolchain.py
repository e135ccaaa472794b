"""The C++ compiler of this machine: finding it, its capabilities, and its command line."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tcw.compiler.codegen.cpp.isa import COMPILE_FLAGS, Isa, detect
from tcw.compiler.codegen.cpp.vocabulary import sleef
from tcw.compiler.processor import gathers_slowly

CANDIDATES = ("g++", "clang++")

UNIT_FLAGS = ("-fno-asynchronous-unwind-tables", "-nostdlib")
"""No start-up files and no C++ library, which saves a quarter of the time. Kernels never unwind."""

LAUNCHING_FLAGS = ("-Og", "-fno-exceptions", "-fno-rtti", "-fno-strict-aliasing")
"""Of units that only launch a GPU's kernels: there are no loops to optimize, and -Og takes half of
the time."""

LAUNCHER_FLAGS = ("-O1", "-fexceptions", "-fno-rtti", "-nostdlib")

LAUNCHER_LIBRARIES = ("-lstdc++", "-lgcc_s")
"""The launcher catches exceptions from torch, so it needs the C++ library."""

# Our symbols must never resolve to another library of the process.
SHARED_FLAGS = ("-std=c++17", "-fPIC", "-shared", "-w", "-Wl,-Bsymbolic")


@dataclass(frozen=True, slots=True)
class Compiler:
    """A working C++ compiler."""

    command: tuple[str, ...]
    version: str
    """First line of `--version`."""

    @property
    def is_clang(self) -> bool:
        """Whether it is clang, which lacks GCC's builtins for vector instructions."""
        return "clang" in self.version


@dataclass(frozen=True, slots=True)
class NoCompiler:
    """No C++ compiler is available."""

    reason: str
    """What was tried, and what to do about it."""


def find_compiler() -> Compiler | NoCompiler:
    """`CXX`, else g++, else clang++. Looked up on each call, but versions are cached."""
    named = os.environ.get("CXX", "").strip()
    if named:
        try:
            command = shlex.split(named)
        except ValueError as error:
            return NoCompiler(f"CXX={named} cannot be read as a command: {error}")
        compiler = _compiler(command)
        return compiler or NoCompiler(
            f"CXX names {named}, which does not run; set it to a C++ compiler"
        )
    for name in CANDIDATES:
        compiler = _compiler([name])
        if compiler:
            return compiler
    return NoCompiler(f"no C++ compiler: neither {' nor '.join(CANDIDATES)} runs; install g++")


def _compiler(command: list[str]) -> Compiler | None:
    path = shutil.which(command[0])
    if path is None:
        return None
    try:
        stamp = os.stat(path).st_mtime_ns
    except OSError:
        return None
    version = _version((path, *command[1:]), stamp)
    return Compiler((path, *command[1:]), version) if version else None


@cache
def _version(command: tuple[str, ...], stamp: int) -> str:
    del stamp  # a compiler that was replaced is queried again
    try:
        done = subprocess.run(
            [*command, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return "" if done.returncode else done.stdout.partition("\n")[0].strip()


def instruction_set(found: Compiler | NoCompiler, isa: Isa | None = None) -> Isa:
    """This machine's instruction set, or `isa`, restricted to what the compiler supports and to
    what this processor does fast."""
    isa = isa or detect()
    if isa.gathers and gathers_slowly():
        isa = replace(isa, gathers=False)
    return replace(isa, builtins=False) if isinstance(found, Compiler) and found.is_clang else isa


@cache
def openmp_library() -> str:
    """The OpenMP library loaded in this process; a second one would have its own threads.

    "" if there is none. Torch must have been imported.
    """
    return _loaded("libgomp", "libiomp5", "libomp")


def _loaded(*starts: str) -> str:
    """The path of a library in this process whose name starts so; "" if there is none."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    for line in maps.splitlines():
        path = line[line.find("/") :] if "/" in line else ""
        if Path(path).name.startswith(starts) and os.path.exists(path):
            return path
    return ""


def unit_flags(isa: Isa) -> tuple[str, ...]:
    """Compiler flags for a unit of kernels, without libraries."""
    return (*SHARED_FLAGS, *COMPILE_FLAGS, *UNIT_FLAGS, *isa.flags)


def launching_flags() -> tuple[str, ...]:
    """Compiler flags for a unit whose kernels run on a GPU, without libraries."""
    return (*SHARED_FLAGS, *LAUNCHING_FLAGS, *UNIT_FLAGS)


def unit_libraries(needs: Sequence[str]) -> tuple[str, ...]:
    """Libraries for a unit, linked only if needed. `needs`: `Artifact.libraries`. Linking with
    libtorch_cpu takes 0.15 CPU seconds, so only units that call SLEEF do."""
    torch = _loaded("libtorch_cpu.") if sleef.LIBRARY in needs else ""
    return ("-Wl,--as-needed", *filter(None, (openmp_library(), torch)), "-lm")


def launcher_flags() -> tuple[str, ...]:
    """Compiler flags for the launcher, which runs on any machine of this architecture."""
    return (*SHARED_FLAGS, *LAUNCHER_FLAGS)
