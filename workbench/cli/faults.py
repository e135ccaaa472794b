"""A fault of tcw itself: one line, and where its details are. Never a traceback on the screen."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import traceback

from viewers.plain import fit_encoding, plain
from workbench.cli import codes


def report_fault(error: BaseException, arguments: list[str]) -> int:
    """Say what went wrong and keep the details; `codes.INTERNAL`."""
    where = _keep("".join(traceback.format_exception(error)), arguments)
    first = (str(error).splitlines() or [""])[0]
    message = f"tcw: internal error: {type(error).__name__}: {first}"
    with contextlib.suppress(OSError, ValueError):
        line = plain(message[:400] + (f"; details: {where}" if where else ""))
        print(fit_encoding(line, sys.stderr.encoding or "ascii"), file=sys.stderr)
    return codes.INTERNAL


def cache_folder() -> str:
    """Our own folder for what is kept between runs: 0700 and ours, else OSError."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(base, "tcw")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    status = os.lstat(folder)
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(f"{folder} is not ours alone")
    return folder


def _keep(details: str, arguments: list[str]) -> str:
    """Write the details to a file of their own; its name, or "" where none can be written."""
    try:
        number, name = tempfile.mkstemp(prefix="error-", suffix=".txt", dir=cache_folder())
        with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(f"tcw {' '.join(arguments)}\nPython {sys.version}\n\n{details}")
    except OSError:
        return ""
    return name
