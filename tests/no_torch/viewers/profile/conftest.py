from __future__ import annotations

from tcw.compiler.trace.records import AnyRecord
from tcw.viewers.recording import Recording
from tcw.viewers.summary.profile import Profile, profile_of
from tcw.viewers.summary.profile.causes.cause import Cause


def profiled(records: list[AnyRecord]) -> Profile:
    found = profile_of(Recording(records))
    assert found is not None
    return found


def cause(records: list[AnyRecord], kind: str) -> Cause:
    """The first cause of a kind."""
    found = profiled(records).causes
    return next(one for one in found if one.kind == kind)
