"""Values of short runs that are recomputed for each element, so that vectors hold longer runs.

The scale of a group norm is the example, `rsqrt[group] * weight[channel]`: one for each few
elements of a channel. Read as a value of its own, it splits the elements of a group, which lie side
by side, into channels that each fill a small part of a vector. As part of what each element
computes, it reads one number for the whole group, and weights that repeat from group to group.
"""

from __future__ import annotations

from tcw.compiler.fusion.leaves import is_compute, leaves, reads, uses
from tcw.compiler.fusion.weights import CHEAP, LANES, Weights, instructions
from tcw.compiler.loops.expressions import Load
from tcw.compiler.loops.graph import Compute, Graph, Map
from tcw.compiler.loops.layouts import View, compose_views, normalize
from tcw.compiler.loops.sizes import product

SHORT = LANES // 4
"""Runs of at most this many elements are short: of longer ones each is better a vector of its own.
A group norm of a million float32, of 4 groups of 3 channels of 5, takes 660 us; in runs of 15 it
takes 806 (Xeon). Groups of 2 channels of 4 take 631, in runs of 4 2,688."""


def shortens_runs(graph: Graph, weights: Weights, fixed: set[str]) -> dict[str, tuple[int, int]]:
    """Maps that are better recomputed for each element of what reads them: the length of the runs
    with their values in memory, and without.

    `fixed` are values that memory has in any case.
    """
    if not weights.machine.runs:
        return {}
    maps = {
        node.name: node
        for node in graph.nodes
        if isinstance(node, Map) and node.name not in fixed and _is_plain(node)
    }
    readers: dict[str, list[tuple[str, View]]] = {}
    for user, leaf in uses(graph.nodes):
        readers.setdefault(leaf.value, []).append((user.name, leaf.view))
    found: dict[str, tuple[int, int]] = {}
    kept: set[str] = set()
    for reader in graph.nodes:
        if not is_compute(reader):
            continue
        short = {
            leaf: run
            for leaf in reads(reader)
            if leaf.value in maps and (run := _run(leaf.view)) is not None and run <= SHORT
        }
        if len({leaf.view for leaf in short}) != 1:
            kept.update(leaf.value for leaf in short)
            continue
        (leaf, run), *_ = short.items()
        chain = _chain(maps, readers, [leaf.value for leaf in short], run)
        longer = _run_without(chain, maps, reader, leaf.view, run)
        if longer is None:
            kept.update(chain)
        else:
            found.update(dict.fromkeys(chain, (run, longer)))
    return {name: runs for name, runs in found.items() if name not in kept}


def _is_plain(node: Compute) -> bool:
    return all(isinstance(leaf, Load) for leaf in leaves(node))


def _chain(
    maps: dict[str, Map], readers: dict[str, list[tuple[str, View]]], first: list[str], run: int
) -> list[str]:
    """Maps and those they read element by element, while they are cheap, as long as all others
    that read one of them do so once for each run."""
    found: list[str] = []
    cost, left = 0, first
    while left:
        name = left.pop()
        if name not in maps or name in found:
            continue
        more = instructions(maps[name])
        beside = all(
            (reader in found and not view) or _run(view) == run for reader, view in readers[name]
        )
        if beside and cost + more <= CHEAP:
            cost += more
            found.append(name)
            left.extend(leaf.value for leaf in reads(maps[name]) if not leaf.view)
    return found


def _run_without(
    chain: list[str], maps: dict[str, Map], reader: Compute, view: View, short: int
) -> int | None:
    """The shortest run of what a reader reads with the maps of a chain computed on the spot; None
    if it is no longer than `short`."""
    if not isinstance(reader, Map) or not _is_plain(reader):
        return None
    shortest: int | None = None
    for own, seen in ((reader, ()), *((maps[name], view) for name in chain)):
        for leaf in reads(own):
            if leaf.value in chain:
                continue
            at = compose_views(leaf.view, seen) if seen else leaf.view
            if _is_whole(at) or _repeats(at):
                continue
            run = _run(at)
            if run is None or run <= short:
                return None
            shortest = run if shortest is None else min(shortest, run)
    return shortest


def _run(view: View) -> int | None:
    """How many elements side by side see the same value; None if each sees another."""
    if len(view) != 1:
        return None
    layout = normalize(view[0])
    if not layout.shape or layout.strides[-1] != 0 or not isinstance(layout.shape[-1], int):
        return None
    return layout.shape[-1] if len(layout.shape) > 1 else None


def _is_whole(view: View) -> bool:
    """Whether a view reads memory from its start to its end."""
    return not view or (len(view) == 1 and view[0].is_identity())


def _repeats(view: View) -> bool:
    """Whether a view reads a few values again and again, so that they can be spread over runs."""
    if len(view) != 1:
        return False
    layout = normalize(view[0])
    inner = product(layout.shape[1:])
    return bool(layout.strides) and layout.strides[0] == 0 and isinstance(inner, int)
