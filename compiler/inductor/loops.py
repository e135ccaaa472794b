"""A loop body as text: Inductor's own LoopBody, with index expressions inlined at their uses.

torch's `LoopBody.debug_str` (torch/_inductor/loop_body.py) builds a GraphModule to print a body.
This reads the same FX graph and is far cheaper.
"""

from __future__ import annotations

import re
from typing import Any

Loop = tuple[str, str, str]
"""(`for` or `reduce`, variable, extent)."""
Loops = tuple[list[Loop], list[str]]
"""The loops around a body, outermost first, and its statements."""
_STORES = ("store", "store_reduction", "partial_accumulate")


def loop_text(body: Any) -> str:
    """The loop nest that a `LoopBody` stands for, one operation per line."""
    loops, statements = loops_of(body)
    heads = [loop_line(depth, loop) for depth, loop in enumerate(loops)]
    margin = "  " * len(loops)
    return "\n".join((*heads, *(margin + line for line in statements))) + "\n"


def loop_line(depth: int, loop: Loop) -> str:
    """`  for p1 in 128:`."""
    word, variable, extent = loop
    return f"{'  ' * depth}{word} {variable} in {extent}:"


def loops_of(body: Any) -> Loops:
    """What a `LoopBody` stands for."""
    lines: list[str] = []
    reduced = set(body.reduce_vars)
    loops = [
        ("reduce" if variable in reduced else "for", str(variable), str(extent))
        for variable, extent in body.var_ranges.items()
    ]
    indices = {name: str(expression) for name, expression in body.indexing_exprs.items()}
    _block(body.root_block, indices, 0, lines)
    for name, block in body.subblocks.items():
        lines.append(f"{name}:")
        _block(block, indices, 1, lines)
    return loops, lines


def _block(block: Any, indices: dict[str, str], depth: int, lines: list[str]) -> None:
    texts: dict[Any, str] = {}
    margin = "  " * depth
    for node in block.graph.nodes:
        if node.op == "placeholder":
            texts[node] = "ops"
        elif node.op == "call_module" and node.target == "get_index":
            texts[node] = indices.get(node.args[0], str(node.args[0]))
        elif node.op == "output":
            if getattr(node.args[0], "target", None) not in (None, *_STORES):
                lines.append(f"{margin}return {texts.get(node.args[0], node.args[0])}")
        else:
            arguments = [
                _text(value, texts)
                for value in node.args
                if not (hasattr(value, "op") and texts.get(value) == "ops")
            ]
            arguments += [f"{name}={_text(value, texts)}" for name, value in node.kwargs.items()]
            call = f"{_called(node.target)}({', '.join(arguments)})"
            if node.target in _STORES:
                lines.append(margin + call)
                texts[node] = node.name
            else:
                lines.append(f"{margin}{node.name} = {call}")
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


def unflattened(loops: list[Loop], body: list[str], like: list[Loop]) -> Loops:
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
    return split, [renamed(line, flat) for line in body]


def renamed(line: str, names: dict[str, str]) -> str:
    """A statement with other variables."""
    if not names:
        return line
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, names)) + r")\b")
    return pattern.sub(lambda match: names[match[1]], line)
