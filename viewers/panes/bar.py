"""The bar below the panes: the selection, or the decision that waits."""

from __future__ import annotations

from tcw.viewers.panes import autograd, chrome, decision_bar, fusion, memory, waterfall
from tcw.viewers.panes.rows import Row
from tcw.viewers.panes.view import View


def rows(view: View, arrangement: str, width: int) -> list[Row]:
    """The decision that waits, else the selection."""
    decision = decision_bar.rows(view, width)
    if decision:
        return decision
    if arrangement == "source":
        return chrome.selection(view, width)
    if arrangement == "fusion":
        return fusion.verdict(view, width)
    if arrangement in ("profile", "region"):
        return waterfall.selection(view, width)
    if arrangement == "memory":
        return memory.verdict(view, width)
    if arrangement == "autograd":
        return autograd.reason(view, width)
    return []
