"""Check what tcw needs: torch, its hooks, the compilers, the GPU, disk space, leftovers.

Exits with 1 if anything that `tcw explain model.py` needs is missing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

import click
import msgspec

from tcw.compiler.cache_folder import CacheRefused, cache_folder, cache_path
from tcw.compiler.trace.records import HookStatus
from tcw.viewers.plain import fit_encoding, plain
from tcw.viewers.words import bytes_text
from tcw.workbench import own_command
from tcw.workbench.request import codes
from tcw.workbench.request.messages import write_json
from tcw.workbench.request.options import need_linux
from tcw.workbench.worker.findings import Findings
from tcw.workbench.worker.guarded import guardian_fault
from tcw.workbench.worker.guardian import CACHES_PREFIX

OLDEST_TORCH, NEWEST_TORCH = (2, 11), (2, 15)
TRITON_OF_TORCH = {(2, 11): "3.6", (2, 12): "3.7", (2, 13): "3.7", (2, 14): "3.8", (2, 15): "3.9"}
"""The Triton release that torch's own CUDA builds require, by torch release."""

GIB = 1 << 30
ENOUGH_DISK = GIB
"""Bytes. Enough for Inductor's caches of a large model and a trace of it."""
LEAST_DISK = 64 << 20


State = Literal["ok", "limited", "missing"]
"""`limited`: it works, but not everything is available."""
_Result = tuple[State, str, str]
"""The state, what was found, and what to do ("" if nothing needs to be done)."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check."""

    name: str
    state: State
    found: str
    needed: bool = False
    """`tcw explain model.py` does not work without it."""
    fix: str = ""
    """What to do; "" if nothing needs to be done."""


def checks(findings: Findings, guardian_fault: str) -> tuple[Check, ...]:
    """Every check of `tcw doctor`, in the order of its output. `guardian_fault`: what a trial of
    the guardian found; "" if it works."""
    needed = {
        "torch": _torch(findings),
        "C++ compiler": _compiler(findings),
        "hooks": _hooks(findings),
        "build folder": _build_folder(),
    }
    useful = {
        "triton": _triton(findings),
        "vector ISA": _vector(findings),
        "tcw engine": _engine(findings),
        "GPU": _gpu(findings),
        "dot": _dot(),
        "cache folder": _cache(),
        "guardian": _guardian(guardian_fault),
    }
    return tuple(
        Check(name=name, state=state, found=found, fix=fix, needed=name in needed)
        for name, (state, found, fix) in (needed | useful).items()
    )


def _release(version: str) -> tuple[int, int]:
    """Major and minor: `2.13.0+cpu` -> (2, 13)."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match.group(1)), int(match.group(2))) if match else (0, 0)


def _torch(findings: Findings) -> _Result:
    if not findings.torch:
        fix = "pip install 'torch-compile-workbench[torch]'"
        return "missing", findings.torch_fault, fix
    build = f"built for CUDA {findings.cuda_build}" if findings.cuda_build else "built for the CPU"
    found = f"{findings.torch}, {build}, Python {findings.python}"
    if OLDEST_TORCH <= _release(findings.torch) <= NEWEST_TORCH:
        return "ok", found, ""
    low, high = (".".join(map(str, each)) for each in (OLDEST_TORCH, NEWEST_TORCH))
    fix = f"tcw is tested on torch {low} to {high}; hooks that this version lacks are listed below"
    return "limited", found, fix


def _compiler(findings: Findings) -> _Result:
    if not findings.compiler:
        fix = "apt install g++ (or set CXX); until then: tcw explain --until codegen"
        return "missing", findings.compiler_fault or "none", fix
    if not findings.compiler_fault:
        return "ok", findings.compiler, ""
    missing = re.search(r"(Python|omp)\.h", findings.compiler_fault)
    package = {"Python": "python3-dev", "omp": "g++"}[missing.group(1)] if missing else ""
    fix = f"apt install {package}" if package else "set CXX to a compiler that builds C++ here"
    found = f"{findings.compiler} cannot build a kernel: {findings.compiler_fault}"
    return "missing", found, fix


def _hooks(findings: Findings) -> _Result:
    if not findings.hooks:
        return "missing", findings.hooks_fault or "not checked without torch", ""
    lacking = [hook for hook in findings.hooks if not hook.available]
    there = len(findings.hooks) - len(lacking)
    found = f"{there} of {len(findings.hooks)} in torch {findings.torch}"
    if not lacking:
        return "ok", found, ""
    fix = "what is listed below will be missing; " + _tried(lacking)
    return "limited" if there else "missing", found, fix


def _tried(hooks: list[HookStatus]) -> str:
    pairs = {pair for hook in hooks for pair in hook.tried_on}
    versions = sorted({pair.partition("/")[0] for pair in pairs}, key=_release)
    return (
        f"the hooks are tested on torch {', '.join(versions)}" if versions else "see CHANGELOG.md"
    )


def _triton(findings: Findings) -> _Result:
    if not findings.triton:
        fix = "pip install triton: it is needed to predict GPU code"
        return "missing", findings.triton_fault, fix
    belongs = TRITON_OF_TORCH.get(_release(findings.torch), "")
    if not belongs or findings.triton.startswith(f"{belongs}."):
        return "ok", findings.triton, ""
    fix = f"pip install 'triton=={belongs}.*': torch {findings.torch} requires that release"
    return "limited", findings.triton, fix


def _vector(findings: Findings) -> _Result:
    found = ", ".join(
        each
        for each in (findings.vector, findings.cpu, f"{findings.threads} threads")
        if each and findings.threads
    )
    if findings.vector and findings.vector != "DEFAULT":
        return "ok", found, ""
    fix = "C++ kernels are generated without vector instructions on this CPU"
    return "limited", found or "unknown without torch", fix


def _engine(findings: Findings) -> _Result:
    if findings.engine and not findings.engine_fault:
        return "ok", findings.engine, ""
    found = f"{findings.engine or 'not available'}: {findings.engine_fault}"
    fix = "with --engine tcw, graphs run on ATen or their kernels are called through Python"
    return "limited" if findings.engine else "missing", found, fix


def _gpu(findings: Findings) -> _Result:
    if findings.gpu:
        return "ok", findings.gpu, ""
    fix = "GPU code can still be predicted: tcw explain model.py --device cuda --arch sm_90"
    return "missing", "none that torch can use", fix


def _dot() -> _Result:
    path = shutil.which("dot")
    if path:
        return "ok", path, ""
    return "missing", "not on the PATH", "apt install graphviz; used only for SVG and PNG of graphs"


def _build_folder() -> _Result:
    """Where Inductor builds: TORCHINDUCTOR_CACHE_DIR, else the temporary folder."""
    folder = Path(os.environ.get("TORCHINDUCTOR_CACHE_DIR") or tempfile.gettempdir())
    there = next((each for each in (folder, *folder.parents) if each.exists()), Path("/"))
    free = shutil.disk_usage(there).free
    found = f"{folder}, {bytes_text(free)} free"
    if not os.access(there, os.W_OK):
        fix = "set TORCHINDUCTOR_CACHE_DIR to a folder that you can write to"
        return "missing", f"{folder} is not writable", fix
    if free >= ENOUGH_DISK:
        return "ok", found, ""
    fix = "free some space or set TORCHINDUCTOR_CACHE_DIR to a larger disk"
    return "limited" if free >= LEAST_DISK else "missing", found, fix


def _cache() -> _Result:
    path = cache_path()
    if not os.path.lexists(path):
        return "ok", f"{path}, created on first use", ""
    try:
        folder = cache_folder()
    except CacheRefused as refused:
        what, _, fix = str(refused).partition("; ")
        return "missing", what, fix
    held = sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file())
    return "ok", f"{folder}, private, {bytes_text(held)}", ""


def _guardian(fault: str) -> _Result:
    if not fault:
        return "ok", "removes what a killed recording leaves", ""
    fix = (
        f"processes, and folders {tempfile.gettempdir()}/{CACHES_PREFIX}*, may remain after a "
        "recording is killed: end and remove them yourself"
    )
    return "limited", fault, fix


SECONDS = 180
MARKS = {"ok": "✓", "limited": "✗", "missing": "✗"}


class DoctorReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints."""

    version: int = 1
    ok: bool
    """Everything that is needed was found."""
    checks: tuple[Check, ...]
    hooks: tuple[HookStatus, ...]
    """Every hook, including those that this torch supports."""


@click.command(name="doctor", help=__doc__)
@click.option("--json", "as_json", is_flag=True, help="Print the checks as one JSON object.")
def command(as_json: bool) -> int:
    need_linux()
    findings = ask_worker()
    found = checks(findings, guardian_fault())
    ok = not any(check.needed and check.state == "missing" for check in found)
    if as_json:
        write_json(DoctorReport(ok=ok, checks=found, hooks=findings.hooks))
    else:
        for line in text(found, findings.hooks):
            click.echo(fit_encoding(line, sys.stdout.encoding or "ascii"))
    return codes.OK if ok else codes.FINDING


def ask_worker() -> Findings:
    """What the worker finds. The worker imports torch; the front end never does. Never raises."""
    try:
        done = subprocess.run(
            own_command("--worker", "doctor"),
            capture_output=True,
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
        )
        return msgspec.json.decode(done.stdout.splitlines()[-1], type=Findings)
    except subprocess.TimeoutExpired:
        fault = f"importing torch took more than {SECONDS} seconds"
    except (OSError, IndexError, msgspec.MsgspecError) as error:
        fault = f"the worker did not respond: {error}"
        if isinstance(error, IndexError):
            said = done.stderr.decode(errors="replace").strip().splitlines() or ["nothing said"]
            fault = f"the worker exited with code {done.returncode}: {said[-1]}"
    return Findings(python=sys.version.split()[0], torch_fault=fault)


def text(found: tuple[Check, ...], hooks: tuple[HookStatus, ...]) -> list[str]:
    """The lines of the report. Text from the machine is escaped for the terminal."""
    width = max(len(check.name) for check in found)
    lines = []
    for check in found:
        mark = _coloured(MARKS[check.state], check)
        optional = "" if check.needed or check.state == "ok" else " (optional)"
        lines.append(f"{mark} {check.name:{width}}  {plain(check.found)}{optional}")
        if check.fix:
            lines.append(f"  {'':{width}}  → {plain(check.fix)}")
        if check.name == "hooks":
            lines += [
                f"  {'':{width}}  {_coloured('✗', check)} {hook.name}: {plain(hook.reason)};"
                f" lost: {plain(hook.offers)}"
                for hook in hooks
                if not hook.available
            ]
    return lines


def _coloured(mark: str, check: Check) -> str:
    if os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        return mark
    if check.state == "ok":
        return click.style(mark, fg="green")
    return click.style(mark, fg="red" if check.needed else "yellow")
