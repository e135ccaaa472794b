"""What each process has of its own in the texts that torch writes: addresses, its device's number.

Ranks that do the same differ in it, since each rank uses a GPU of its own.
"""

from __future__ import annotations

import re

from tcw.viewers.recording import Recording

_OWN = re.compile(
    r"0x[0-9a-fA-F]{4,16}|\b\d{9,20}\b|(?:cuda|hip|xpu):\d+|\b(?:index|device)=\d+|stream\d+|"
    r"_DeviceGuard\(\d+\)|set_device\(\d+\)"
)


def common(text: str) -> str:
    """A text without what each process has of its own."""
    return _OWN.sub("#", text)


def are_ranks(one: Recording, other: Recording) -> bool:
    """Whether the two are different ranks."""
    return one.start is not None and other.start is not None and one.start.rank != other.start.rank
