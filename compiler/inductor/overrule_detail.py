"""What the user sees before a decision on a pair: both sides, and the possible fused nest.

Inductor creates the body of a fused nest only during code generation. The sketch puts both bodies
under their common loops, without simplifying anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import takewhile
from typing import Any

from compiler.decision import Detail
from compiler.inductor.loops import loop_text
from compiler.inductor.lowerings import Lowering

_LOOP = re.compile(r" *(for|reduce) (\w+) in (.+):$")
Loop = tuple[str, str, str]
"""(`for` or `reduce`, variable, extent)."""


def detail_of(first: Any, second: Any, lowering: Lowering) -> Detail:
    """Details of two groups whose fusion Inductor considers."""
    members = [*first.get_nodes(), *second.get_nodes()]
    origins = {
        origin for node in members for origin in lowering.operations.get(node.get_name(), ())
    }
    in_order = [node.name for node in lowering.positions if node.name in origins]
    bodies = [node._body for node in members if hasattr(getattr(node, "_body", None), "root_block")]
    texts = [loop_text(body) for body in bodies]
    on_cpu = str(first.get_device() or "cpu").startswith("cpu")
    return Detail(
        first=tuple(node.get_name() for node in first.get_nodes()),
        second=tuple(node.get_name() for node in second.get_nodes()),
        origins=tuple(in_order),
        if_fused=sketch(texts) if len(texts) == len(members) else "",
        sketched=True,
        means="two loop nests, which may still share one C++ function"
        if on_cpu
        else "two Triton kernels",
    )


def sketch(texts: Iterable[str]) -> str:
    """Several nests as one: their common leading loops, then each nest's own.

    A nest that covers the same elements in one flat loop is written with the others' loops; its
    index becomes the corresponding sum.
    """
    nests = [_parse(text) for text in texts]
    if not nests:
        return ""
    deepest = max(nests, key=lambda nest: len(nest[0]))[0]
    nests = [_unflattened(loops, body, deepest) for loops, body in nests]
    heads = [[(word, extent) for word, _, extent in loops] for loops, _ in nests]
    common = len(
        list(
            takewhile(lambda at: len(set(at)) == 1 and at[0][0] == "for", zip(*heads, strict=False))
        )
    )
    names = [variable for _, variable, _ in nests[0][0][:common]]
    lines = [
        f"{'  ' * depth}for {name} in {heads[0][depth][1]}:" for depth, name in enumerate(names)
    ]
    for loops, body in nests:
        own = dict(zip([variable for _, variable, _ in loops[:common]], names, strict=True))
        depth = common
        for word, variable, extent in loops[common:]:
            lines.append(f"{'  ' * depth}{word} {variable} in {extent}:")
            depth += 1
        lines += ["  " * depth + _renamed(line, own) for line in body]
    return "\n".join(lines) + "\n"


def _parse(text: str) -> tuple[list[Loop], list[str]]:
    loops: list[Loop] = []
    lines = text.splitlines()
    while lines and (match := _LOOP.match(lines[0])) is not None:
        loops.append((match[1], match[2], match[3]))
        lines.pop(0)
    margin = "  " * len(loops)
    return loops, [line.removeprefix(margin) for line in lines]


def _unflattened(
    loops: list[Loop], body: list[str], like: list[Loop]
) -> tuple[list[Loop], list[str]]:
    """One flat loop rewritten as the loops of another nest of equal size; else unchanged."""
    if len(loops) != 1 or loops[0][0] != "for" or len(like) < 2:
        return loops, body
    sizes = [extent for _, _, extent in (*loops, *like)]
    if not all(size.isdigit() for size in sizes):
        return loops, body
    whole, *parts = (int(size) for size in sizes)
    total = 1
    for part in parts:
        total *= part
    if total != whole:
        return loops, body
    terms, stride = [], whole
    for (_, variable, _), part in zip(like, parts, strict=True):
        stride //= part
        terms.append(variable if stride == 1 else f"{stride}*{variable}")
    flat = {loops[0][1]: f"({' + '.join(terms)})"}
    split = [("for", variable, extent) for _, variable, extent in like]
    return split, [_renamed(line, flat) for line in body]


def _renamed(line: str, names: dict[str, str]) -> str:
    if not names:
        return line
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, names)) + r")\b")
    return pattern.sub(lambda match: names[match[1]], line)
