"""A recording as reports see it: the engine that it has, or both, and their summaries."""

from __future__ import annotations

from functools import cached_property

from tcw.viewers.recording import Recording
from tcw.viewers.summary import Summary, summarise
from tcw.viewers.summary.engine_comparison import compare
from tcw.viewers.summary.findings import Finding, findings_of_both
from tcw.viewers.text.sections import OF_BOTH, SectionView


class Parts:
    """The parts of two engines that can be compared; else the one that a report is of."""

    def __init__(self, recording: Recording) -> None:
        self.comparison = compare(recording)
        columns = self.comparison.columns if self.comparison is not None else ()
        # an engine whose part has only begun, or in which the recording ended
        alone = next(iter(recording.engines.values()), recording)
        self.recording = recording if columns else alone
        self.recordings = [one.recording for one in columns] or [alone]
        self.summaries = [one.summary for one in columns] or [summarise(alone)]
        self.engines = [one.engine for one in columns] or [""]

    @property
    def first(self) -> Summary:
        return self.summaries[0]

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        return findings_of_both(self.first.findings, self.summaries[-1].findings)

    @property
    def missing(self) -> list[str]:
        """What an option asked for but the recording lacks."""
        return list(dict.fromkeys(text for one in self.summaries for text in one.missing))

    def views(self, wanted: str, width: int) -> list[tuple[str, SectionView]]:
        """What section `wanted` (`guards=all`) is drawn from, with the name of its engine: "" if
        there is one, or if both share it."""
        name, _, detail = wanted.partition("=")
        parts = list(zip(self.engines, self.recordings, self.summaries, strict=True))
        if name in OF_BOTH:
            source = self.recording if name == "engines" else self.recordings[0]
            parts = [("", source, self.first)]
        return [
            (engine, SectionView(recording, summary, width, detail))
            for engine, recording, summary in parts
        ]
