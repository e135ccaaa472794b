"""Decisions that differ between two runs, and whether vetoes hold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Literal

from tcw.compiler.protocol.decision import APART, FUSE, VETO, split_id
from tcw.compiler.trace import matching
from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import FusionGroups, SchedulerNode
from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences.alignment import GONE, Alignment
from tcw.viewers.summary.differences.figures import settings_of
from tcw.viewers.summary.fusion import fusion_summary, node_labels

ChangeKind = Literal["vetoed", "forced", "overridden", "undone", "refused", "other", "new", "gone"]
_ORDER: tuple[ChangeKind, ...] = (
    "vetoed", "forced", "overridden", "refused", "undone", "other", "new", "gone",
)  # fmt: skip


@dataclass(frozen=True)
class DecisionChange:
    change: ChangeKind
    """`vetoed`, `forced`, `overridden`: by an override of the run; `undone`: the run lacks an
    override of the base; `refused`: by a rule; `other`: it changed without an override; `new`,
    `gone`: only one of the runs came to decide it, or fused it."""
    id: str
    graph: str
    kind: str
    subject: str
    """What it is about, in words: `exp + sum`."""
    before: str
    """The choice in the base; "" if it was not decided there."""
    after: str
    reason: str = ""
    partner: bool = False
    """A fusion of a node that the base fused with another one."""


@dataclass(frozen=True)
class DecisionChanges:
    changes: tuple[DecisionChange, ...]
    as_before: int
    """Decisions that are equal in both."""
    followed: int = 0
    """Decisions that only one run came to, about nodes or loop nests that the other does not
    have."""


@dataclass(frozen=True)
class _Choice:
    id: str
    graph: str
    kind: str
    subject: str
    choice: str
    parts: frozenset[Hashable] = frozenset()
    """Scheduler nodes, or names in the id, that it concerns."""
    overridden: bool = False
    refused: str = ""
    reason: str = ""
    vetoed: bool = False
    """A pair that a veto on some of its nodes keeps apart."""

    @property
    def fused(self) -> bool:
        return self.kind == "fuse" and self.choice == "fuse"


def decision_changes(alignment: Alignment) -> DecisionChanges:
    before = _choices(alignment.base, alignment.id, alignment.node)
    after = _choices(alignment.run)
    changes: list[DecisionChange] = []
    alike = followed = 0
    fused = {(one.graph, part) for one in before.values() if one.fused for part in one.parts}
    known = [{part for one in side.values() for part in one.parts} for side in (before, after)]
    for key in dict.fromkeys([*after, *before]):
        old, new = before.get(key), after.get(key)
        about = new or old
        assert about is not None
        change = _change(old, new)
        if change is None:
            alike += old is not None and new is not None and old.choice == new.choice
            continue
        only = old is None or new is None
        if only and change in ("new", "gone") and not about.parts <= known[new is None]:
            followed += 1
            continue
        touched = any((about.graph, part) in fused for part in about.parts)
        changes.append(
            DecisionChange(
                change=change,
                id=about.id,
                graph=about.graph,
                kind=about.kind,
                subject=about.subject,
                before=old.choice if old else "",
                after=new.choice if new else "",
                reason=about.refused or about.reason,
                partner=change == "new" and about.kind == "fuse" and touched,
            )
        )
    changes, elsewhere = _without_renamed(changes, before, after, alignment)
    followed += elsewhere
    # a pair that a veto on its nodes keeps apart is not listed beside the veto itself
    vetoes = {
        decision_change.graph for decision_change in changes if decision_change.change == "vetoed"
    }
    apart = {one.id for one in after.values() if one.vetoed and one.graph in vetoes}
    changes = [
        decision_change
        for decision_change in changes
        if not (decision_change.change == "gone" and decision_change.id in apart)
    ]
    listed = [
        decision_change
        for decision_change in changes
        if decision_change.kind == "fuse" or decision_change.change not in ("new", "gone")
    ]
    listed.sort(key=lambda decision_change: _ORDER.index(decision_change.change))
    return DecisionChanges(tuple(listed), alike, followed + len(changes) - len(listed))


def _without_renamed(
    changes: list[DecisionChange],
    before: Mapping[Hashable, _Choice],
    after: Mapping[Hashable, _Choice],
    alignment: Alignment,
) -> tuple[list[DecisionChange], int]:
    """Where a graph has other nodes, a pair may be matched with another one that computes the same.
    Of fusions that look alike, only as many are gone (or new) as one side has more than the other.
    Also returns how many are left out."""
    counts = [
        Counter(unnumbered(one.subject) for one in side.values() if one.fused)
        for side in (before, after)
    ]
    kept = []
    taken: Counter[tuple[str, str]] = Counter()
    for change in changes:
        fuses = change.kind == "fuse" and change.change in ("gone", "new")
        if fuses and not alignment.same(change.graph):
            name = unnumbered(change.subject)
            more = counts[0][name] - counts[1][name]
            if change.change == "new" and counts[0][name] and alignment.grew(change.graph):
                continue  # more of the same
            if taken[change.change, name] >= (more if change.change == "gone" else -more):
                continue
            taken[change.change, name] += 1
        kept.append(change)
    return kept, len(changes) - len(kept)


def unnumbered(words: str) -> str:
    """Without torch's numbers: `add_3` and `add_7` are both `add`."""
    return _COUNTER.sub("", words)


_COUNTER = re.compile(r"_\d+\b")


def _change(old: _Choice | None, new: _Choice | None) -> ChangeKind | None:
    """None if nothing changed, or if another change says it already: a pair that was kept apart in
    one run and never considered in the other."""
    if new is not None and new.refused and not (old is not None and old.refused):
        return "refused"
    if new is not None and old is not None and old.choice == new.choice:
        return None
    if new is not None and new.overridden:
        if new.kind != "fuse":
            return "overridden"
        return "forced" if new.fused else "vetoed"
    if old is not None and old.overridden:
        return "undone"
    about = new or old
    assert about is not None
    if new is not None and old is not None and about.kind != "fuse":
        return "other"
    if about.kind == "fuse" and (new is None or old is None) and not about.fused:
        return None
    return "gone" if new is None or (old is not None and not new.fused) else "new"


def _choices(
    recording: Recording,
    id_of: Callable[[str], str] = str,
    rename: matching.Rename = matching.as_named,
) -> dict[Hashable, _Choice]:
    """The last choice of each decision, by the names of the run. Pairs of scheduler nodes count if
    no decision has their id; they are identified by what their nodes compute, because Inductor
    numbers those."""
    found: dict[Hashable, _Choice] = {}
    ids: set[str] = set()
    for decided in recording.decisions.decided.values():
        id = id_of(decided.id)
        names = split_id(id)[2]
        ids.add(decided.id)
        found[id] = _Choice(
            id=decided.id,
            graph=base_graph(decided.graph),
            kind=decided.kind,
            subject=" + ".join(name.removesuffix(GONE) for name in names),
            choice=decided.choice,
            parts=frozenset(names),
            overridden=decided.overridden,
            refused=decided.refused,
            reason=decided.reason,
        )
    labels = node_labels(recording)
    known = matching.identities(recording.all(SchedulerNode), rename)
    for graph in fusion_summary(recording).graphs:
        for pair in graph.pairs:
            if pair.id in ids:
                continue
            words = [labels.get((pair.graph, name), name) for name in (pair.first, pair.second)]
            nodes = [
                frozenset(known.get((pair.graph, part), part) for part in name.split("_") if part)
                for name in (pair.first, pair.second)  # `op9_op10`
            ]
            found[pair.graph, *nodes] = _Choice(
                id=pair.id,
                graph=base_graph(pair.graph),
                kind="fuse",
                subject=" + ".join(words),
                choice="fuse" if pair.verdict == "fused" else "apart",
                parts=nodes[0] | nodes[1],
                reason=pair.reason or pair.rule,
                vetoed=pair.rule == VETO,
            )
    return found


@dataclass(frozen=True)
class Veto:
    """One veto of a run, and its effect."""

    id: str
    first: str
    second: str
    holds: bool | None
    """None if the recording does not say; `evidence` says why."""
    evidence: str
    """`both nests stay in one C++ function, k2`; the shared nest if it fails."""


def vetoes_of(run: Recording) -> tuple[Veto, ...]:
    """Every veto among the run's overrides."""
    settings = settings_of(run)
    if settings is None:
        return ()
    return tuple(
        _veto(run, id)
        for id, choice in settings.overrides.items()
        if choice == APART and split_id(id)[1] == FUSE
    )


def _veto(run: Recording, id: str) -> Veto:
    graph, _, parts = split_id(id)
    if len(parts) != 2:
        return Veto(id, "+".join(parts), "", None, "the id does not name two nodes")
    first, second = parts
    nodes = [n for n in run.all(SchedulerNode) if base_graph(n.graph) == graph]
    groups = [record for record in run.all(FusionGroups) if base_graph(record.graph) == graph]
    if not groups:
        return Veto(id, first, second, None, f"the loop nests of {graph} were not recorded")
    tests = run.decisions.tests.get(id)
    groups_of = tests[-1].sides if tests else ("", "")
    sides = [_nodes(nodes, *one) for one in zip(parts, groups_of, strict=True)]
    for name, side in zip(parts, sides, strict=True):
        if not side:
            return Veto(id, first, second, None, f"{graph} has no node {name}")
    loops = [group for group in groups[-1].groups if group.kind not in ("extern", "nop")]
    for group in loops:
        if all(side & set(group.nodes) for side in sides):
            return Veto(id, first, second, False, f"both are in {group.label or group.name}")
    return Veto(id, first, second, True, _functions(run, graph, sides))


def _nodes(nodes: list[SchedulerNode], name: str, group: str) -> set[str]:
    """Scheduler nodes that a name in an id refers to: its writer, else those that compute it.

    `var_mean.3` is the third one that computes `var_mean`, within the group of the pair.
    """
    written = {node.name for node in nodes if name in node.writes or name == node.name}
    computing = {node.name for node in nodes if name in node.origins}
    return written or computing or {node.name for node in nodes if node.name in group.split("_")}


def _functions(run: Recording, graph: str, sides: list[set[str]]) -> str:
    kernels = [
        kernel
        for kernel in run.kernels.values()
        if base_graph(kernel.graph) == graph and not kernel.predicted
    ]
    where = [[k for k in kernels if side & set(k.nodes)] for side in sides]
    shared = [k.id for k in where[0] if k in where[1]]
    if shared:
        return f"both nests stay in one C++ function, {', '.join(shared)}"
    ids = [", ".join(k.id for k in side) for side in where]
    return f"they are in {ids[0]} and in {ids[1]}" if all(ids) else ""
