"""The listeners of the engine: the recorder of a recording, and the gate of all decisions.

Without a recording there is still a gate, without overrides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tcw.compiler.control.gate import Gate
from tcw.compiler.control.recorder import Recorder


@dataclass
class Listening:
    """What the current compiles report to."""

    recorder: Recorder | None = None
    gate: Gate = field(default_factory=Gate)


_stack: list[Listening] = [Listening()]


def current() -> Listening:
    """The listeners of the active recording, or a gate without overrides if there is none."""
    return _stack[-1]


@contextmanager
def listening(recorder: Recorder | None, gate: Gate) -> Iterator[None]:
    """Inside the block, compiles on all threads report to `recorder` and ask `gate`."""
    _stack.append(Listening(recorder, gate))
    try:
        yield
    finally:
        _stack.pop()


Watch = Callable[[str, Any, Any], Callable[..., Any]]
"""Called with a graph's id, its `Compiled` (tcw.compiler.runtime.compiled) or, if it was left to
ATen, its `UncompiledGraph` (tcw.compiler.engine.uncompiled), and the lowered graph's module.
Returns the callable for AOTAutograd."""

_watches: list[Watch] = []


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Inside the block, every graph that the engine compiles passes through `watch`."""
    _watches.append(watch)
    try:
        yield
    finally:
        _watches.remove(watch)


def watched(graph: str, compiled: Any, module: Any) -> Callable[..., Any]:
    """The callable of a compiled graph, passed through the latest watch."""
    if not _watches:
        return compiled.outermost  # type: ignore[no-any-return]
    return _watches[-1](graph, compiled, module)
