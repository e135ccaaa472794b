"""The cost of recomputing a value in the backward, for deciding whether to save it."""

from __future__ import annotations

import operator
from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import fx

from tcw.compiler.graphs.tensors import element_bytes
from tcw.compiler.trace.byte_counts import bytes_text
from tcw.compiler.trace.plurals import plural

NAMED = 6
"""The maximum number of operations listed by name; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Again:
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


def again(node: fx.Node, saved: Collection[str], fixed: Collection[str]) -> Again:
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
    return Again(
        tuple(one.name for one in operations if one.target is not operator.getitem),
        tuple(one.name for one in leaves),
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
