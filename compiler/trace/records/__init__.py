"""Everything that can be recorded, one file per stage. A record is known by being defined in one of
the files that are imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Union

from tcw.compiler.trace.records.autograd import *
from tcw.compiler.trace.records.base import *
from tcw.compiler.trace.records.base import Record
from tcw.compiler.trace.records.capture import *
from tcw.compiler.trace.records.decisions import *
from tcw.compiler.trace.records.fixes import *
from tcw.compiler.trace.records.graph import *
from tcw.compiler.trace.records.inductor import *
from tcw.compiler.trace.records.live import *
from tcw.compiler.trace.records.loops import *
from tcw.compiler.trace.records.measure import *
from tcw.compiler.trace.records.profile import *
from tcw.compiler.trace.records.session import *

KINDS: tuple[type[Record], ...] = tuple(
    sorted(Record.__subclasses__(), key=lambda kind: kind.__name__)
)
"""The type of every record."""

if TYPE_CHECKING:
    AnyRecord = Record
else:
    AnyRecord = Union[KINDS]
    """What a trace is decoded to: one of `KINDS`, told apart by its tag."""
