"""A run's settings, and the choices made while it waited."""

from __future__ import annotations

from itertools import pairwise

from msgspec import structs

from tcw.compiler.trace.records import Resumed, Settings, Waiting
from tcw.viewers.recording import Recording


def settings_of(recording: Recording) -> Settings | None:
    """The run's settings, with the overrides chosen while it waited."""
    settings = recording.run_settings
    if settings is None:
        return None
    return structs.replace(settings, overrides={**settings.overrides, **_chosen(recording)})


def _chosen(recording: Recording) -> dict[str, str]:
    """Decision id -> the choice with which the user resumed the compile."""
    found: dict[str, str] = {}
    waits = [one for one in recording.records if isinstance(one, (Waiting, Resumed))]
    for wait, answer in pairwise(waits):
        if (
            isinstance(wait, Waiting)
            and wait.decision
            and isinstance(answer, Resumed)
            and answer.choice
        ):
            found[wait.decision] = answer.choice
    return found
