"""What `--show` adds to the answer: a file a section, each a function of the recording."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from viewers.places import FileNames
from viewers.recording import Recording
from viewers.summary import Summary
from viewers.text.lines import Line

SECTIONS = (
    "engines",
    "breaks",
    "recompiles",
    "guards",
    "fusion",
    "decisions",
    "kernels",
    "memory",
    "phases",
    "graphs",
    "autograd",
    "caches",
    "output",
    "steps",
)
"""Their names, in the order in which they are shown."""


@dataclass(frozen=True)
class View:
    """What a section is drawn from, and for."""

    recording: Recording
    summary: Summary
    names: FileNames
    width: int
    detail: str = ""
    """What comes behind `=` in `guards=all`."""


DETAILS = {"guards": ("all",), "decisions": ("all",), "engines": ("sources",)}
"""What a section's name may be followed by: `guards=all`."""

OF_BOTH = ("engines", "breaks", "recompiles", "guards", "output", "steps")
"""Sections that are shown once for a recording of both engines: what they share, and the
comparison. Any other is shown for each engine."""

Section = Callable[[View], list[Line]]


def section(name: str) -> Section:
    """The function that draws section `name`, one of `SECTIONS`."""
    found: Section = import_module(f"viewers.text.sections.{name}").section
    return found
