"""What a compiler may decide otherwise: one type, for every stage of every engine.

A stage that has a choice makes a `Decision` and asks the gate (`tcw.compiler.control.gate`),
which returns one of the choices. The code generator, which does not know the gate, is given a
function that takes a `Decision` and returns the choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tcw.compiler.trace.records import FusionPair, LoopLine

ENGINE = "tcw"
"""The engine whose decisions these are, unless they say otherwise."""
INDUCTOR = "inductor"
ENGINES = (ENGINE, INDUCTOR)

FUSE = "fuse"
APART = "apart"
"""The choices of a decision of kind `fuse`: one loop nest, or never in one."""

VETO = "veto"
"""Rule of fusions that an override prevented."""

SAVE = "save"
RECOMPUTE = "recompute"
"""The choices of a decision of kind `save`: keep a value for the backward, or recompute it."""

NOTHING_SHARED = "no-shared-data"
"""Inductor's rule for a pair whose nodes touch no common buffer."""

_ALWAYS = (SAVE, "inline", "reuse")
_UNUSUAL = {"lowering": "loops"}
"""Kind -> the choice that is nearly always made: only other choices matter."""

MOST_BETWEEN = 4
"""How many of the nodes between two are named; a decision holds one more, if there is one."""


def decision_id(graph: str, kind: str, *names: str, engine: str = ENGINE) -> str:
    """`tcw/0/0/forward/fuse/exp+sum_1`: `graph` is the graph's id, `names` are node names."""
    return f"{engine}/{graph}/{kind}/{'+'.join(names)}"


def split_id(id: str) -> tuple[str, str, tuple[str, ...]]:
    """`tcw/0/0/forward/fuse/exp+sum_1` -> (`0/0/forward`, `fuse`, (`exp`, `sum_1`))."""
    rest, _, names = id.partition("/")[2].rpartition("/")
    graph, _, kind = rest.rpartition("/")
    return graph, kind, tuple(names.split("+"))


def engine_of(id: str) -> str:
    """`tcw/0/0/forward/fuse/exp+sum_1` -> `tcw`."""
    return id.partition("/")[0]


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


@dataclass(frozen=True, slots=True)
class Ruling:
    """A decision with its answer."""

    decision: Decision
    choice: str
    overridden: bool = False
    """An override asked for this choice, and it is not the default."""
    refused: str = ""
    """Why the override could not be followed; "" if it was, or if there is none."""
    wanted: str = ""
    """The choice that a refused override asked for."""
    by: str = ""
    """Id of the override that decided it, if it is about another decision: a veto."""
    pair: Callable[[], FusionPair] | None = field(default=None, compare=False)
    """Describes the test of a pair, for its record; valid only until the answer is kept."""


def refusal(decision: Decision, wanted: str) -> str:
    """Why this choice cannot be carried out; "" if it can."""
    if wanted not in decision.choices:
        return f"{wanted!r} is not a choice: use {' or '.join(decision.choices)}"
    if wanted in decision.forbidden:
        rule, reason = decision.forbidden[wanted]
        return f"rule {rule}: {reason}" if reason else f"rule {rule}"
    return ""


def matters(decision: Decision) -> bool:
    """Whether a decision shapes the compiled code as a whole and could well have gone otherwise.

    True for fusions (except pairs that have nothing to gain), for inlining, saving and reuse, and
    for operations that get no loops. False for library calls and for choices within a loop nest
    (lanes, unrolling, threads, …), of which each nest has about ten.
    """
    if decision.kind == FUSE:
        return decision.default != APART or decision.rule != NOTHING_SHARED
    if decision.kind in _UNUSUAL:
        return decision.default != _UNUSUAL[decision.kind]
    return decision.kind in _ALWAYS
