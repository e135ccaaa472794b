"""A fault of tcw itself: one line, and where its details are. Never a traceback on the screen."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback

from compiler.cache_folder import CacheRefused, cache_folder
from workbench.cli import codes
from workbench.cli.output import say


def report_fault(error: BaseException, arguments: list[str]) -> int:
    """Say what went wrong and keep the details; `codes.INTERNAL`."""
    where = _keep("".join(traceback.format_exception(error)), arguments)
    first = (str(error).splitlines() or [""])[0]
    say(f"internal error: {type(error).__name__}: {first[:400]}; {where}")
    return codes.INTERNAL


def _keep(details: str, arguments: list[str]) -> str:
    """Write the details to a file of their own; where they are, or why they are not kept."""
    try:
        number, name = tempfile.mkstemp(prefix="error-", suffix=".txt", dir=cache_folder())
        with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(f"tcw {' '.join(arguments)}\nPython {sys.version}\n\n{details}")
    except CacheRefused as refused:
        return f"its details are not kept: {refused}"
    except OSError as failed:
        return f"its details are not kept: {failed.strerror or failed}"
    return f"details: {name}"
