"""The loop nest of a scheduler node, from Inductor's `LoopBody`.

torch's `LoopBody.debug_str` (torch/_inductor/loop_body.py) builds a GraphModule to print a body.
This reads the same FX graph, with index expressions put where they are used, and is far cheaper.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from tcw.compiler.graphs.tensors import size
from tcw.compiler.trace.loop_nests import COSTLY
from tcw.compiler.trace.records import LoopLine

_STORES = ("store", "store_reduction", "partial_accumulate")
LOWERED_NODE = "lowered_node"
"""Key in the `meta` of a loop body's operations: name of the lowered node that they belong to."""


@dataclass(frozen=True)
class NodeLoops:
    """The loops around a body, outermost first, and the body, whose depths count from 0."""

    heads: tuple[LoopLine, ...]
    body: tuple[LoopLine, ...]


def nest_of(body: Any) -> tuple[LoopLine, ...]:
    """The loop nest that a `LoopBody` stands for."""
    loops = loops_of(body)
    return (*loops.heads, *indented(loops.body, len(loops.heads)))


def indented(lines: Sequence[LoopLine], depth: int) -> Iterator[LoopLine]:
    """The lines within `depth` more loops."""
    return (structs.replace(line, depth=line.depth + depth) for line in lines)


def loops_of(body: Any) -> NodeLoops:
    """The loops and the operations of a `LoopBody`."""
    reduced = set(body.reduce_vars)
    heads = tuple(
        LoopLine(
            depth=depth, variable=str(variable), size=size(extent), reduced=variable in reduced
        )
        for depth, (variable, extent) in enumerate(body.var_ranges.items())
    )
    indices = {name: str(expression) for name, expression in body.indexing_exprs.items()}
    lines = list(_block(body.root_block, indices, 0))
    for name, block in body.subblocks.items():
        lines.append(LoopLine(result=name, operation="subblock"))
        lines += _block(block, indices, 1)
    return NodeLoops(heads, tuple(lines))


def _block(block: Any, indices: dict[str, str], depth: int) -> Iterator[LoopLine]:
    texts: dict[Any, str] = {}
    for node in block.graph.nodes:
        if node.op == "placeholder":
            texts[node] = "ops"
        elif node.op == "call_module" and node.target == "get_index":
            texts[node] = indices.get(node.args[0], str(node.args[0]))
        elif node.op == "output":
            if getattr(node.args[0], "target", None) not in (None, *_STORES):
                value = str(texts.get(node.args[0], node.args[0]))
                yield LoopLine(depth=depth, operation="return", arguments=(value,))
        else:
            arguments = [
                _text(value, texts)
                for value in node.args
                if not (hasattr(value, "op") and texts.get(value) == "ops")
            ]
            arguments += [f"{name}={_text(value, texts)}" for name, value in node.kwargs.items()]
            yield LoopLine(
                depth=depth,
                result="" if node.target in _STORES else node.name,
                operation=_called(node.target),
                arguments=tuple(arguments),
                node=node.meta.get(LOWERED_NODE, "") if node.target in COSTLY else "",
            )
            texts[node] = node.name


def _called(target: Any) -> str:
    """`getitem`, of what a reduction with several results is taken apart by."""
    return target if isinstance(target, str) else getattr(target, "__name__", str(target))


def _text(value: Any, texts: dict[Any, str]) -> str:
    if hasattr(value, "op") and hasattr(value, "graph"):
        return str(texts.get(value, value.name))
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(_text(item, texts) for item in value) + ")"
    return str(value)


def unflattened(loops: NodeLoops, like: Sequence[LoopLine]) -> NodeLoops:
    """One flat loop rewritten as the loops of another nest of equal size; else unchanged."""
    if len(loops.heads) != 1 or loops.heads[0].reduced or len(like) < 2:
        return loops
    (flat,) = loops.heads
    stride = flat.size
    total = 1
    for head in like:
        if not isinstance(head.size, int):
            return loops
        total *= head.size
    if not isinstance(stride, int) or total != stride:
        return loops
    terms = []
    for head in like:
        stride //= int(head.size)
        terms.append(head.variable if stride == 1 else f"{stride}*{head.variable}")
    split = tuple(structs.replace(head, reduced=False) for head in like)
    return NodeLoops(split, renamed(loops.body, {flat.variable: f"({' + '.join(terms)})"}))


def renamed(lines: Sequence[LoopLine], names: dict[str, str]) -> tuple[LoopLine, ...]:
    """The operations with other loop variables in their index expressions."""
    if not names:
        return tuple(lines)
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, names)) + r")\b")
    return tuple(
        structs.replace(
            line,
            arguments=tuple(
                pattern.sub(lambda match: names[match[1]], argument) for argument in line.arguments
            ),
        )
        for line in lines
    )
