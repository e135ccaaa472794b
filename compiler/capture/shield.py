"""The one place at which an error of our own recording code ends: it never reaches torch."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from compiler.control.recorder import Recorder
from compiler.trace.records import Warned

P = ParamSpec("P")
R = TypeVar("R")


class Shield:
    """Runs recording code of one hook; its first error becomes a `Warned` record."""

    def __init__(self, recorder: Recorder, recorded: str) -> None:
        self._recorder = recorder
        self._recorded = recorded
        self._warned = False

    def __call__(self, record: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | None:
        """The result of `record`, or None where it failed."""
        try:
            return record(*args, **kwargs)
        except Exception as error:
            self._warn(error)
            return None

    def _warn(self, error: Exception) -> None:
        if self._warned:
            return
        self._warned = True
        place = ""
        for frame in traceback.extract_tb(error.__traceback__)[-1:]:
            place = f" ({frame.filename.rpartition('/')[2]}:{frame.lineno})"
        try:
            message = str(error)[:200]
        except Exception:
            message = ""
        self._recorder.emit(
            Warned(
                message=f"{self._recorded} not recorded whole: "
                f"{type(error).__name__}: {message}{place}"
            )
        )
