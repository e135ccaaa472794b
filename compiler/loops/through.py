"""Expressions evaluated through a view of their domain."""

from __future__ import annotations

from dataclasses import replace

from tcw.compiler.loops.expressions import Expression, Gather, Iota, Load, rewrite
from tcw.compiler.loops.layouts import Layout, View, compose_views
from tcw.compiler.loops.sizes import Size


def through(expression: Expression, view: View, domain: Size, seen: Size) -> Expression:
    """The expression at view(i) instead of i; `domain` and `seen`: the sizes before and after."""
    moved = _seen_through(view, domain, seen)
    return rewrite(expression, lambda part: leaf_through(part, moved)) if moved else expression


def leaf_through(part: Expression, view: View) -> Expression:
    """One leaf at view(i) instead of i; a gather's indices are separate leaves."""
    if isinstance(part, (Load, Gather, Iota)):
        return replace(part, view=compose_views(part.view, view))
    return part


def _seen_through(view: View, domain: Size, seen: Size) -> View:
    return view if view or domain == seen else (Layout((seen,), (1,)),)
