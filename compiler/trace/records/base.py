"""What every record is built from: the tagged base, locations, tensor descriptions, texts."""

from __future__ import annotations

import re
from typing import Annotated, Literal, dataclass_transform

import msgspec
from msgspec import Meta

SCHEMA_VERSION = 2
"""Raised when a reader of the previous version could misread a trace; additions do not raise it."""

TextHash = str
"""Content hash of a text in a `Text` record of the same trace; "" if there is none."""

# A trace may come from anyone: every number in a record has bounds, checked when decoded. They are
# far above what a recording writes, and small enough to compute with.
MOST = 2**63 - 1

Index = Annotated[int, Meta(ge=0, le=10_000_000)]
"""Which one of several, from 0 or 1: a step, a round, a depth, a run."""

Line = Annotated[int, Meta(ge=0, le=2**31 - 1)]
"""A line or column of a text: the range of a C `int`, as in Python's code objects."""

Count = Annotated[int, Meta(ge=0, le=MOST)]
"""A count, or the number of a call or thread: views only compute with it."""

Bytes = Annotated[int, Meta(ge=0, le=MOST)]

Whole = Annotated[int, Meta(ge=-MOST - 1, le=MOST)]
"""A signed 64-bit number of the user's program."""

Seconds = Annotated[float, Meta(ge=-1e10, le=1e10)]
"""A time or a difference of times: at most 300 years, so that a time since 1970 fits."""

Milliseconds = Annotated[float, Meta(ge=-1e12, le=1e12)]

UnixTime = Annotated[float, Meta(ge=0, le=1e11)]
"""Seconds since 1970: until the year 5138."""

Number = Annotated[float, Meta(ge=-1e30, le=1e30)]
"""A ratio, a rate or a score."""

Noise = Annotated[float, Meta(ge=0.0, le=1e30)]
"""The half width within which a difference does not count: seconds, or a share of the larger."""

Ratio = Annotated[float, Meta(ge=1e-30, le=1e30)]
"""One time over another."""

Error = float
"""How far two results are apart. Finite: an infinite error is recorded as the largest float64.
Views only compare and print it."""

Size = Whole | str
"""A size or stride: a number, or a symbolic expression as torch prints it (`s77`, `2*s0`)."""


def kebab(name: str) -> str:
    """`GraphBreak` -> `graph-break`: the tag of a record in the trace."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Frozen(msgspec.StructMeta):
    """Tells type checkers what msgspec inherits: records are frozen and keyword-only."""


class Record(
    msgspec.Struct,
    metaclass=Frozen,
    frozen=True,
    kw_only=True,
    tag_field="record",
    tag=kebab,
    omit_defaults=True,
):
    """One fact, written once by the stage that knows it."""

    at: Seconds = 0.0
    """Seconds since the recording started (monotonic clock); stamped by the writer."""


class Part(msgspec.Struct, metaclass=Frozen, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a record, never a line of its own."""


class Location(Part):
    """A location in Python source. Lines from 1, columns from 0 in UTF-8 bytes, ends exclusive."""

    file: str
    line: Line
    end_line: Line | None = None
    column: Line | None = None
    end_column: Line | None = None
    function: str = ""


class TensorMeta(Part):
    """The metadata of a tensor."""

    shape: tuple[Size, ...]
    dtype: str
    """torch's name without the prefix: `float32`, `bfloat16`, `int64`, `bool`."""
    stride: tuple[Size, ...] | None = None
    device: str = "cpu"
    bytes: Bytes | None = None
    """Bytes of the elements (numel * itemsize); None if a size is symbolic."""
    requires_grad: bool = False


class SourceChange(Part):
    """Lines of a file of the user's that a fix replaces."""

    file: str
    """Absolute."""
    line: Line
    end_line: Line
    """The last replaced line; `line - 1` inserts before `line`."""
    text: str
    """The new lines with their indent, without a final newline; "" removes the old ones."""


class Advice(Part):
    """What to do about a finding. `by` says whose advice it is."""

    text: str
    """One sentence."""
    code: str = ""
    """The changed line or the call to add, if there is one to paste."""
    by: str = "tcw"
    """`tcw` or `torch`."""
    options: tuple[str, ...] = ()
    """Options of tcw that do the same without a changed source: `--mark-dynamic`, `x:1`."""
    edit: str = ""
    """The kind of edit in `compiler/protocol/edits` that does it: `always`."""
    place: Literal["", "statement", "above", "call"] = ""
    """Where `code` goes, besides its lines that are torch settings or options of `torch.compile`:
    in place of the statement of the finding, above it, or before each call, with the arguments by
    name. "" for a place that is only described."""
    changes: tuple[SourceChange, ...] = ()
    """What to replace in the source, where that is not one statement at the finding; `code` is its
    new lines, but with `place` "call" what goes before each call besides."""
    effect: str = ""
    """How the program behaves otherwise with it, beyond what a trial sees; "" for not at all."""


class Text(Record):
    """A large text, stored once; other records refer to it by hash."""

    hash: TextHash
    body: str
