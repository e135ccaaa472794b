"""The decision gate: every choice from the partition to the memory plan, with its reason.

A stage describes its options as a `Decision` and asks the `Gate`, which returns one of the choices:
the default, or that of the user's override file. A choice that a rule forbids is never taken: the
override is refused, naming the rule. Ids consist of node names, not counters, so that an override
survives changes elsewhere in the model.

    "tcw/0/0/forward/fuse/exp+sum_1" = "apart"      # never in one loop nest, on any path
    "tcw/0/0/forward/reuse/buf3" = "own"
    "tcw/0/0/joint/save/relu" = "recompute"
    "inductor/0/0/forward/fuse/amax+exp" = "fuse"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches

from tcw.compiler.protocol.decision import (
    APART,
    ENGINE,
    FUSE,
    Decision,
    Ruling,
    engine_of,
    refusal,
    split_id,
)
from tcw.compiler.trace.records import FusionPair


class Gate:
    """Answers decisions, records the answers, and tracks which overrides were met.

    One gate serves all stages of all graphs of a recording. `watch` is called with each answer as
    it is kept.
    """

    def __init__(
        self,
        overrides: Mapping[str, str] | None = None,
        watch: Callable[[Ruling], None] | None = None,
        ask: Callable[[Decision], str] | None = None,
    ) -> None:
        self.overrides: dict[str, str] = {}
        self.decided: list[Ruling] = []
        self._watch = watch
        self._ask = ask
        """Asks a person, who returns a choice, or "" for the default."""
        self._met: set[str] = set()
        self._known: dict[str, None] = {}
        self._offered: dict[str, set[str]] = {}
        """Decision id -> the non-default choices that a person was offered."""
        self._vetoes: dict[str, list[tuple[str, str, str]]] = {}
        for id, choice in (overrides or {}).items():
            self.overrule(id, choice)

    def overrule(self, id: str, choice: str) -> None:
        """Use this choice for the decision from here on. A veto keeps its two nodes apart in all
        later decisions."""
        self.overrides[id] = choice
        graph, kind, names = split_id(id)
        if engine_of(id) == ENGINE and kind == FUSE and choice == APART and len(names) == 2:
            self._vetoes.setdefault(graph, []).append((names[0], names[1], id))

    @property
    def asks(self) -> bool:
        """Whether a person may be asked: only then is `Decision.detail` worth providing."""
        return self._ask is not None

    @property
    def silent(self) -> bool:
        """Whether nothing asks, overrides or watches, so that every choice is the default."""
        return self._ask is None and self._watch is None and not self.overrides

    def asker(self) -> Callable[[Decision], str] | None:
        """What answers the decisions of the code generator, which does not know the gate; None if
        all answers are the defaults. A choice without legal alternatives is not a decision, unless
        an override asks for one."""
        if self.silent:
            return None

        def ask(decision: Decision) -> str:
            if len(decision.legal()) < 2 and decision.id not in self.overrides:
                return decision.default
            return self.decide(decision)

        return ask

    def decide(self, decision: Decision, pair: Callable[[], FusionPair] | None = None) -> str:
        """Answer a decision, keep the answer, and return the choice to carry out."""
        return self.keep(replace(self.answer(decision), pair=pair))

    def answer(self, decision: Decision, ask: bool = True) -> Ruling:
        """Answer a decision without keeping it: for a stage that meets a decision many times and
        keeps its outcome. Pass `ask=False` if a person was already asked."""
        if ask and self._ask is not None and decision.id not in self.overrides:
            self._put(decision)
        wanted = self.overrides.get(decision.id)
        if wanted is None:
            return Ruling(decision, decision.default)
        self._met.add(decision.id)
        refused = refusal(decision, wanted)
        if refused:
            return Ruling(decision, decision.default, refused=refused, wanted=wanted)
        return Ruling(decision, wanted, overridden=wanted != decision.default)

    def known(self, id: str) -> None:
        """Record that this decision exists although it is not kept, for reporting misspelt
        overrides."""
        self._known[id] = None

    def _put(self, decision: Decision) -> None:
        """Ask a person, whose choice then holds as if the override file had contained it.

        A recurring decision (a pair weighed in a later round) is therefore asked again only if it
        has new legal choices: an override in a file would have applied to those.
        """
        assert self._ask is not None
        offered = self._offered.setdefault(decision.id, set())
        others = {choice for choice in decision.legal() if choice != decision.default}
        if offered and others <= offered:
            return
        chosen = self._ask(decision)
        offered |= others
        veto = decision.kind == FUSE and chosen == APART  # on every path, whatever the default
        if chosen and (veto or chosen != decision.default) and not refusal(decision, chosen):
            self.overrule(decision.id, chosen)

    def fuse(
        self,
        decision: Decision,
        first: Iterable[str],
        second: Iterable[str],
        pair: Callable[[], FusionPair] | None = None,
    ) -> bool:
        """Whether two groups of nodes, all named, become one loop nest.

        Answers a decision with the choices `fuse` and `apart`. A veto on any two nodes keeps apart
        the groups that contain them, even if the veto's own pair is never considered. `pair`
        describes the test for the record.
        """
        return self.unless_vetoed(decision, APART, first, second, pair) == FUSE

    def unless_vetoed(
        self,
        decision: Decision,
        apart: str,
        first: Iterable[str],
        second: Iterable[str],
        pair: Callable[[], FusionPair] | None = None,
    ) -> str:
        """The choice to carry out; `apart`, which keeps these nodes out of one loop nest, if a veto
        demands it."""
        veto = self.veto(decision.graph, first, second)
        if not veto or veto == decision.id:
            return self.decide(decision, pair)
        wanted = self.overrides.get(decision.id, "")
        refused = f"{veto} keeps two of their nodes apart" if wanted not in ("", apart) else ""
        overridden = decision.default != apart
        return self.keep(
            Ruling(
                decision,
                apart,
                overridden,
                refused,
                wanted if refused else "",
                by=veto if overridden else "",
                pair=pair,
            )
        )

    def joined(self, decision: Decision, pair: Callable[[], FusionPair] | None = None) -> None:
        """Record that two nodes whose fusion was refused ended up in one nest through others.

        The last answer of an id is the one carried out.
        """
        self.keep(Ruling(decision, FUSE, pair=pair))

    def veto(self, graph: str, first: Iterable[str], second: Iterable[str]) -> str:
        """Id of the override that forbids fusing these nodes into one loop nest; "" if there is
        none.

        Everything that puts nodes into one nest must check this: fusion, and inlining of a
        producer.
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
        """Overrides of one kind in one graph, by node names: for a stage that checks first."""
        found = {}
        for id, choice in self.overrides.items():
            if engine_of(id) == engine and split_id(id)[:2] == (graph, kind):
                found["+".join(split_id(id)[2])] = choice
        return found

    def text(self, graph: str) -> str:
        """The overrides of one graph, one per line: part of what its code depends on."""
        mine = {
            id: choice
            for id, choice in self.overrides.items()
            if engine_of(id) == ENGINE and split_id(id)[0] == graph
        }
        return "\n".join(f"{id} = {choice}" for id, choice in sorted(mine.items()))

    def refused(self) -> list[Ruling]:
        """Overrides that a rule forbids, each once: those whose last answer was a refusal."""
        last = {ruling.decision.id: ruling for ruling in self.decided}
        return [ruling for ruling in last.values() if ruling.refused]

    def unknown(self) -> Iterator[tuple[str, str]]:
        """Overrides that met no decision, each with the closest known id, or ""."""
        ids = list(dict.fromkeys([*(ruling.decision.id for ruling in self.decided), *self._known]))
        for id in self.overrides:
            if id not in self._met:
                same = [one for one in ids if engine_of(one) == engine_of(id)]
                yield id, next(iter(get_close_matches(id, same, n=1, cutoff=0.75)), "")

    def keep(self, answer: Ruling) -> str:
        """Record the outcome of a decision; returns the choice."""
        if answer.decision.id in self.overrides:
            self._met.add(answer.decision.id)
        if self._watch is not None:
            self._watch(answer)
        if answer.decision.detail is not None:  # it keeps the stage's own products alive
            answer = replace(answer, decision=replace(answer.decision, detail=None))
        self.decided.append(replace(answer, pair=None) if answer.pair is not None else answer)
        return answer.choice
