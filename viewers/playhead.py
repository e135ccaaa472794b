"""A recording up to one of its records, for going back in time.

Moving forward feeds records; moving back starts from the nearest checkpoint, a copy of a
recording's lists (not of the records). Nothing is recompiled or decoded again.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tcw.viewers.decisions import RecordedDecisions
from tcw.viewers.recording import Recording

CHECKPOINTS = 24
"""Maximum number of checkpoints of a trace."""
LEAST = 2000
"""Minimum number of records between two."""


class Playhead:
    """Returns a recording as of any number of its records."""

    def __init__(self, whole: Recording) -> None:
        self.whole = whole
        self._checkpoints: dict[int, Recording] = {}
        self._here = Recording(losses=whole.losses, file=whole.file)
        self._position = 0

    def at(self, position: int) -> Recording:
        """The first `position` records. Later calls feed the returned recording or discard it."""
        position = max(0, min(position, len(self.whole.records)))
        if position < self._position:
            self._back(position)
        every = max(LEAST, len(self.whole.records) // CHECKPOINTS)
        while self._position < position:
            until = min(position, (self._position // every + 1) * every)
            self._here.feed(self.whole.records[self._position : until])
            self._position = until
            if until % every == 0 and until not in self._checkpoints:
                self._checkpoints[until] = fork(self._here)
        self._here.losses = self.whole.losses
        return self._here

    def _back(self, position: int) -> None:
        if len(self._checkpoints) > 2 * CHECKPOINTS:  # they were set while the trace was shorter
            kept = sorted(self._checkpoints)[::2]
            self._checkpoints = {place: self._checkpoints[place] for place in kept}
        found = max((place for place in self._checkpoints if place <= position), default=0)
        self._here = fork(self._checkpoints[found]) if found else Recording(file=self.whole.file)
        self._position = found


def fork(recording: Recording, known: dict[int, Any] | None = None) -> Recording:
    """A recording with the same records that grows independently, and so do its parts. What parts
    share, they still share."""
    known = {} if known is None else known
    if id(recording) not in known:
        copy = known[id(recording)] = Recording.__new__(Recording)
        for name, value in vars(recording).items():
            setattr(copy, name, _copied(value, known))
    found: Recording = known[id(recording)]
    return found


def _copied(value: Any, known: dict[int, Any]) -> Any:
    if isinstance(value, Recording):
        return fork(value, known)
    if isinstance(value, RecordedDecisions):
        return RecordedDecisions()  # it reads the records again when it is asked
    if isinstance(value, (dict, list)):
        if id(value) not in known:
            known[id(value)] = _copy_of(value, known)
        return known[id(value)]
    return value


def _copy_of(value: dict[Any, Any] | list[Any], known: dict[int, Any]) -> Any:
    if isinstance(value, defaultdict):
        found: defaultdict[Any, Any] = defaultdict(value.default_factory)
        found.update((key, _copied(inner, known)) for key, inner in value.items())
        return found
    if isinstance(value, dict):
        first = next(iter(value.values()), None)
        if isinstance(first, (Recording, list)):
            return {key: _copied(inner, known) for key, inner in value.items()}
        return dict(value)
    return list(value)
