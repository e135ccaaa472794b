"""The decisions worth stopping at, among the thousands that a model needs."""

from __future__ import annotations

from tcw.compiler.control.decisions import APART, FUSE, SAVE
from tcw.compiler.decision import Decision

NOTHING_SHARED = "no-shared-data"
"""Inductor's rule for a pair whose nodes touch no common buffer."""

_ALWAYS = (SAVE, "inline", "reuse")
_UNUSUAL = {"lowering": "loops"}
"""Kind -> the choice that is nearly always made: only other choices matter."""


def matters(decision: Decision) -> bool:
    """Whether a decision shapes the compiled code as a whole and could well have gone otherwise.

    True for fusions (except pairs that have nothing to gain), for inlining, saving and reuse, and
    for operations that get no loops. False for library calls and for choices within a loop nest
    (lanes, unrolling, threads, …), of which each nest has about ten.
    """
    if decision.kind == FUSE:
        return decision.default != APART or decision.rule != NOTHING_SHARED
    if decision.kind in _UNUSUAL:
        return decision.default != _UNUSUAL[decision.kind]
    return decision.kind in _ALWAYS
