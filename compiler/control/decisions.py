"""The decision gate: every choice from the partition to the memory plan, with its reason.

A stage describes what it could do as a `Decision` and asks the `Gate`, which answers with one of
its choices: the default, or what the user's override file says. A choice that a rule forbids is
never taken: the override is refused, with the rule. Ids are made of the names of nodes, not of
counters, so that an override survives changes elsewhere in the model.

    "tcw/0/0/forward/fuse/exp+sum_1" = "apart"      # never in one loop nest, by any road
    "tcw/0/0/forward/reuse/buf3" = "own"
    "tcw/0/0/joint/save/relu" = "recompute"
    "inductor/0/0/forward/fuse/amax+exp" = "fuse"
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

ENGINE = "tcw"
INDUCTOR = "inductor"
ENGINES = (ENGINE, INDUCTOR)

FUSE = "fuse"
APART = "apart"
"""The choices of a decision of kind `fuse`: one loop nest, or never one."""

SAVE = "save"
RECOMPUTE = "recompute"
"""The choices of a decision of kind `save`: keep a value for the backward, or compute it again."""

Number = int | float


class OverrideError(Exception):
    """The override file cannot be used; the message says why and where."""


def decision_id(graph: str, kind: str, *names: str, engine: str = ENGINE) -> str:
    """`tcw/0/0/forward/fuse/exp+sum_1`: `graph` is the graph's id, `names` those of nodes."""
    return f"{engine}/{graph}/{kind}/{'+'.join(names)}"


@dataclass(frozen=True, slots=True)
class Detail:
    """What a person wants to see before answering; worked out only where one is asked."""

    first: tuple[str, ...] = ()
    """Scheduler nodes of the first side, where the decision is about two: `op9`, `op10`."""
    second: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    """Nodes of the lowered (or joint) graph that it is about."""
    if_fused: str = ""
    """The loop nest that would become of both sides: of Inductor in the notation of
    `SchedulerNode.loops`, of tcw as the nest printer writes it."""
    sketched: bool = False
    """`if_fused` is put together from both sides: the engine makes the nest only later."""
    means: str = ""
    """What keeping apart means here: `two loop nests, which may share one C++ function`."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One place where a stage has a choice."""

    graph: str
    """Id of the graph: `0/0/forward`."""
    kind: str
    """`fuse`, `inline`, `reuse`, `save`, …: the stage's word for what is decided."""
    names: tuple[str, ...]
    """The nodes or buffers that it is about, which name it."""
    default: str
    choices: tuple[str, ...]
    """All answers that the stage can carry out, the default among them."""
    rule: str = ""
    """Short stable name of the rule behind the default: `domain`, `cycle`, `saves-bytes`."""
    reason: str = ""
    """One sentence, with the numbers of this case."""
    numbers: Mapping[str, Number] = field(default_factory=dict)
    """What was weighed: `{"saved_bytes": 2097152, "working_set": 8192}`."""
    forbidden: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """choice -> (rule, reason) that makes it illegal. It is not taken, whoever asks."""
    detail: Callable[[], Detail] | None = field(default=None, compare=False)
    """Given only to a gate that `asks`, and good only until the gate has answered."""
    engine: str = ENGINE
    """Whose decision it is: `tcw` or `inductor`."""

    @property
    def id(self) -> str:
        return decision_id(self.graph, self.kind, *self.names, engine=self.engine)

    def legal(self) -> tuple[str, ...]:
        """The choices that no rule forbids."""
        return tuple(choice for choice in self.choices if choice not in self.forbidden)


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision with its answer."""

    decision: Decision
    choice: str
    overridden: bool = False
    """An override asked for this choice, and it is not the default."""
    refused: str = ""
    """Why the override could not be followed; "" where it was, or where there was none."""
    wanted: str = ""
    """What a refused override asked for."""


class Gate:
    """Answers decisions, remembers the answers, and knows which overrides were met.

    One gate serves all stages of all graphs of a recording. `watch` is given each answer as it
    falls.
    """

    def __init__(
        self,
        overrides: Mapping[str, str] | None = None,
        watch: Callable[[Decided], None] | None = None,
        ask: Callable[[Decision], str] | None = None,
    ) -> None:
        self.overrides: dict[str, str] = {}
        self.decided: list[Decided] = []
        self._watch = watch
        self._ask = ask
        """A person who may choose otherwise: answers a choice, or "" for the default."""
        self._met: set[str] = set()
        self._known: dict[str, None] = {}
        self._offered: dict[str, set[str]] = {}
        """Decision -> what a person could have chosen in the place of the default, and did not."""
        self._vetoes: dict[str, list[tuple[str, str, str]]] = {}
        for id, choice in (overrides or {}).items():
            self.overrule(id, choice)

    def overrule(self, id: str, choice: str) -> None:
        """From here on this decision is answered so. A veto keeps its two nodes apart in all
        decisions that follow."""
        self.overrides[id] = choice
        graph, kind, names = split_id(id)
        if engine_of(id) == ENGINE and kind == FUSE and choice == APART and len(names) == 2:
            self._vetoes.setdefault(graph, []).append((names[0], names[1], id))

    @property
    def asks(self) -> bool:
        """Whether a person may be asked: only then is `Decision.detail` worth giving."""
        return self._ask is not None

    @property
    def silent(self) -> bool:
        """Whether nobody asks, overrides or watches: every answer is the default."""
        return self._ask is None and self._watch is None and not self.overrides

    def decide(self, decision: Decision) -> str:
        """The choice to carry out."""
        return self.keep(self.answer(decision))

    def answer(self, decision: Decision, ask: bool = True) -> Decided:
        """The choice, not kept yet: for a stage that meets a decision many times and keeps how it
        ended. `ask=False` where a person was asked the same before."""
        if ask and self._ask is not None and decision.id not in self.overrides:
            self._put(decision)
        wanted = self.overrides.get(decision.id)
        if wanted is None:
            return Decided(decision, decision.default)
        self._met.add(decision.id)
        refused = refusal(decision, wanted)
        if refused:
            return Decided(decision, decision.default, refused=refused, wanted=wanted)
        return Decided(decision, wanted, overridden=wanted != decision.default)

    def known(self, id: str) -> None:
        """There is such a decision, though nothing is kept of it: a misspelt override is told."""
        self._known[id] = None

    def _put(self, decision: Decision) -> None:
        """Ask a person, whose choice holds from here on as if a file had said so from the start.

        So a decision that comes again (a pair that is weighed in a later round) is put again only
        for choices that were not open before: a file's would have been taken then.
        """
        assert self._ask is not None
        offered = self._offered.setdefault(decision.id, set())
        others = {choice for choice in decision.legal() if choice != decision.default}
        if offered and others <= offered:
            return
        chosen = self._ask(decision)
        offered |= others
        veto = decision.kind == FUSE and chosen == APART  # by any road, whatever the default is
        if chosen and (veto or chosen != decision.default) and not refusal(decision, chosen):
            self.overrule(decision.id, chosen)

    def fuse(self, decision: Decision, first: Iterable[str], second: Iterable[str]) -> bool:
        """Whether two groups of nodes, all of them named, become one loop nest.

        Answers a decision with the choices `fuse` and `apart`. A veto on any two nodes keeps the
        groups that hold them apart, even where the veto's own pair is never considered.
        """
        return self.unless_vetoed(decision, APART, first, second) == FUSE

    def unless_vetoed(
        self, decision: Decision, apart: str, first: Iterable[str], second: Iterable[str]
    ) -> str:
        """The choice to carry out: `apart`, which keeps these nodes out of one loop nest, where a
        veto says so."""
        veto = self.veto(decision.graph, first, second)
        if not veto or veto == decision.id:
            return self.decide(decision)
        wanted = self.overrides.get(decision.id, "")
        refused = f"{veto} keeps two of their nodes apart" if wanted not in ("", apart) else ""
        return self.keep(
            Decided(decision, apart, decision.default != apart, refused, wanted if refused else "")
        )

    def joined(self, decision: Decision) -> None:
        """Two nodes that were refused by themselves stand in one nest, through others.

        The last answer of an id is what was carried out.
        """
        self.keep(Decided(decision, FUSE))

    def veto(self, graph: str, first: Iterable[str], second: Iterable[str]) -> str:
        """Id of the override that forbids these nodes one loop nest; "" where none does.

        Whatever puts nodes into one nest has to ask: fusion, and also inlining of a producer.
        """
        vetoes = self._vetoes.get(graph)
        if not vetoes:
            return ""
        one, other = set(first), set(second)
        for left, right, id in vetoes:
            if (left in one and right in other) or (right in one and left in other):
                self._met.add(id)
                return id
        return ""

    def chosen(self, graph: str, kind: str, engine: str = ENGINE) -> dict[str, str]:
        """Overrides of one kind in one graph, by name: for a stage that asks before it looks."""
        found = {}
        for id, choice in self.overrides.items():
            if engine_of(id) == engine and split_id(id)[:2] == (graph, kind):
                found["+".join(split_id(id)[2])] = choice
        return found

    def text(self, graph: str) -> str:
        """The overrides of one graph, a line each: part of what its code depends on."""
        mine = {
            id: choice
            for id, choice in self.overrides.items()
            if engine_of(id) == ENGINE and split_id(id)[0] == graph
        }
        return "\n".join(f"{id} = {choice}" for id, choice in sorted(mine.items()))

    def refused(self) -> list[Decided]:
        """Overrides that a rule forbids, each once: those whose last answer was a refusal."""
        last = {one.decision.id: one for one in self.decided}
        return [one for one in last.values() if one.refused]

    def unknown(self) -> Iterator[tuple[str, str]]:
        """Overrides that met no decision, with the id that comes closest, or ""."""
        ids = list(dict.fromkeys([*(one.decision.id for one in self.decided), *self._known]))
        for id in self.overrides:
            if id not in self._met:
                same = [one for one in ids if engine_of(one) == engine_of(id)]
                yield id, next(iter(get_close_matches(id, same, n=1, cutoff=0.75)), "")

    def keep(self, answer: Decided) -> str:
        """How a decision ended; answers the choice."""
        if answer.decision.id in self.overrides:
            self._met.add(answer.decision.id)
        if answer.decision.detail is not None:  # it holds on to the stage's own products
            answer = replace(answer, decision=replace(answer.decision, detail=None))
        self.decided.append(answer)
        if self._watch is not None:
            self._watch(answer)
        return answer.choice


def split_id(id: str) -> tuple[str, str, tuple[str, ...]]:
    """`tcw/0/0/forward/fuse/exp+sum_1` -> (`0/0/forward`, `fuse`, (`exp`, `sum_1`))."""
    rest, _, names = id.partition("/")[2].rpartition("/")
    graph, _, kind = rest.rpartition("/")
    return graph, kind, tuple(names.split("+"))


def engine_of(id: str) -> str:
    """`tcw/0/0/forward/fuse/exp+sum_1` -> `tcw`."""
    return id.partition("/")[0]


def refusal(decision: Decision, wanted: str) -> str:
    """Why this choice cannot be carried out; "" where it can."""
    if wanted not in decision.choices:
        return f"there is no choice {wanted!r}: it takes {' or '.join(decision.choices)}"
    if wanted in decision.forbidden:
        rule, reason = decision.forbidden[wanted]
        return f"rule {rule}: {reason}" if reason else f"rule {rule}"
    return ""


def read_overrides(file: Path) -> dict[str, str]:
    """The overrides of a TOML file, id -> choice. Raises `OverrideError`, which says what to do."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise OverrideError(f"{file}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise OverrideError(
            f'{file}: {error}; a line is "decision id" = "choice", both in quotes'
        ) from error
    for id, choice in table.items():
        if not isinstance(choice, str):
            raise OverrideError(f'{file}: {id}: it takes a choice in quotes, such as "{APART}"')
        if engine_of(id) not in ENGINES:
            begin = " or ".join(f"{engine}/" for engine in ENGINES)
            raise OverrideError(f"{file}: {id}: ids of decisions begin with {begin}")
    return dict(table)
