"""The first records of a recording, and of a run."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time

from tcw.compiler.protocol.commands import Rerun
from tcw.compiler.trace.records import Run, Settings, Start
from tcw.compiler.trace.records.base import SCHEMA_VERSION


def start_of(settings: Settings, started: float) -> Start:
    """`started`: when the recording began, on the monotonic clock."""
    return Start(
        schema_version=SCHEMA_VERSION,
        tool_version=_tool_version(),
        settings=settings,
        python=platform.python_version(),
        platform=platform.platform(),
        pid=os.getpid(),
        time=time.time() - (time.monotonic() - started),
        rank=_number("RANK"),
        ranks=_number("WORLD_SIZE") or 0,
    )


def run_record(number: int, settings: Settings, rerun: Rerun | None) -> Run:
    """The record with which a run of a driven recording begins."""
    if rerun is None:
        return Run(number=number, settings=settings)
    return Run(
        number=number, settings=settings, because=rerun.because, compared_with=rerun.compare_with
    )


def _number(name: str) -> int | None:
    """A variable that torchrun and other launchers set."""
    value = os.environ.get(name, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 9 else None


def _tool_version() -> str:
    """The installed version of tcw; "0+unknown" in a checkout that is not installed."""
    try:
        return importlib.metadata.version("torch-compile-workbench")
    except importlib.metadata.PackageNotFoundError:
        return "0+unknown"
