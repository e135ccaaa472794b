"""Which decisions a person wants to stand at: not each of the thousands that a model needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from compiler.control.decisions import APART, FUSE, SAVE

NOTHING_SHARED = "no-shared-data"
"""Inductor's rule for a pair of which neither touches what the other does."""

_ALWAYS = (SAVE, "inline", "reuse")
_UNUSUAL = {"lowering": "loops"}
"""Kind -> the choice that is nearly always made: only another one matters."""


class Question(Protocol):
    """What a decision is, before or after its answer: a `Decision`, an `Asked` or a `Decided`."""

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
    """Whether it shapes the compiled code as a whole, and could well have gone otherwise.

    Fusions (but for pairs with nothing to gain), what is inlined, saved and reused, and operations
    that get no loops. The choices inside a loop nest (lanes, unrolling, threads, …), of which each
    nest has some ten, and library calls are for those who look for them.
    """
    if question.kind == FUSE:
        return question.default != APART or question.rule != NOTHING_SHARED
    if question.kind in _UNUSUAL:
        return question.default != _UNUSUAL[question.kind]
    return question.kind in _ALWAYS
