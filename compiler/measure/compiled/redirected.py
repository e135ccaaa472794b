"""The call of a compiled graph, which a measurement can temporarily take over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Boxed = Callable[[list[Any]], Any]
"""Takes its arguments in a list, which it empties."""


class Redirected:
    """Receives AOTAutograd's calls; the overhead is one attribute lookup per call."""

    def __init__(self, call: Boxed) -> None:
        self.call = call
        """The current target of a call of the graph."""

    def boxed(self) -> Boxed:
        """The callable for AOTAutograd."""

        def call(arguments: list[Any]) -> Any:
            return self.call(arguments)

        call._boxed_call = True  # type: ignore[attr-defined]
        return call

    @contextmanager
    def replaced(self, run: Boxed) -> Iterator[None]:
        """Inside the block, AOTAutograd's calls of the graph go to `run`."""
        before = self.call
        self.call = run
        try:
            yield
        finally:
            self.call = before
