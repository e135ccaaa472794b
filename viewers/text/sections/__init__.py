"""The sections of `--show`, one function of the recording each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import cast, get_args

from tcw.compiler.trace.records.session import FactKind
from tcw.viewers.file_names import FileNames
from tcw.viewers.kit.lines import TextLine
from tcw.viewers.kit.table import heading
from tcw.viewers.recording import Recording
from tcw.viewers.summary import Summary
from tcw.viewers.words import NOT_IN_LOG

_FILES = {
    "engines": "compiled",
    "fixes": "fixes",
    **dict.fromkeys(("breaks", "recompiles", "guards"), "capture"),
    **dict.fromkeys(("fusion", "decisions", "kernels", "memory", "phases"), "compiled"),
    "graphs": "capture",
    **dict.fromkeys(("autograd", "caches", "cudagraphs"), "compiled"),
    "collectives": "collectives",
    "output": "compiled",
    "steps": "capture",
}
"""Section -> the file with the function of its name."""
SECTIONS = tuple(_FILES)
"""Names of the sections, in display order."""


@dataclass(frozen=True)
class SectionView:
    """What a section is drawn from, and the space it has."""

    recording: Recording
    summary: Summary
    width: int
    detail: str = ""
    """What follows `=` in `guards=all`."""
    beside: Recording | None = None
    """The other engine's part of the recording, if there is one."""

    @property
    def names(self) -> FileNames:
        return self.summary.names


DETAILS = {"guards": ("all",), "decisions": ("all",), "engines": ("sources",)}
"""The details that a section takes: `guards=all`."""

OF_BOTH = ("engines", "fixes", "breaks", "recompiles", "guards", "output", "steps")
"""Sections shown once for a recording of both engines: what they share, and the comparison. Any
other is shown per engine."""

Section = Callable[[SectionView], list[TextLine]]


def section(name: str) -> Section:
    """The function that draws section `name` of `SECTIONS`. For a log without such facts, it says
    so."""
    found: Section = getattr(import_module(f"tcw.viewers.text.sections.{_FILES[name]}"), name)
    return lambda view: [heading(name, NOT_IN_LOG)] if _lacks(view, name) else found(view)


def _lacks(view: SectionView, name: str) -> bool:
    failed = name == "output" and view.summary.failure is not None
    held = name in get_args(FactKind)
    return held and view.recording.lacks(cast(FactKind, name)) and not failed
