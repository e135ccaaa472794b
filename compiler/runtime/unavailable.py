"""What says that compiled code cannot be built or loaded on this machine."""

from __future__ import annotations


class Unavailable(Exception):
    """Units cannot be built or loaded here. The message says what to do about it."""
