"""Errors in tcw itself: one line that says where the details are, never a traceback."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback

from tcw.compiler.cache_folder import CacheRefused, cache_folder
from tcw.compiler.protocol.error_words import error_line
from tcw.workbench.request import codes
from tcw.workbench.request.messages import say


def report_fault(error: BaseException, arguments: list[str]) -> int:
    """Report the error, save its details and return `codes.INTERNAL`."""
    where = _keep("".join(traceback.format_exception(error)), arguments)
    say(f"internal error: {error_line(error, 400)}; {where}")
    return codes.INTERNAL


def _keep(details: str, arguments: list[str]) -> str:
    """Write the details to a new file. Returns where they are, or why they were not saved."""
    try:
        number, name = tempfile.mkstemp(prefix="error-", suffix=".txt", dir=cache_folder())
        with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(f"tcw {' '.join(arguments)}\nPython {sys.version}\n\n{details}")
    except CacheRefused as refused:
        return f"details not saved: {refused}"
    except OSError as failed:
        return f"details not saved: {failed.strerror or failed}"
    return f"details: {name}"
