"""What a reader of a trace or log skipped, so that whoever shows it can say so."""

from __future__ import annotations

from dataclasses import dataclass, field

NAMED = 5
"""Line numbers that are kept of each kind of loss."""


@dataclass
class Losses:
    """What a reader skipped, and what is missing."""

    damaged: int = 0
    """Lines that are not a JSON object, do not match their record, or are too long."""
    unknown: dict[str, int] = field(default_factory=dict)
    """Tags that this version does not know, with their counts: written by a newer tcw."""
    doubled: int = 0
    """Records that are in the trace more than once; each is read once."""
    foreign: int = 0
    """Records of another recording in the same file, or after the end of this one."""
    written: int = 0
    """Lines that were written, according to the end record; 0 if it does not say."""
    missing: int = 0
    """Lines that were written and are missing."""
    added: int = 0
    """Records before the end that the recording did not write, without duplicates."""
    partial: bool = False
    """Whether the last line is incomplete: the writer was killed, or is still writing."""

    first_damaged: list[int] = field(default_factory=list)
    """The first of the damaged lines, by their numbers from 1."""
    bytes: int = 0
    """Bytes of what is damaged in a torch log; 0 for a trace."""
    archive: bool = False
    """Whether the rest of the compressed file cannot be unpacked."""
    altered: int = 0
    """Payloads of a torch log that do not match their checksum; none of them is read."""
    first_altered: list[int] = field(default_factory=list)
    """The lines of the first of them."""

    def alter(self, line: int) -> None:
        """Count a payload that does not match its checksum."""
        self.altered += 1
        if len(self.first_altered) < NAMED:
            self.first_altered.append(line)

    def damage(self, line: int, count: int = 1) -> None:
        """Count damaged lines, from `line` on."""
        self.damaged += count
        if len(self.first_damaged) < NAMED:
            self.first_damaged.append(line)

    @property
    def total(self) -> int:
        """Lines of the file that were skipped."""
        return self.damaged + sum(self.unknown.values()) + self.doubled + self.foreign

    def __bool__(self) -> bool:
        return bool(self.total or self.missing or self.added or self.altered or self.archive)
