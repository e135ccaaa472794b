"""Decides what crosses from the forward to the backward: torch's min-cut, with overrides.

`min_cut_rematerialization_partition` (torch/_functorch/partitioners.py) chooses. A value that an
override names is marked with `CheckpointPolicy`, as in selective activation checkpointing, and the
cut is repeated. Both engines use this: `tcw/0/0/joint/save/relu`, `inductor/0/0/joint/save/relu`.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.utils.checkpoint import CheckpointPolicy

from tcw.compiler.autograd.failed_cut import why_failed, without_files
from tcw.compiler.autograd.partition import OVERRIDDEN, reasons_of
from tcw.compiler.autograd.split import current_split
from tcw.compiler.control.gate import Gate
from tcw.compiler.control.hooks import during
from tcw.compiler.graphs.tensors import element_bytes
from tcw.compiler.protocol.decision import RECOMPUTE, SAVE, Decision, Detail, Ruling
from tcw.compiler.trace.byte_counts import bytes_text
from tcw.compiler.trace.plurals import plural

Halves = tuple[fx.GraphModule, fx.GraphModule]

KIND = "save"
_MARKS = {SAVE: CheckpointPolicy.MUST_SAVE, RECOMPUTE: CheckpointPolicy.MUST_RECOMPUTE}
_CUTS = 4
"""The maximum number of cuts: each may bring new values across, which may be overridden in turn."""


class _Deciding(threading.local):
    now = False


_deciding = _Deciding()


@contextmanager
def _decides() -> Iterator[None]:
    outer, _deciding.now = _deciding.now, True
    try:
        yield
    finally:
        _deciding.now = outer


def deciding() -> bool:
    """Whether this thread's cut runs inside `decide_saved`, which applies the overrides itself."""
    return _deciding.now


@_decides()
def decide_saved(
    joint: fx.GraphModule,
    halves: Halves | None,
    cut: Callable[[], Halves],
    gate: Gate,
    graph: str,
    engine: str,
    keep_all: bool = True,
) -> Halves:
    """The halves of a joint graph after all its decisions.

    `cut` splits `joint` according to its nodes' marks; `halves` is its result before any mark.
    `graph` is the joint graph's id. `keep_all=False` keeps only the decisions that the user saw or
    an override names.
    """
    halves = halves or cut()
    rulings: dict[str, Ruling] = {}
    shown: set[str] = set()
    failure = ""
    for _ in range(_CUTS):
        now = crossing_values(*halves)
        nodes = {node.name: node for node in joint.graph.nodes}
        new = [name for name in now if name in nodes and name not in rulings]
        reasons = reasons_of(current_split(), halves[0])
        kept = {name for name, choice in now.items() if choice == SAVE}
        for name in new:
            why, weight = reasons(name, now[name])
            decision = _decision(nodes[name], now[name], why, weight, graph, engine, shown, kept)
            rulings[name] = gate.answer(decision)
        flips = {name: choice for name in new if (choice := rulings[name].choice) != now[name]}
        if not flips:
            break
        for name, choice in flips.items():
            nodes[name].meta["recompute"] = _MARKS[choice]
            nodes[name].meta[OVERRIDDEN] = choice
        if (split := current_split()) is not None:
            split.cuts.clear()
        try:
            with during(without_files()):
                halves = cut()
        except Exception as error:  # torch cannot make this split, so its own stands
            failure = f"torch's partitioner fails: {why_failed(error)}"
            break
    final = crossing_values(*halves)
    for name, ruling in rulings.items():
        ended = _ended(ruling, final.get(name, ""), failure)
        if keep_all or name in shown or ruling.decision.id in gate.overrides:
            gate.keep(ended)
        else:
            gate.known(ruling.decision.id)
    return halves


def _ended(ruling: Ruling, carried_out: str, failure: str) -> Ruling:
    """A decision with its outcome: torch's partitioner has the last word. `carried_out` is "" if
    the value no longer crosses."""
    if not ruling.overridden:
        if ruling.refused or not carried_out:
            return ruling
        return Ruling(ruling.decision, carried_out)
    if (carried_out or RECOMPUTE) == ruling.choice:
        return ruling
    why = failure or (
        "rule min-cut: torch's partitioner keeps its own choice"
        if carried_out
        else "the backward no longer needs it, after the other overrides"
    )
    kept = carried_out or ruling.decision.default
    return Ruling(ruling.decision, kept, refused=why, wanted=ruling.choice)


def _decision(
    node: fx.Node,
    default: str,
    why: str,
    weight: float | None,
    graph: str,
    engine: str,
    shown: set[str],
    kept: set[str],
) -> Decision:
    """`kept`: the values saved by the current cut."""
    illegal = forbidden(node, RECOMPUTE)
    numbers = _numbers(node, weight)

    def detail() -> Detail:
        shown.add(node.name)
        size = (
            bytes_text(int(numbers["bytes"]))
            if "bytes" in numbers
            else "a symbolic number of bytes"
        )
        means = f"save: {size} from the forward until the backward"
        if not illegal:
            fixed = {one.name for one in node.graph.nodes if forbidden(one, RECOMPUTE)}
            means += f"; recompute: the backward {recomputation(node, kept, fixed).words()}"
        return Detail(origins=(node.name,), means=means)

    return Decision(
        graph=graph,
        kind=KIND,
        names=(node.name,),
        default=default,
        choices=(SAVE, RECOMPUTE),
        rule="min-cut",
        reason=why,
        numbers=numbers,
        forbidden={RECOMPUTE: illegal} if illegal else {},
        detail=detail,
        engine=engine,
    )


def crossing_values(forward: fx.GraphModule, backward: fx.GraphModule) -> dict[str, str]:
    """The tensors that the forward computes and the backward needs, saved or recomputed."""
    computed = {node.name for node in forward.graph.nodes if node.op == "call_function"}
    found = {}
    for node in backward.graph.nodes:
        if node.name in computed and isinstance(node.meta.get("val"), torch.Tensor):
            found[node.name] = SAVE if node.op == "placeholder" else RECOMPUTE
    return found


def forbidden(node: fx.Node, choice: str) -> tuple[str, str] | None:
    """The rule that makes a choice illegal for this node, and the reason; None if it is legal."""
    if choice != RECOMPUTE:
        return None
    tags = getattr(node.target, "tags", ())
    if torch.Tag.nondeterministic_seeded in tags:
        return "random", f"{node.name} draws random numbers: a second draw would differ"
    if getattr(getattr(node.target, "_schema", None), "is_mutable", False):
        return "mutation", f"{node.name} writes to its input: it cannot run twice"
    return None


def _numbers(node: fx.Node, weight: float | None) -> dict[str, int | float]:
    found: dict[str, int | float] = {}
    value: Any = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        size = element_bytes(tuple(value.shape), value.dtype)
        if size is not None:
            found["bytes"] = size
    if weight is not None:
        found["weight"] = weight
    return found


NAMED = 6
"""The maximum number of operations listed by name; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Recomputation:
    """The operations that recompute a value from what the backward already has."""

    operations: tuple[str, ...]
    """In execution order, the value itself last."""
    reads: tuple[str, ...]
    """The inputs and saved values that recomputation starts from. Includes random values and
    results of mutations, which would have to be saved instead."""
    bytes: int | None
    """Total size of `reads`; None if a size is symbolic."""

    def words(self) -> str:
        """`runs 2 operations again (relu, sigmoid), which read 4 KB (mm)`."""
        count = len(self.operations)
        runs = f"{plural(count, 'operation')} again ({_some(self.operations)})"
        if not self.reads:
            return f"runs {runs}"
        size = "a symbolic number of bytes" if self.bytes is None else bytes_text(self.bytes)
        return f"runs {runs}, which read{'s' * (count == 1)} {size} ({_some(self.reads)})"


def recomputation(node: fx.Node, saved: Collection[str], fixed: Collection[str]) -> Recomputation:
    """Recompute from the inputs, the values in `saved`, and those in `fixed`, which cannot run
    twice."""
    operations: list[fx.Node] = []
    reads: dict[fx.Node, None] = {}
    seen = {node}
    pending = [node]
    while pending:
        here = pending.pop()
        operations.append(here)
        for source in here.all_input_nodes:
            known = source.op != "call_function" or source.name in saved or source.name in fixed
            if known and isinstance(source.meta.get("val"), torch.Tensor):
                reads[source] = None
            elif not known and source not in seen:
                seen.add(source)
                pending.append(source)
    place = {one: number for number, one in enumerate(node.graph.nodes)}
    operations.sort(key=place.__getitem__)
    leaves = sorted(reads, key=place.__getitem__)
    return Recomputation(
        tuple(
            operation.name for operation in operations if operation.target is not operator.getitem
        ),
        tuple(leaf.name for leaf in leaves),
        _bytes(leaves),
    )


def _bytes(nodes: Collection[fx.Node]) -> int | None:
    values = [node.meta["val"] for node in nodes]
    sizes = [element_bytes(tuple(value.shape), value.dtype) for value in values]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
