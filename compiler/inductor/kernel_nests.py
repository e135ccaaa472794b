"""The loop nests of a generated kernel, as code generation nests the nodes.

The C++ backend (torch/_inductor/codegen/cpp.py) makes one nest of a `FusedSchedulerNode`; what has
only the outer sizes comes after the reduction. An `OuterLoopFusedSchedulerNode` is several such
nests that share their outer loops, unless their tiles differ: then `codegen_outer_loop_node` writes
each by itself. `KernelGroup.finalize_kernel` is called for each nest. A Triton kernel has one nest.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import structs

from tcw.compiler.control.hooks import Uninstall, after_call, around_call, during, patch, undo_all
from tcw.compiler.control.safely import Safely
from tcw.compiler.inductor.loop_bodies import NodeLoops, indented, loops_of, renamed, unflattened
from tcw.compiler.trace.records import LoopLine, NestLoops, Size


@dataclass(frozen=True)
class NestMember:
    """A scheduler node of a nest."""

    loops: NodeLoops
    reads: frozenset[str]
    writes: frozenset[str]


class _Written(threading.local):
    """What the C++ backend has written so far: per kernel group, its nests."""

    def __init__(self) -> None:
        self.nests: WeakKeyDictionary[Any, list[NestLoops]] = WeakKeyDictionary()
        self.outer: Any = None
        """The `OuterLoopFusedSchedulerNode` that code is being generated for."""


_written = _Written()


def cpp_nests(scheduling: Any) -> list[NestLoops]:
    """The nests of the C++ function that a `CppScheduling` is about to define."""
    return _written.nests.get(getattr(scheduling, "kernel_group", None), [])


def triton_nests(schedule: Iterable[Any]) -> list[NestLoops]:
    """The nest of a Triton kernel, from its schedule of nodes and markers."""
    nodes = [node for node in schedule if hasattr(node, "get_nodes")]
    return _nest([nodes], 0)


def watch_nests(safely: Safely) -> Uninstall:
    """Note the nests of C++ functions; returns the function that ends it."""
    from torch._inductor.codegen.cpp import CppScheduling, KernelGroup

    @contextmanager
    def generating(_scheduling: Any, node: Any, *_: Any, **__: Any) -> Iterator[None]:
        with during(patch(_written, "outer", node)):
            yield

    return undo_all(
        around_call(CppScheduling, "codegen_outer_loop_node", generating),
        after_call(KernelGroup, "finalize_kernel", safely.guarded(_note)),
    )


def _note(
    _result: None, group: Any, new_kernel: Any, nodes: Sequence[Any], *_: Any, **__: Any
) -> None:
    outer = _written.outer
    if outer is not None and len(nodes) == len(outer.get_nodes()):
        parts = [part.get_nodes() for part in outer.get_outer_nodes()]
        found = _nest(parts, outer.outer_loop_fusion_depth)
    else:
        found = _nest([nodes], 0)
    _written.nests.setdefault(group, []).extend(found)


def _nest(parts: Sequence[Sequence[Any]], shared: int) -> list[NestLoops]:
    """[] if a node has no loop body, as a template has none."""
    flat = [node for part in parts for node in part]
    if not flat or not all(hasattr(getattr(node, "_body", None), "root_block") for node in flat):
        return []
    lines = joined_nest([[_member(node) for node in part] for part in parts], shared)
    return [NestLoops(nodes=tuple(node.get_name() for node in flat), lines=lines)]


def _member(node: Any) -> NestMember:
    touched = node.read_writes
    return NestMember(
        loops=loops_of(node._body),
        reads=frozenset(dependency.name for dependency in touched.reads),
        writes=frozenset(dependency.name for dependency in touched.writes),
    )


def joined_nest(parts: Iterable[Sequence[NestMember]], shared: int) -> tuple[LoopLine, ...]:
    """The parts as one nest; each continues the `shared` outer loops of the previous one.

    Within a part a node continues all loops of the node before that it has too, except that a value
    is read only after the loops that reduce it.
    """
    lines: list[LoopLine] = []
    opened: list[Size] = []
    """Sizes of the loops around the last statement."""
    for place, members in enumerate(parts):
        read = [_own_names(member.loops) for member in members]
        deepest = max((loops.heads for loops in read), key=len, default=())
        most = shared if place else 0
        reduced: dict[str, int] = {}
        for member, own in zip(members, read, strict=True):
            loops = unflattened(own, deepest)
            heads = loops.heads
            most = min(most, *(reduced[name] for name in member.reads & reduced.keys()), len(heads))
            sizes = [head.size for head in heads]
            lines += heads[_common(opened[:most], sizes) :]
            lines += indented(loops.body, len(heads))
            opened, most = sizes, len(deepest)
            outer = sum(not head.reduced for head in heads)
            if outer < len(heads):
                reduced.update(dict.fromkeys(member.writes, outer))
    return tuple(lines)


def _own_names(loops: NodeLoops) -> NodeLoops:
    """The loops named by depth, so that the same loop has the same name in each node."""
    names = {head.variable: f"p{head.depth}" for head in loops.heads}
    heads = tuple(structs.replace(head, variable=f"p{head.depth}") for head in loops.heads)
    return NodeLoops(heads, renamed(loops.body, names))


def _common(first: Sequence[Size], second: Sequence[Size]) -> int:
    for place, (one, two) in enumerate(zip(first, second, strict=False)):
        if one != two:
            return place
    return min(len(first), len(second))
