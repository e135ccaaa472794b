"""Fixes that were tried: the file run again with each, up to capture."""

from __future__ import annotations

from typing import Literal

from tcw.compiler.trace.records.base import *


class CaptureCounts(Part):
    """What a run up to capture comes to."""

    graphs: Count
    """Frames that captured a graph; a frame compiled three times is one."""
    breaks: Count
    """Places at which a graph breaks, or at which a whole frame is left to Python."""
    compiles: Count
    """Captured graphs, recompiles included."""
    eager: Count
    """Frames that run eagerly although they should be compiled."""
    failures: Count
    """1 if the run failed."""


class FixTrial(Record):
    """One fix, tried: the same calls with and without it."""

    finding: str
    """The key of the finding that it is for; "" for all chosen fixes together."""
    advice: Advice
    patch: str = ""
    """What it changes in the user's files, as a unified diff."""
    settings: tuple[str, ...] = ()
    """Torch settings that it makes, before anything is compiled."""
    compile: dict[str, bool | str] = {}
    """Options that it gives to `torch.compile`, where no file of the user's calls that."""
    before_calls: tuple[str, ...] = ()
    """What it runs before each call, with the arguments by name."""
    before: CaptureCounts | None = None
    """Without it, in the same kind of run; None if that run was not made."""
    after: CaptureCounts | None = None
    """None if it was not tried, or did not end."""
    results: Literal["same", "within", "differ", "unknown"] = "unknown"
    """Outputs, gradients, and the state of model and file after the calls, against those without
    it: `same` bit for bit, `within` what rounding explains."""
    differs: str = ""
    """What differs most, if anything does."""
    effect: str = ""
    """How the program behaves otherwise with it, in words: `prints come after the graph`."""
    kept: bool = False
    """It helps, and changes no result."""
    gone: tuple[str, ...] = ()
    """Keys of the findings that are no longer there with it."""
    new: tuple[str, ...] = ()
    """Keys of findings that only come with it."""
    reason: str = ""
    """Why it was not kept, or not tried."""
    seconds: Seconds = 0.0
    """How long the trial took."""
