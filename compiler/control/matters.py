"""The decisions worth stopping at, among the thousands that a model needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from compiler.control.decisions import APART, FUSE, SAVE

NOTHING_SHARED = "no-shared-data"
"""Inductor's rule for a pair whose nodes touch no common buffer."""

_ALWAYS = (SAVE, "inline", "reuse")
_UNUSUAL = {"lowering": "loops"}
"""Kind -> the choice that is nearly always made: only other choices matter."""


class Question(Protocol):
    """A decision before or after its answer: a `Decision`, an `Asked` or a `Decided`."""

    @property
    def id(self) -> str: ...
    @property
    def graph(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def default(self) -> str: ...
    @property
    def rule(self) -> str: ...
    @property
    def numbers(self) -> Mapping[str, float]: ...


def matters(question: Question) -> bool:
    """Whether a decision shapes the compiled code as a whole and could well have gone otherwise.

    True for fusions (except pairs that have nothing to gain), for inlining, saving and reuse, and
    for operations that get no loops. False for library calls and for choices within a loop nest
    (lanes, unrolling, threads, …), of which each nest has about ten.
    """
    if question.kind == FUSE:
        return question.default != APART or question.rule != NOTHING_SHARED
    if question.kind in _UNUSUAL:
        return question.default != _UNUSUAL[question.kind]
    return question.kind in _ALWAYS
