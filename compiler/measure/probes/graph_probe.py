"""The interface of a probe of one compiled graph, for either engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from tcw.compiler.measure.probes.clock import Clock


@dataclass(frozen=True, slots=True)
class GraphStep:
    """One call that a graph's code makes, known before it runs."""

    index: int
    """From 0, in the order of the code; a step that the code repeats is one step."""
    kind: Literal["kernel", "aten"]
    name: str
    """The generated function, or the call as its `Kernel` record names it."""
    text: str = ""
    """The line of the wrapper that makes the call."""
    within: str = ""
    """The subgraph's function that makes the call (`true_graph_0`); "" for the graph's own code."""


See = Callable[[GraphStep, Mapping[str, Any]], None]
"""Called after a step with the current tensors of the graph's code by name (`buf3`, `primals_1`).
It must not keep them without copying."""


class GraphProbe(Protocol):
    """A compiled graph of the running model that can be inspected in place.

    Outside `timing` and `observing`, it runs unchanged.
    """

    graph: str
    """`0/0/forward`."""

    unmeasured: str
    """Why its steps, or its kernels, cannot be timed one by one; known once `timing` was entered.
    "" if all can be."""

    @property
    def steps(self) -> Sequence[GraphStep]: ...

    def timing(self, clock: Clock, base: int) -> AbstractContextManager[None]:
        """Inside, each run of the graph starts and stops the clock: key `base` around the whole
        graph, `base + 1 + index` around each step."""
        ...

    def observing(self, see: See, before: See | None = None) -> AbstractContextManager[None]:
        """Inside, `before` is called before each step of each run, and `see` after it."""
        ...
