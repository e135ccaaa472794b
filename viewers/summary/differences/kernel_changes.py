"""Which kernels of a run are new, changed, split or merged, and what changed in their code."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

from tcw.compiler.trace import matching
from tcw.compiler.trace.matching import Match
from tcw.compiler.trace.records import Kernel, SchedulerNode
from tcw.viewers.labels import kernel_label
from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences.alignment import Alignment
from tcw.viewers.summary.differences.lines import TextDiff, diff_lines
from tcw.viewers.summary.own_words import are_ranks, common
from tcw.viewers.words import listed


@dataclass(frozen=True, kw_only=True)
class KernelChange(Match):
    """One piece of work, and the kernels that do it on either side."""

    base: Recording = field(repr=False, compare=False)
    run: Recording = field(repr=False, compare=False)

    @property
    def nests(self) -> tuple[int | None, int | None]:
        """Loop nests in the kernels of each side; None if not recorded, or if all are calls."""
        before, after = (
            sum(kernel.loop_nests for kernel in side) or None for side in (self.before, self.after)
        )
        return before, after

    @property
    def name(self) -> str:
        """`k2 softmax`, `k2, k3 softmax`: ids of the run, or of the base if the kernel is gone."""
        return f"{listed([kernel.id for kernel in self._kernels])} {self.label}"

    @property
    def _kernels(self) -> tuple[Kernel, ...]:
        return self.after or self.before

    @property
    def label(self) -> str:
        return kernel_label(self._kernels[0])

    @property
    def language(self) -> str:
        return self._kernels[0].language

    @property
    def generated(self) -> bool:
        return self._kernels[0].generated

    @cached_property
    def code(self) -> TextDiff:
        """A line diff of both sides' code; several kernels one below the other."""
        return diff_lines(*self.texts)

    @cached_property
    def texts(self) -> tuple[list[str], list[str]]:
        return (
            [line for kernel in self.before for line in _code(self.base, kernel).split("\n")],
            [line for kernel in self.after for line in _code(self.run, kernel).split("\n")],
        )


def kernel_changes(alignment: Alignment, by_lines: bool) -> tuple[KernelChange, ...]:
    """All kernels of both runs. `by_lines` matches by user lines, for engines that differ, where
    origins cannot be matched."""
    base, run = alignment.base, alignment.run
    first, second = (list(recording.kernels.values()) for recording in (base, run))
    if by_lines:
        work = matching.work_by_lines(first), matching.work_by_lines(second)
    else:
        work = (
            matching.work_by_origins(
                first, matching.identities(base.all(SchedulerNode), alignment.node), alignment.node
            ),
            matching.work_by_origins(second, matching.identities(run.all(SchedulerNode))),
        )
    plain = common if are_ranks(base, run) else str
    code = (
        {k.id: plain(_compared(base, k)) for k in first},
        {k.id: plain(_compared(run, k)) for k in second},
    )
    return tuple(
        KernelChange(match.graph, match.before, match.after, match.same, base=base, run=run)
        for match in matching.match(first, second, *work, *code)
    )


def _compared(recording: Recording, kernel: Kernel) -> str:
    """What has to be equal for two kernels to be the same: the code without its name and comments;
    for a call, its target."""
    if not kernel.text:
        return kernel.name
    return re.sub(r"^\s*(//|#(?!include|pragma)).*\n?", "", _code(recording, kernel), flags=re.M)


def _code(recording: Recording, kernel: Kernel) -> str:
    if not kernel.text:
        return f"{kernel.name}(…)"
    return recording.text(kernel.text).replace(kernel.name, "kernel").rstrip("\n")
