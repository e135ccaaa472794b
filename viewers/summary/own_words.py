"""What each process has of its own in the texts that torch writes: addresses, its device's number.

It is another in every process, and another on each rank, which uses a GPU of its own.
"""

from __future__ import annotations

import re

from tcw.viewers.recording import Recording

_OWN = re.compile(
    r"0x[0-9a-fA-F]{4,16}|\b\d{9,20}\b|(?:cuda|hip|xpu):\d+|\b(?:index|device)=\d+|stream\d+|"
    r"_DeviceGuard\(\d+\)|set_device\(\d+\)"
)


_OBJECT_ID = re.compile(r"(?:0x[0-9a-f]{4,}|(?<!\d)\d{9,}(?!\d))(?:_c\d+\b)?")
"""The memory address in a name made by torch, with the number of the compile in this process, such
as `139837612_c0` of `__optimizer_139837612_c0`."""

_NAME = r"(?P<name>(?:[\w.]|<\w+>)+)"
_REPRS = (
    re.compile(rf"<{_NAME} object at 0x[0-9a-f]+>"),
    re.compile(rf"<(?:function|bound method|built-in \w+) {_NAME}(?: of [^<>]*)?(?: at 0x\w+)?>"),
)


def without_addresses(text: str) -> str:
    """The text with `…` for memory addresses."""
    return _OBJECT_ID.sub("…", text)


def without_reprs(text: str) -> str:
    """The text with the names of functions and classes for their reprs: `Net.act` of
    `<bound method Net.act of <m.Net object at 0x7fd2…>>`."""
    for pattern in _REPRS:
        text = pattern.sub(r"\g<name>", text)
    return text


def common(text: str) -> str:
    """A text without what each process has of its own."""
    return _OWN.sub("#", text)


def are_ranks(one: Recording, other: Recording) -> bool:
    """Whether the two are different ranks."""
    return one.start is not None and other.start is not None and one.start.rank != other.start.rank
