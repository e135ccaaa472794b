"""The processes of one folder, which the workbench shows one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from viewers.places import FileNames
from viewers.summary.place import Place
from viewers.summary.ranks.divergence import Divergence, first_divergence
from viewers.text.processes import Process, Told, Unread, ranks_of, told


class Several:
    """At least one process that was read; `unread`: logs that were only looked through."""

    def __init__(self, processes: Sequence[Process], unread: Sequence[Unread] = ()) -> None:
        self.processes = tuple(processes)
        self.unread = tuple(unread)

    @cached_property
    def told(self) -> Told:
        """Processes that did the same."""
        return told(self.processes, self.unread)

    @property
    def usual(self) -> Process:
        """The first of those that did the same as most."""
        return self.told.groups[0][0]

    @cached_property
    def divergence(self) -> Divergence | None:
        """The first thing that ranks did differently."""
        ranks = ranks_of(self.processes, self.unread)
        return first_divergence(ranks) if len(ranks) > 1 else None

    @property
    def place(self) -> Place | None:
        """The line of the first difference."""
        return self.divergence.place if self.divergence is not None else None

    @cached_property
    def names(self) -> FileNames:
        return self.told.first.names
