"""The fusion of the synthetic trace: the pairs that Inductor weighed, its rounds, its groups."""

from __future__ import annotations

from typing import Any

from tcw.compiler.trace.records import (
    FusionGroup,
    FusionGroups,
    FusionRound,
)
from tests.decided import pair_test

RULES = {
    "intermediate nodes between node1 & node2": "between",
    "no shared data": "no-shared-data",
    None: "unstated",
}
ROUND_STARTS = {
    ("op0", "op2"),
    ("op0_op1_op2_op3_op4", "op19"),
    ("op0_op1_op2_op3_op4", "op5"),
}
LABELS = {
    "0/0/forward": {
        "op0": "mean", "op1": "mean / n", "op2": "variance", "op3": "rsqrt", "op4": "normalise",
        "op5": "addmm qkv", "op6": "q copy", "op7": "k copy", "op8": "bmm q@k", "op9": "amax",
        "op10": "amax", "op11": "any", "op12": "exp", "op13": "sum", "op14": "div",
        "op15": "v copy", "op16": "bmm @v", "op17": "merge heads", "op18": "addmm proj",
        "op19": "add",
    },
    "1/0/forward": {
        "op0": "mean", "op1": "mean / n", "op2": "variance", "op3": "rsqrt", "op4": "normalise",
        "op5": "max abs", "op6": "gt",
    },
    "2/0/forward": {"op0": "addmm fc1", "op1": "gelu", "op2": "addmm fc2", "op3": "add"},
}  # fmt: skip


class Fusion:
    """Writes the records of one graph's fusion."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def record(self, out: Any, graph: str, like: str) -> None:
        ids = self._ids(like)
        seen: set[tuple[str, str]] = set()
        round_, commit = 0, False
        merged: list[tuple[str, str, str]] = []
        for first, second, fused, shared, why in self.data["pairs"][like]:
            pair = (first, second)
            if pair in ROUND_STARTS and (round_ == 0 or commit or not merged):
                self._round(out, graph, round_, merged)
                round_, commit, seen, merged = round_ + 1, False, set(), []
            commit = commit or (fused and (pair in seen or _joined(first, second) in seen))
            seen.add(pair)
            if commit and fused:
                merged.append((first, second, f"{first}_{second}"))
            chain = self._reads_of(like, second) & self._writes_of(like, first)
            out.add(
                pair_test(
                    id=f"inductor/{graph.removesuffix('/lowered')}/fuse/{ids[pair]}",
                    graph=graph,
                    round=round_,
                    phase="commit" if commit else "screen",
                    first=first,
                    second=second,
                    fused=fused,
                    rule="" if fused else RULES[why],
                    reason=why or "",
                    kind="vertical" if chain else "horizontal",
                    score=(2.0, 1.0, float(shared), 0.0, -3.0) if fused else (),
                    score_text=f"template 2, type 1, shared bytes {shared}, distance -3"
                    if fused
                    else "",
                    shared_bytes=shared,
                ),
                0.0001,
            )
        self._round(out, graph, round_, merged)
        groups = self.data["groups"][like]
        labels = LABELS.get(like, {})
        out.add(
            FusionGroups(
                graph=graph,
                groups=tuple(
                    FusionGroup(
                        name=name,
                        nodes=tuple(nodes),
                        kind="loops" if len(nodes) > 1 else "single",
                        label=" + ".join(dict.fromkeys(labels.get(n, n) for n in nodes)),
                    )
                    for name, nodes in groups
                ),
            )
        )

    def _names(self, like: str) -> dict[str, str]:
        """Scheduler nodes by the node of the graph that each computes."""
        places = {row[0]: place for place, row in enumerate(self.data["lowered"][like])}
        names: dict[str, str] = {}
        for name, _, origins, *_ in self.data["scheduler"][like]:
            word = max(origins, key=lambda origin: places.get(origin, -1))
            count = sum(other.partition(".")[0] == word for other in names.values())
            names[name] = f"{word}.{count + 1}" if count else word
        return names

    def _ids(self, like: str) -> dict[tuple[str, str], str]:
        """Each pair by the members that carry it, of which one reads what the other writes where
        there are such; every pair of groups has its own here."""
        names = self._names(like)
        ids: dict[tuple[str, str], str] = {}
        distinct = {(first, second) for first, second, *_ in self.data["pairs"][like]}
        for pair in sorted(distinct, key=lambda pair: (len(pair[0]) + len(pair[1]), pair)):
            first, second = (group.split("_") for group in pair)
            members = [(one, two) for one in first for two in second]
            members.sort(
                key=lambda two: not self._writes_of(like, two[0]) & self._reads_of(like, two[1])
            )
            found = ["+".join(names[name] for name in sorted(two, key=_number)) for two in members]
            left = (id for id in found if id not in ids.values())
            ids[pair] = next(left, "+".join(names[name] for name in (*first, *second)))
        return ids

    @staticmethod
    def _round(out: Any, graph: str, round_: int, merged: list[tuple[str, str, str]]) -> None:
        if round_:
            out.add(FusionRound(graph=graph, round=round_, fused=tuple(merged)))

    def _reads_of(self, like: str, name: str) -> set[str]:
        rows = {row[0]: row for row in self.data["scheduler"][like]}
        return {buffer for part in name.split("_") for buffer in rows[part][4]}

    def _writes_of(self, like: str, name: str) -> set[str]:
        rows = {row[0]: row for row in self.data["scheduler"][like]}
        return {buffer for part in name.split("_") for buffer in rows[part][5]}


def _number(operation: str) -> int:
    return int(operation[2:])


def _joined(first: str, second: str) -> tuple[str, str]:
    """A merged pair comes back under a longer name: the pair of its parts that was screened."""
    return (first.split("_")[-1], second.split("_")[0])
