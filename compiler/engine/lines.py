"""The user's lines, for the comments of generated code."""

from __future__ import annotations

import linecache
import os

from torch import fx

from compiler.graphs.lines import parse_stack_trace

WIDTH = 72
"""So much of a line is quoted."""


def user_lines(module: fx.GraphModule) -> dict[str, str]:
    """Node -> `model.py:12  y = torch.softmax(x, -1)`; in a backward, of what it derives."""
    texts: dict[str, str] = {}
    found: dict[str, str] = {}
    for node in module.graph.nodes:
        trace = node.meta.get("stack_trace") or node.meta.get("fwd_nn_stack_trace")
        if not isinstance(trace, str):
            continue
        if trace not in texts:
            texts[trace] = _quoted(trace)
        if texts[trace]:
            found[node.name] = texts[trace]
    return found


def _quoted(trace: str) -> str:
    frames = parse_stack_trace(trace)
    if not frames:
        return ""
    last = frames[-1]
    text = linecache.getline(last.file, last.line).strip()
    return f"{os.path.basename(last.file)}:{last.line}  {text[:WIDTH]}".strip()
