"""What a compiler may decide otherwise: one type, for every stage of every engine.

A stage that has a choice makes a `Decision` and asks the gate (`tcw.compiler.control.decisions`),
which returns one of the choices. The code generator, which does not know the gate, is given a
function that takes a `Decision` and returns the choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tcw.compiler.trace.records import LoopLine

ENGINE = "tcw"
"""The engine whose decisions these are, unless they say otherwise."""
MOST_BETWEEN = 4
"""How many of the nodes between two are named; a decision holds one more, if there is one."""


def decision_id(graph: str, kind: str, *names: str, engine: str = ENGINE) -> str:
    """`tcw/0/0/forward/fuse/exp+sum_1`: `graph` is the graph's id, `names` are node names."""
    return f"{engine}/{graph}/{kind}/{'+'.join(names)}"


@dataclass(frozen=True, slots=True)
class Detail:
    """Details that a person needs to answer; computed only if a person is asked."""

    first: tuple[str, ...] = ()
    """Scheduler nodes of the first side, if the decision concerns a pair: `op9`, `op10`."""
    second: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    """The nodes of the lowered (or joint) graph that the decision concerns."""
    if_fused: str = ""
    """The loop nest of both sides fused, as the nest printer of tcw writes it."""
    nest: tuple[LoopLine, ...] = ()
    """The same of Inductor, from the loops of its nodes."""
    sketched: bool = False
    """The nest is assembled from both sides: the engine creates it only later, or a rule forbids
    it."""
    means: str = ""
    """The meaning of keeping apart here: `two loop nests, which may share one C++ function`."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One place where a stage has a choice."""

    graph: str
    """Id of the graph: `0/0/forward`."""
    kind: str
    """The stage's name for the kind of decision: `fuse`, `inline`, `reuse`, `save`, …"""
    names: tuple[str, ...]
    """The nodes or buffers that the decision concerns, which form its id."""
    default: str
    choices: tuple[str, ...]
    """All choices that the stage can carry out, including the default."""
    rule: str = ""
    """Short stable name of the rule behind the default: `domain`, `cycle`, `saves-bytes`."""
    reason: str = ""
    """One sentence, with the numbers of this case."""
    numbers: Mapping[str, int | float] = field(default_factory=dict)
    """The quantities weighed: `{"saved_bytes": 2097152, "working_set": 8192}`."""
    forbidden: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Illegal choice -> (rule, reason). Never taken, whoever asks."""
    detail: Callable[[], Detail] | None = field(default=None, compare=False)
    """Needed only for a gate that `asks`, and valid only until the gate has answered."""
    between: tuple[str, ...] = ()
    """The scheduler nodes that stand between the two sides of a fusion and keep them apart: `op7`;
    the first `MOST_BETWEEN` + 1, in the order in which they run."""
    engine: str = ENGINE
    """The engine that decides: `tcw` or `inductor`."""

    @property
    def id(self) -> str:
        return decision_id(self.graph, self.kind, *self.names, engine=self.engine)

    def legal(self) -> tuple[str, ...]:
        """The choices that no rule forbids."""
        return tuple(choice for choice in self.choices if choice not in self.forbidden)
