"""The call of a compiled graph, which a measurement can take over for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Boxed = Callable[[list[Any]], Any]
"""Takes its arguments in a list, which it empties."""


class Redirected:
    """Stands in AOTAutograd's place: one look-up of an attribute a call."""

    def __init__(self, call: Boxed) -> None:
        self.call = call
        """What a call of the graph ends in now."""

    def boxed(self) -> Boxed:
        """What AOTAutograd gets."""

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
