"""Everything that can be recorded, one file per stage. A record is known by being defined in one of
the files that are imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Union

from compiler.trace.records.autograd import *
from compiler.trace.records.base import *
from compiler.trace.records.base import Record
from compiler.trace.records.capture import *
from compiler.trace.records.decisions import *
from compiler.trace.records.graph import *
from compiler.trace.records.inductor import *
from compiler.trace.records.live import *
from compiler.trace.records.loops import *
from compiler.trace.records.measure import *
from compiler.trace.records.profile import *
from compiler.trace.records.session import *

KINDS: tuple[type[Record], ...] = tuple(
    sorted(Record.__subclasses__(), key=lambda kind: kind.__name__)
)
"""The type of every record."""

if TYPE_CHECKING:
    AnyRecord = Record
else:
    AnyRecord = Union[KINDS]
    """What a trace is decoded to: one of `KINDS`, told apart by its tag."""
