"""What a probe of one compiled graph offers, whichever engine compiled it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from compiler.measure.probes.clock import Clock


@dataclass(frozen=True, slots=True)
class GraphStep:
    """One call that the code of a graph makes, known before it runs."""

    index: int
    """From 0, in the order of the code; a step that the code repeats is one step."""
    kind: Literal["kernel", "aten"]
    name: str
    """The generated function, or the call as its `Kernel` record names it."""
    occurrence: int = 0
    """How many steps before it have this name, of those `within` the same function."""
    text: str = ""
    """The line of the wrapper that makes the call."""
    within: str = ""
    """The function of a subgraph that makes it (`true_graph_0`); "" of the graph's own code."""


See = Callable[[GraphStep, Mapping[str, Any]], None]
"""Called after a step with the tensors of the graph's code by name (`buf3`, `primals_1`), as they
are at this moment; it must not keep them without copying."""


class GraphProbe(Protocol):
    """A compiled graph of the running model, that can be looked into in place.

    Outside of `timing` and `observing` it runs as it always does.
    """

    graph: str
    """`0/0/forward`."""

    unmeasured: str
    """Why its steps cannot be timed one by one, or its kernels not; known once `timing` was
    entered. "" where all can be."""

    @property
    def steps(self) -> Sequence[GraphStep]: ...

    def timing(self, clock: Clock, base: int) -> AbstractContextManager[None]:
        """While entered, each run of the graph starts and stops the clock: key `base` around the
        whole graph, `base + 1 + index` around each step."""
        ...

    def observing(self, see: See, before: See | None = None) -> AbstractContextManager[None]:
        """While entered, `see` is called after each step of each run, `before` before it."""
        ...
