"""What a page may send over its web socket, decoded into exactly these types.

Unknown fields and elements are refused, not skipped, so no value nests deeper than the types.
"""

from __future__ import annotations

import msgspec

MESSAGE_BYTES = 1 << 20
"""The longest message, characters: a paste of a megabyte."""
WIDEST, TALLEST = 1000, 500
"""The largest terminal, in cells; a larger window is only partly drawn."""


class BadMessage(ValueError):
    """A message that our pages never send."""


class _Message(msgspec.Struct, array_like=True, forbid_unknown_fields=True, tag=str.lower):
    """A JSON array whose first element is the name of the type."""


class Stdin(_Message):
    """Keys, mouse events and pastes, as a terminal sends them."""

    text: str


class TerminalSize(msgspec.Struct, forbid_unknown_fields=True):
    """Size of the terminal, in cells."""

    width: int
    height: int


class Resize(_Message):
    """The terminal has a new size."""

    size: TerminalSize


class Ping(_Message):
    """The page measures the round-trip time."""

    text: str


class Focus(_Message):
    """The terminal got the focus."""


class Blur(_Message):
    """The terminal lost the focus."""


_PASTE_BEGINS, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"

Message = Stdin | Resize | Ping | Focus | Blur

_decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)


def decode(text: str) -> Message:
    """The message in `text`. Raises BadMessage."""
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadMessage(str(error)) from error


class Typed:
    """What one page has sent as its terminal's input."""

    def __init__(self) -> None:
        self._tail = ""

    def add(self, text: str) -> None:
        """Raises BadMessage at a paste without an end, which our pages send whole: the workbench
        would take all later input as a part of it."""
        seen = self._tail + text
        if seen.rfind(_PASTE_BEGINS) > seen.rfind(_PASTE_ENDS):
            raise BadMessage("a paste without an end")
        self._tail = seen[1 - len(_PASTE_BEGINS) :]


def fitting(width: int, height: int) -> tuple[int, int]:
    """The size of the terminal that is drawn in a window of `width` × `height` cells."""
    return min(max(width, 2), WIDEST), min(max(height, 2), TALLEST)
