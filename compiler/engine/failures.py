"""Handling of errors in our compiler: they are reported once, and the graph runs on ATen instead.

A user's model must not fail because our compiler does. `TCW_STRICT=1` raises instead; tests set it.
In a recording it is a `Warned`, elsewhere a Python warning.
"""

from __future__ import annotations

import os
import warnings

from torch import fx

from tcw.compiler.engine.recording import current
from tcw.compiler.graphs.nodes import user_line

_said: set[tuple[str, str]] = set()


def strict() -> bool:
    """Whether `TCW_STRICT` is set: errors are raised, and results verified between the stages."""
    return os.environ.get("TCW_STRICT", "") not in ("", "0")


def report_failure(error: Exception, graph: str) -> None:
    """Report that a graph runs on ATen, and why. In strict mode, re-raise `error`."""
    if strict():
        raise error
    place = _place(error)
    message = (
        f"tcw could not compile graph {graph}, which runs on ATen: "
        f"{type(error).__name__} at {place}: {str(error)[:300]}"
    )
    _say(message, (type(error).__name__, place), " (TCW_STRICT=1 raises it)")


def report_left_to_aten(reason: str, graph: str, node: fx.Node | None = None) -> None:
    """Report that a graph cannot be compiled and runs on ATen; `node` is at fault."""
    line = user_line(node)
    place = f" ({os.path.basename(line.file)}:{line.line})" if line is not None else ""
    why = f"{reason}{place}"
    _say(f"tcw cannot compile graph {graph}, which runs on ATen: {why}", ("left", why))


def report_no_cache(reason: str) -> None:
    """Warn that nothing is cached between processes, and why."""
    _say(f"tcw compiles without a cache: {reason}", ("cache", reason))


def _say(message: str, key: tuple[str, str], hint: str = "") -> None:
    """Warn once per key."""
    recorder = current().recorder
    if recorder is not None:
        recorder.warn_once(message)
    elif key not in _said:
        _said.add(key)
        warnings.warn(f"{message}{hint}", RuntimeWarning, stacklevel=3)


def _place(error: Exception) -> str:
    """`lowering/views.py:71`, the innermost of our frames in the traceback."""
    frame, place = error.__traceback__, "?"
    while frame is not None:
        _, slash, file = frame.tb_frame.f_code.co_filename.rpartition("/compiler/")
        if slash:
            place = f"{file}:{frame.tb_lineno}"
        frame = frame.tb_next
    return place
