"""One compiler invocation: C++ text to a shared library, with its cost."""

from __future__ import annotations

import itertools
import os
import re
import select
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tcw.compiler.runtime.toolchain import Compiler

SECONDS = 600
"""Time limit for the compiler."""

DIAGNOSTIC = re.compile(r"^<stdin>:(\d+):\d+: (?:fatal )?error: (.*)$", re.MULTILINE)


class BuildFailed(Exception):
    """The compiler rejected a unit. The message has its first error and the offending line."""


@dataclass(frozen=True, slots=True)
class Built:
    """A shared library, in memory."""

    library: bytes
    cpu_seconds: float
    """Of the compiler and all its child processes."""


def build(
    text: str,
    compiler: Compiler,
    flags: Sequence[str],
    libraries: Sequence[str] = (),
    scratch: Path | None = None,
) -> Built:
    """Compile and link one unit. `libraries` are `-l` options or paths.

    `scratch` is a folder for the temporary result. Raises `BuildFailed`.
    """
    with tempfile.TemporaryDirectory(dir=scratch, ignore_cleanup_errors=True) as folder:
        name = os.path.join(folder, "unit.so")
        inputs = [*flags, "-x", "c++", "-", "-x", "none", *libraries]
        command = [*compiler.command, *inputs, "-o", name]
        code, words, cpu_seconds = _run(command, text, folder)
        if code:
            raise BuildFailed(_reason(command[0], code, words, text))
        try:
            library = Path(name).read_bytes()
        except FileNotFoundError:
            library = b""
        if not library.startswith(b"\x7fELF"):
            raise BuildFailed(f"{command[0]} produced no shared library")
        return Built(library, cpu_seconds)


def _run(command: Sequence[str], text: str, folder: str) -> tuple[int, str, float]:
    """Exit code, output, and CPU seconds. Only wait4 reports the CPU time of a single child.

    `folder` is for the compiler's own temporary files, which it leaves behind if it is killed.
    """
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as said:
        source.write(text.encode())
        source.seek(0)
        own = {**os.environ, "TMPDIR": folder}
        try:
            process = subprocess.Popen(command, stdin=source, stdout=said, stderr=said, env=own)
        except OSError as error:
            raise BuildFailed(f"{command[0]} does not start: {error.strerror or error}") from error
        code, seconds = _wait(process)
        said.seek(0)
        return code, said.read(1 << 20).decode(errors="replace"), seconds


def _wait(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    try:
        if not _ended(process.pid):
            raise BuildFailed(f"the compiler was stopped after {SECONDS} seconds")
        _, status, usage = os.wait4(process.pid, 0)
    except ChildProcessError:
        # Something else waits for all children; the library itself shows whether the build
        # succeeded.
        process.returncode = 0
        return 0, 0.0
    except BaseException:
        _stop(process)
        raise
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Kill the compiler and the programs that it runs, which would go on without it."""
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    except OSError:
        children = []
    process.kill()
    for child in children:
        with suppress(OSError):
            os.kill(int(child), signal.SIGKILL)
    process.wait()


def _ended(pid: int) -> bool:
    """Whether a child ended in time; assumed if there is no pidfd_open to wait with a limit."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return True
    try:
        return bool(select.select([handle], [], [], SECONDS)[0])
    except ValueError:
        return True
    finally:
        os.close(handle)


def _reason(command: str, code: int, words: str, text: str) -> str:
    name = Path(command).name
    match = DIAGNOSTIC.search(words)
    if match is None:
        lines = [line for line in words.splitlines() if line.strip()]
        full = (line for line in lines if "No space left on device" in line)
        wrong = (line for line in lines if "error" in line)
        picked = next(itertools.chain(full, wrong, lines), "")
        return f"{name} ended with code {code}: {picked.strip()[:400]}"
    number = int(match[1])
    lines = text.splitlines()
    line = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return f"{name}: line {number} of the unit: {match[2][:300]}: {line[:200]}"
