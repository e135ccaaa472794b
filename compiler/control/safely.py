"""Where errors in our own recording code end: reported in the trace, never raised.

A hook runs inside the user's compile. Its work goes through a `Safely`, so that one of our bugs
costs a record and not the compile.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from tcw.compiler.control.recorder import Recorder

P = ParamSpec("P")
R = TypeVar("R")


class Safely:
    """Guards recording code: an exception becomes a `Warned`, once per kind and place.

    `with Safely(recorder, "a graph break"):` guards a block. A hook that is called often creates
    one and calls functions through it. It keeps no state between uses, so nesting and threads are
    safe.
    """

    __slots__ = ("doing", "even_quiet", "recorder")

    def __init__(self, recorder: Recorder, doing: str, even_quiet: bool = False) -> None:
        self.recorder = recorder
        self.doing = doing
        self.even_quiet = even_quiet
        """Also run while the recorder is quiet: the code decides something besides recording."""

    def __call__(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | None:
        """The function's result; None if it raised, or while the recorder is quiet."""
        if self.recorder.quiet and not self.even_quiet:
            return None
        try:
            return function(*args, **kwargs)
        except Exception as error:
            self.lost(error)
            return None

    def guarded(self, function: Callable[..., Any], *first: object) -> Callable[..., Any]:
        """The function with its first arguments, each call of it through this."""
        return functools.partial(self.__call__, function, *first)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self.lost(error)
        return True

    def lost(self, error: Exception) -> None:
        """Report what was lost, and at which line of ours."""
        kind, place = type(error).__name__, _place(error)
        try:
            self.recorder.warn_once(
                f"lost a record of {self.doing}: {kind} at {place}: {str(error)[:200]}",
                key=(self.doing, kind, place),
            )
        except Exception:
            return  # the trace cannot be written, so there is nowhere to report it


def _place(error: Exception) -> str:
    """`fusion.py:71`, where the error was raised."""
    frame = error.__traceback__
    if frame is None:
        return "?"
    while frame.tb_next is not None:
        frame = frame.tb_next
    return f"{frame.tb_frame.f_code.co_filename.rpartition('/')[2]}:{frame.tb_lineno}"
