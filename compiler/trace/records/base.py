"""What every record is built from: the tagged base, locations, tensor descriptions, texts."""

from __future__ import annotations

import re
from typing import dataclass_transform

import msgspec

SCHEMA_VERSION = 1
"""Raised when a reader of the previous version could misread a trace; additions do not raise it."""

TextHash = str
"""Content hash of a text that a `Text` record in the same trace carries; "" where there is none."""

Size = int | str
"""A size or stride: a number, or a symbolic expression as torch prints it (`s77`, `2*s0`)."""


def kebab(name: str) -> str:
    """`GraphBreak` -> `graph-break`: the tag of a record in the trace."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Frozen(msgspec.StructMeta):
    """Tells type checkers what msgspec inherits: every record is frozen and keyword-only."""


class Record(
    msgspec.Struct,
    metaclass=Frozen,
    frozen=True,
    kw_only=True,
    tag_field="record",
    tag=kebab,
    omit_defaults=True,
):
    """One fact, written once, by the stage that knows it."""

    at: float = 0.0
    """Seconds since the recording started (monotonic clock); stamped by the writer."""


class Part(msgspec.Struct, metaclass=Frozen, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of a record that is never a line of its own."""


class Location(Part):
    """A place in Python source. Lines from 1, columns from 0 in UTF-8 bytes, ends exclusive."""

    file: str
    line: int
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None
    function: str = ""


class TensorMeta(Part):
    """What is known of a tensor without its data."""

    shape: tuple[Size, ...]
    dtype: str
    """torch's name without the prefix: `float32`, `bfloat16`, `int64`, `bool`."""
    stride: tuple[Size, ...] | None = None
    device: str = "cpu"
    bytes: int | None = None
    """Bytes of the elements (numel * itemsize); None where a size is symbolic."""
    requires_grad: bool = False


class Advice(Part):
    """What to do about a finding. `by` says whose words these are."""

    text: str
    """One sentence."""
    code: str = ""
    """The changed line or the call to add, when there is one that can be pasted."""
    by: str = "tcw"
    """`tcw` or `torch`."""


class Text(Record):
    """A large text, stored once; other records carry its hash."""

    hash: TextHash
    body: str
