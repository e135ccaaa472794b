"""The stages, in the order in which a compile passes through them."""

from __future__ import annotations

from typing import get_args

from tcw.compiler.trace.records import Stage

STAGES: tuple[Stage, ...] = get_args(Stage)


def reached(stage: Stage, until: Stage) -> bool:
    """Whether a recording that ends after `until` runs `stage`."""
    return STAGES.index(stage) <= STAGES.index(until)
