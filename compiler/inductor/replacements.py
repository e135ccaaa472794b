"""Nodes that a rewrite pattern put into a graph: which nodes they replaced, and by which pattern.

torch's pattern matcher (torch/_inductor/pattern_matcher.py) hands the line of what it replaced to
the last node of the replacement only; the nodes inside it carry no line. While a pattern is
applied, the nodes that appear are those that replace the match: this is kept with each of them, in
`node.meta`, as torch keeps its own provenance, so that it survives the copies that
AOTAutograd's partitioner makes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import fx

from compiler.control.hooks import Hook, Uninstall, patch
from compiler.control.recorder import Recorder
from compiler.inductor.lowerings import failed

KEY = "replaced_nodes"
WHAT = "what rewrite patterns replaced"
ENTRIES = ("LoweringPatternEntry", "GraphPatternEntry", "ReplacementPatternEntry")


@dataclass(frozen=True)
class Replaced:
    """Where a node of a replacement comes from."""

    nodes: tuple[str, ...]
    """Names of the matched nodes, in graph order."""
    by: str
    """The pattern, as torch names it."""
    stack_trace: str = ""
    """Of the matched node with the same target, else of the last one that has a trace."""
    original: Any = None
    """The user's operator behind that node, as torch remembers it (`original_aten`)."""


def replaced(node: fx.Node) -> Replaced | None:
    """What `node` was made from, where a pattern made it."""
    found = node.meta.get(KEY)
    return found if isinstance(found, Replaced) else None


def install(recorder: Recorder) -> Uninstall:
    import torch._inductor.pattern_matcher as matcher

    undo = []
    for name in ENTRIES:
        entry = getattr(matcher, name)
        undo.append(patch(entry, "apply", _apply(entry.apply, recorder)))

    def uninstall() -> None:
        while undo:
            undo.pop()()

    return uninstall


def _apply(original: Callable[..., Any], recorder: Recorder) -> Callable[..., Any]:
    def apply(self: Any, match: Any, graph: Any, *args: Any, **kwargs: Any) -> Any:
        before: set[fx.Node] = set()
        matched: list[_Matched] = []
        try:
            before = set(graph.nodes)
            matched = [_describe(node) for node in match.nodes]
        except Exception as error:
            failed(recorder, WHAT, error)
        answer = original(self, match, graph, *args, **kwargs)
        try:
            if matched:
                _mark(self, graph, before, matched)
        except Exception as error:
            failed(recorder, WHAT, error)
        return answer

    return apply


@dataclass(frozen=True)
class _Matched:
    """A matched node, kept before the pattern erases it."""

    name: str
    target: Any
    stack_trace: str
    original: Any
    earlier: Replaced | None


def _describe(node: fx.Node) -> _Matched:
    earlier = replaced(node)
    trace = node.meta.get("stack_trace") or (earlier.stack_trace if earlier else "")
    original = node.meta.get("original_aten")
    if earlier is not None and earlier.original is not None:
        original = earlier.original
    return _Matched(node.name, node.target, trace, original, earlier)


def _mark(entry: Any, graph: Any, before: set[fx.Node], matched: list[_Matched]) -> None:
    handler = getattr(entry, "handler", None)
    by = getattr(entry, "pattern_name", None) or getattr(handler, "__name__", "") or "pattern"
    names: dict[str, None] = {}
    for node in matched:
        names[node.name] = None
        if node.earlier is not None:
            names.update(dict.fromkeys(node.earlier.nodes))
    traced = [node for node in matched if node.stack_trace]
    by_target = {node.target: node for node in traced if not isinstance(node.target, str)}
    for made in graph.nodes:
        if made in before:
            continue
        source = by_target.get(made.target) or (traced[-1] if traced else None)
        made.meta[KEY] = Replaced(
            tuple(names),
            str(by),
            source.stack_trace if source else "",
            source.original if source else None,
        )


_MATCHER = "torch._inductor.pattern_matcher"

HOOK = Hook(
    name="rewrite patterns",
    offers="which nodes a rewrite pattern put in, what they replaced, and so their user lines",
    needs=(*(f"{_MATCHER}:{name}.apply" for name in ENTRIES), f"{_MATCHER}:Match"),
    install=install,
    stage="autograd",
    tried_on=("2.13.0",),
)
