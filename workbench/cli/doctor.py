"""Check what tcw needs: torch, its hooks, the compilers, the GPU, disk space, leftovers.

Exits with 1 if anything that `tcw explain model.py` needs is missing.
"""

from __future__ import annotations

import os
import subprocess
import sys

import click
import msgspec

from tcw.compiler.trace.records import HookStatus
from tcw.viewers.plain import fit_encoding, plain
from tcw.workbench import DOOR
from tcw.workbench.cli import codes
from tcw.workbench.cli.checks import Check, checks
from tcw.workbench.cli.options import need_linux
from tcw.workbench.cli.output import write_json
from tcw.workbench.worker.findings import Findings
from tcw.workbench.worker.guarded import guardian_fault

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
            [sys.executable, "-P", DOOR, "--worker", "doctor"],
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
