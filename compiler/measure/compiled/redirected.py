"""The call of a compiled graph, which a measurement can temporarily take over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tcw.compiler.measure.compiled.shadows import copied

Boxed = Callable[[list[Any]], Any]
"""Takes its arguments in a list, which it empties."""


class Redirected:
    """Receives AOTAutograd's calls; the overhead is one attribute lookup per call."""

    def __init__(self, generated: Boxed, keep_arguments: bool = False) -> None:
        self.generated = generated
        """The graph as the engine compiled it."""
        self.call = self._first_call if keep_arguments else generated
        """The current target of a call of the graph."""
        self.arguments: list[Any] | None = None
        """Copies of the first call's arguments, if they are kept."""

    def _first_call(self, arguments: list[Any]) -> Any:
        self.arguments = copied(arguments)
        self.call = self.generated
        return self.generated(arguments)

    def run(self, arguments: list[Any]) -> Any:
        return self.generated(arguments)

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
