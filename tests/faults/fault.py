"""What a planted fault is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A plausible slip in one place of the product, and who should notice it."""

    subject: str
    """What is wrong with it, in a few words."""
    file: str
    """From the root of the repository."""
    old: str
    """The right text, which occurs exactly once in the file."""
    new: str
    tests: tuple[str, ...]
    """Test files, one of which should fail; the cheapest first."""
