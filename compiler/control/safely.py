"""The one place where an error in our own recording code ends: said in the trace, never raised.

A hook runs inside the user's compile. What it does there goes through a `Safely`, so that a bug of
ours costs a record and not the compile.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from compiler.control.recorder import Recorder
from compiler.trace.records import Warned

P = ParamSpec("P")
R = TypeVar("R")


class Safely:
    """Calls recording code of one hook; an exception becomes a `Warned`, once per kind."""

    def __init__(self, recorder: Recorder, hook: str) -> None:
        self.recorder = recorder
        self.hook = hook
        self._said: set[str] = set()

    def __call__(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | None:
        """The function's result; None where it raised, or while the recorder is quiet."""
        if self.recorder.quiet:
            return None
        try:
            return function(*args, **kwargs)
        except Exception as error:
            self._say(error)
            return None

    def _say(self, error: Exception) -> None:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        message = (
            f"the hook `{self.hook}` lost a record: {type(error).__name__} at "
            f"{frame.filename.rpartition('/')[2]}:{frame.lineno}: {str(error)[:200]}"
        )
        if message in self._said:
            return
        self._said.add(message)
        try:
            self.recorder.emit(Warned(message=message))
        except Exception:
            return  # the trace cannot be written any more: there is no place left to say it
