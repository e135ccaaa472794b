"""The C++ compiler of this machine: which it is, what it may assume, how it is called."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

CANDIDATES = ("g++", "clang++")

UNIT_FLAGS = (
    "-O1",
    "-ftree-vectorize",
    "-ftree-slp-vectorize",
    "-ffp-contract=off",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-asynchronous-unwind-tables",
    "-nostdlib",
)
"""As fast as -O2 for a third less time of the compiler; no start-up files, no C++ library."""

LAUNCHER_FLAGS = ("-O1", "-fexceptions", "-fno-rtti", "-nostdlib")

LAUNCHER_LIBRARIES = ("-lstdc++", "-lgcc_s")
"""The launcher catches what torch throws, so it has the C++ library."""

# A name of ours must never be taken from another library of the process.
SHARED_FLAGS = ("-std=c++17", "-fPIC", "-shared", "-w", "-Wl,-Bsymbolic")


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler that answers."""

    command: tuple[str, ...]
    version: str
    """First line of `--version`."""

    @property
    def is_clang(self) -> bool:
        return "clang" in self.version


@dataclass(frozen=True, slots=True)
class NoCompiler:
    """No C++ compiler to be had."""

    reason: str
    """What was looked for and what to do about it."""


def find_compiler() -> Compiler | NoCompiler:
    """`CXX`, else g++, else clang++. Asked anew each time, but a version is asked for only once."""
    named = os.environ.get("CXX", "").strip()
    if named:
        try:
            command = shlex.split(named)
        except ValueError as error:
            return NoCompiler(f"CXX={named} cannot be read as a command: {error}")
        found = _compiler(command)
        return found or NoCompiler(
            f"CXX names {named}, which does not run; set it to a C++ compiler"
        )
    for name in CANDIDATES:
        found = _compiler([name])
        if found:
            return found
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
    del stamp  # a compiler that was replaced is asked again
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


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """What the machine's vector units can do."""

    name: str
    """`avx512`, `avx2`, `neon`, or `portable`."""
    vector_bytes: int
    flags: tuple[str, ...]
    """Of the compiler."""
    digest: str
    """Of all the processor's features: code made for one set may not run on another."""


@cache
def instruction_set() -> InstructionSet:
    """That of this machine, as /proc/cpuinfo tells it."""
    machine, features = platform.machine(), _features()
    digest = sha256(" ".join((machine, *sorted(features))).encode()).hexdigest()[:16]
    if {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= features:
        flags = ("-march=native", "-mprefer-vector-width=512")
        return InstructionSet("avx512", 64, flags, digest)
    if {"avx2", "fma"} <= features:
        return InstructionSet("avx2", 32, ("-march=native",), digest)
    if machine == "aarch64":
        return InstructionSet("neon", 16, ("-mcpu=native",), digest)
    return InstructionSet("portable", 16, (), digest)


def _features() -> frozenset[str]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


@cache
def openmp_library() -> str:
    """The OpenMP library that this process has loaded: a second one would have threads of its own.

    "" where there is none; torch must have been imported.
    """
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    for line in maps.splitlines():
        path = line[line.find("/") :] if "/" in line else ""
        if Path(path).name.startswith(("libgomp", "libiomp5", "libomp")) and os.path.exists(path):
            return path
    return ""


def unit_flags(isa: InstructionSet) -> tuple[str, ...]:
    """How a unit of kernels is compiled, but for what it is linked with."""
    return (*SHARED_FLAGS, *UNIT_FLAGS, *isa.flags)


def launcher_flags() -> tuple[str, ...]:
    """How the launcher is compiled: for any machine of this architecture."""
    return (*SHARED_FLAGS, *LAUNCHER_FLAGS)
