"""Fusion decisions, counted by distinct pair: a pair retested each round counts once. And whether
operations are in one kernel, asked by name or by source line."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tcw.compiler.protocol.decision import APART, ENGINE, FUSE, VETO, engine_of, split_id
from tcw.compiler.trace.matching import is_predicted
from tcw.compiler.trace.records import (
    Decided,
    FusionGroups,
    FusionPair,
    FusionRound,
    Kernel,
    SchedulerNode,
)
from tcw.viewers.labels import operations_of
from tcw.viewers.recording import RecordedDecisions, Recording
from tcw.viewers.words import bytes_text, listed

RULES = {
    "access": "read in a different order than written",
    "barrier": "with a store or a call between",
    "between": "with nodes between",
    "cycle": "in a cycle with other nodes",
    "digits": "indexed differently",
    "domain": "different domains",
    "empty": "without elements",
    "extern": "a library call",
    "extern-epilogue": "a library call's epilogue",
    "finish": "one result is finished only after the loop",
    "gather": "read through an index",
    "indexing-mismatch": "indexed differently",
    "little-shared-data": "too little shared data",
    "max-horizontal": "too many side by side",
    "memory-deps": "reads do not match writes",
    "nop": "computes nothing",
    "order": "in the wrong order",
    "outer-loop": "already fused at an outer loop",
    "peak-memory": "would raise peak memory",
    "pointers": "too many arrays for one loop",
    "recomputed": "would be computed for each row",
    "reduction": "reducing different rows",
    "rider": "reducing unlike columns",
    "same-node": "a node with itself",
    "scan": "a scan along another axis",
    "scatter": "with stores that may collide",
    "strided-rows": "rows apart in memory",
    "too-little": "too little shared data",
    "too-many-buffers": "too many buffers",
    "too-many-nodes": "too many nodes",
    "unstated": "no reason given",
    "veto": "kept apart by an override",
    "working-set": "accumulators beyond the cache",
}
"""Words for rules with unclear names; the others are shown by name."""

LABEL_PARTS = 4
"""Distinct ops named in the label of a fused node; the rest are counted."""
_MOST_PARTS = 1000
"""Distinct ops of a fused node that are kept; a label names the first few of them."""


@dataclass(frozen=True)
class PairResult:
    """Two scheduler nodes, with the last verdict on them."""

    id: str
    graph: str
    first: str
    second: str
    verdict: str
    """`fused`, `rejected`, or `passed`: it could fuse, but one of the two fused elsewhere first.
    During fusion also `queued`, for a pair that can fuse but has not had its turn, and `asked`,
    for the one that waits for the user's choice."""
    rule: str
    reason: str
    tests: int
    """How often it was considered, over all rounds."""
    shared_bytes: int | None
    score: tuple[float, ...]
    score_text: str
    records: tuple[Decided, ...]
    """Its tests; empty for a pair known only from its decision."""
    decided: Decided | None = None
    between: tuple[str, ...] = ()
    """The scheduler nodes that keep a rejected pair apart, as far as they are recorded."""

    @property
    def override(self) -> Decided | None:
        """The decision, if an override asked for another choice, carried out or refused."""
        decided = self.decided
        return decided if decided is not None and (decided.overridden or decided.refused) else None

    @property
    def kind(self) -> str:
        """`vertical`, `horizontal`; "" if only the decision is known."""
        last = self.last_test
        return last.kind if last is not None else ""

    @property
    def round(self) -> int:
        last = self.last_test
        return last.round if last is not None else 0

    @property
    def last_test(self) -> FusionPair | None:
        return self.records[-1].pair if self.records else None

    @property
    def why_fused(self) -> tuple[str, str]:
        """Rule and reason of two that were fused: where the engine gives no reason, what they share
        and their score."""
        last = self.decided or (self.records[-1] if self.records else None)
        rule = last.rule if last is not None and last.rule != self.kind else ""
        reason = self.records[-1].reason if self.records else self.reason
        if not reason:
            shared = f"both touch {bytes_text(self.shared_bytes)}" if self.shared_bytes else ""
            score = f"score: {self.score_text}" if self.score_text else ""
            reason = "; ".join(part for part in (shared, score) if part)
        return rule, reason


@dataclass(frozen=True)
class GraphFusion:
    """The decisions in one graph."""

    graph: str
    nodes: int
    """Scheduler nodes at the start."""
    groups: int | None
    """Groups at the end; None if not recorded."""
    pairs: tuple[PairResult, ...]
    rejected: dict[str, int]
    """Rule -> distinct pairs, most first."""

    @property
    def fused(self) -> int:
        return sum(pair.verdict == "fused" for pair in self.pairs)

    @property
    def predicted(self) -> bool:
        """Whether it was predicted for an absent GPU: `0/0/forward@sm_90/lowered`."""
        return is_predicted(self.graph)


@dataclass(frozen=True)
class FusionSummary:
    """All graphs together; the sums omit graphs predicted for a GPU."""

    graphs: tuple[GraphFusion, ...]
    fused: int
    rejected: dict[str, int]
    """Rule -> distinct pairs, most first."""


def fusion_summary(recording: Recording) -> FusionSummary:
    """Every pair once, with its last verdict."""
    nodes = Counter(node.graph for node in recording.all(SchedulerNode))
    known = recording.decisions
    graph_of = {id: tests[0].pair.graph for id, tests in known.tests.items() if tests[0].pair}
    for decided in known.decided.values():
        if decided.kind == FUSE:
            lowered = f"{decided.graph}/lowered"
            graph_of.setdefault(decided.id, lowered if lowered in nodes else decided.graph)
    pairs: dict[str, list[PairResult]] = defaultdict(list)
    for id, graph in graph_of.items():
        if pair := pair_of(known, id, graph):
            pairs[graph].append(pair)
    groups = {record.graph: len(record.groups) for record in recording.all(FusionGroups)}
    graphs = []
    for graph in dict.fromkeys([*nodes, *pairs]):
        results = tuple(pairs[graph])
        rejected = Counter(pair.rule for pair in results if pair.verdict == "rejected")
        graphs.append(
            GraphFusion(
                graph=graph,
                nodes=nodes[graph],
                groups=groups.get(graph),
                pairs=results,
                rejected=dict(rejected.most_common()),
            )
        )
    total: Counter[str] = Counter()
    real = [fusion for fusion in graphs if not fusion.predicted]
    for fusion in real:
        total.update(fusion.rejected)
    return FusionSummary(
        graphs=tuple(graphs),
        fused=sum(fusion.fused for fusion in real),
        rejected=dict(total.most_common()),
    )


def pair_of(known: RecordedDecisions, id: str, graph: str = "") -> PairResult | None:
    """One pair as of now; None if no test and no decision of it is recorded. `graph`: of a
    pair of which only the decision is recorded."""
    tests, decided = known.tests.get(id), known.decided.get(id)
    pair = _tested(tests, known) if tests else None
    return pair if decided is None else _with_decided(pair, decided, graph or decided.graph)


def with_asked(pair: PairResult | None, asked: Decided, graph: str) -> PairResult:
    """The pair that waits for the user's choice."""
    pair = replace(pair, verdict="asked") if pair else _bare(asked.id, graph, "asked", asked)
    first, second = asked.sides
    return replace(pair, first=first or pair.first, second=second or pair.second)


def saved_bytes(pair: PairResult) -> int | None:
    """Traffic that fusing the two would save, the key of their ranking: bytes that both access, as
    Inductor counts; bytes that stay in registers, as the tcw engine does."""
    if engine_of(pair.id) == ENGINE:
        return int(pair.score[0]) if pair.score else pair.shared_bytes
    return pair.shared_bytes


def _with_decided(pair: PairResult | None, decided: Decided, graph: str) -> PairResult:
    """A pair with its decision, which is the verdict if there are no, or unfinished, tests."""
    if pair is None or pair.verdict in ("queued", "passed"):
        verdict = "fused" if decided.choice == FUSE else "rejected"
        bare = _bare(decided.id, graph, verdict, decided)
        if pair is None:
            pair = bare
        else:
            pair = replace(
                pair, verdict=verdict, rule=bare.rule, reason=bare.reason, between=bare.between
            )
    return replace(pair, decided=decided)


def pair_asked(id: str, graph: str, first: str, second: str) -> PairResult:
    """A pair that the user is asked about, with nothing else recorded."""
    return PairResult(id, graph, first, second, "asked", "", "", 0, None, (), "", ())


@dataclass(frozen=True)
class Sides:
    """What the two sides of a pair show by themselves, without the engine's rule."""

    shared: list[str]
    """Buffers that both touch."""
    chained: bool
    """The second reads what the first writes."""
    domains: tuple[tuple[int | str, ...], tuple[int | str, ...]]


def sides_of(first: Sequence[SchedulerNode], second: Sequence[SchedulerNode]) -> Sides:
    written = {buffer for node in first for buffer in node.writes}
    touched = {buffer for node in second for buffer in (*node.reads, *node.writes)}
    both = [b for node in first for b in (*node.reads, *node.writes) if b in touched]
    chained = any(buffer in written for node in second for buffer in node.reads)
    one, other = (max((n.domain for n in side), key=len, default=()) for side in (first, second))
    return Sides(list(dict.fromkeys(both)), chained, (one, other))


def _bare(id: str, graph: str, verdict: str, decided: Decided) -> PairResult:
    first, *rest = split_id(id)[2]
    numbers = decided.numbers
    size = numbers.get("saved_bytes", numbers.get("shared_bytes"))
    return PairResult(
        id=id,
        graph=graph,
        first=first,
        second="+".join(rest),
        verdict=verdict,
        rule=(decided.rule or "unstated") if verdict == "rejected" else "",
        reason=decided.reason,
        tests=0,
        shared_bytes=None if size is None else int(size),
        score=() if size is None else (float(size),),
        score_text="",
        records=(),
        between=decided.between if verdict == "rejected" else (),
    )


def node_labels(recording: Recording) -> dict[tuple[str, str], str]:
    """(graph, scheduler node) -> what it computes in words; fused nodes join their parts' words."""
    labels = {(node.graph, node.name): node.label for node in recording.all(SchedulerNode)}
    parts: dict[str, dict[str, dict[str, None]]] = defaultdict(dict)
    for node in recording.all(SchedulerNode):
        parts[node.graph][node.name] = dict.fromkeys(node.label.split(", "))
    for round_ in recording.all(FusionRound):
        of = parts[round_.graph]
        for first, second, name in round_.fused:
            words = of.setdefault(name, {})
            for one in (first, second):
                if len(words) < _MOST_PARTS and one != name:
                    words.update(of.get(one) or {one: None})
            labels[round_.graph, name] = listed(list(words), LABEL_PARTS)
            if first != name != second:
                # They no longer exist: nothing fuses with them again.
                of.pop(first, None)
                of.pop(second, None)
    return labels


def grouped_elsewhere(recording: Recording, other: Recording, pair: PairResult) -> bool | None:
    """Whether the other engine put the two nodes that stand for a pair into one group; None if it
    has not lowered both as they are here."""
    nodes, theirs = recording.nodes(pair.graph), other.nodes(pair.graph)
    names = split_id(pair.id)[2]
    for name in names:
        one, same = nodes.get(name), theirs.get(name)
        if one is None or same is None:
            return None
        if (one.target, one.location) != (same.target, same.location):
            return None
    groups = [
        {
            origin
            for member in group.nodes
            if (operation := other.operations.get((record.graph, member))) is not None
            for origin in operation.origins
        }
        for record in other.all(FusionGroups)
        if record.graph == pair.graph
        for group in record.groups
    ]
    if not set(names) <= set().union(*groups):
        return None
    return any(group.issuperset(names) for group in groups)


def history(recording: Recording, pair: PairResult) -> tuple[str, ...]:
    """What became of a pair that was tested in several rounds: `round 1 apart: in a cycle`, `round
    6 fused, since mean joined`. () where only one round tested it."""
    rounds = {one.pair.round: one for one in pair.records if one.pair is not None}
    if len(rounds) < 2:
        return ()
    steps: list[tuple[int, int, str, frozenset[str]]] = []
    for number, record in sorted(rounds.items()):
        test = record.pair
        assert test is not None
        fused = record.choice == FUSE and not test.cycle
        words = "may fuse" if fused else f"apart: {rule_words(_why_rejected(record)[0])}"
        if fused and number == max(rounds) and pair.verdict == "fused":
            words = "fused"
        members = frozenset(members_of(test.first) + members_of(test.second))
        if steps and steps[-1][2] == words:
            first, _, _, before = steps[-1]
            steps[-1] = (first, number, words, before | members)
        else:
            steps.append((number, number, words, members))
    found, before = [], steps[0][3]
    for first, last, words, members in steps:
        span = f"round {first}" if first == last else f"rounds {first}–{last}"
        known = (recording.operations.get((pair.graph, one)) for one in sorted(members - before))
        joined = dict.fromkeys(node.label for node in known if node is not None)
        since = f", since {listed(list(joined))} joined" if joined else ""
        found.append(f"{span} {words}{since}")
        before = members
    override = pair.override
    if override is not None and override.refused:
        found.append(f"your {override.wanted} was refused: {rule_words(override.refused)}")
    return tuple(found)


def members_of(name: str) -> list[str]:
    """`op9_op10` -> its scheduler nodes; a name of another kind stands for itself."""
    parts = name.split("_")
    return parts if all(part.startswith("op") for part in parts) else [name]


def rule_words(rule: str) -> str:
    """`between` -> `with nodes between`."""
    return RULES.get(rule, rule.replace("-", " "))


def _tested(records: list[Decided], known: RecordedDecisions) -> PairResult:
    last = records[-1]
    pair = last.pair
    assert pair is not None
    sides = {(pair.graph, frozenset(record.sides)) for record in records}
    fused = last.choice == FUSE
    verdict = "rejected"
    if sides & known.fused:
        verdict = "fused"
    elif fused and pair.round <= known.rounds.get(pair.graph, 0):
        verdict = "passed"
    elif fused:
        # That it can fuse is not a verdict until its round is over, unless it was the last thing
        # tried before the two were fused.
        verdict = "fused" if pair.phase == "commit" and not pair.cycle else "queued"
    scored = next(
        (record for record in reversed(records) if record.pair and record.pair.score), last
    )
    shared = scored.numbers.get("shared_bytes")
    rule, reason = _why_rejected(last) if verdict == "rejected" else ("", "")
    return PairResult(
        id=last.id,
        graph=pair.graph,
        first=pair.first,
        second=pair.second,
        verdict=verdict,
        rule=rule,
        reason=reason,
        tests=len(records),
        shared_bytes=None if shared is None else int(shared),
        score=scored.pair.score if scored.pair else (),
        score_text=scored.pair.score_text if scored.pair else "",
        records=tuple(records),
        between=last.between if verdict == "rejected" else (),
    )


def _why_rejected(last: Decided) -> tuple[str, str]:
    if last.overridden and last.choice == APART:
        return VETO, f"an override keeps them apart: {last.by or last.id}"
    return last.rule.replace(" ", "-") or "unstated", last.reason


def named_together(recording: Recording, group: str) -> bool:
    """Whether one generated kernel computes all of `softmax + add` or `gpt.py:12 + gpt.py:13`."""
    return fused(recording, *(part.strip() for part in group.split("+")))


def fused(recording: Recording, *what: str) -> bool:
    """Whether one generated kernel computes each of these: names of operations (`softmax`),
    scheduler nodes (`op3`) or source lines (`gpt.py:12`, `:12`). If a GPU's code is predicted, it
    is the code that is meant."""
    kernels = recording.kernels.values()
    predicted = any(kernel.predicted for kernel in kernels)
    return any(
        all(_computes(kernel, one) for one in what)
        for kernel in kernels
        if kernel.generated and kernel.predicted == predicted
    )


_LINE = re.compile(r"(.*):(\d+)")


def _computes(kernel: Kernel, what: str) -> bool:
    at = _LINE.fullmatch(what)
    if at is not None:
        file, line = at[1], int(at[2])
        return any(
            place.line == line and (not file or place.file.endswith(f"/{file}"))
            for place in kernel.locations
        )
    if what in kernel.nodes or what in kernel.origins:
        return True
    return what.replace("_", " ") in operations_of(kernel.label)
