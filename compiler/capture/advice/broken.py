"""What advice is given on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Broken:
    """One graph break: torch's words and the user's line."""

    gb: str
    type: str
    context: str = ""
    explanation: str = ""
    hints: tuple[str, ...] = ()
    source_line: str = ""
    opcode: str = ""
