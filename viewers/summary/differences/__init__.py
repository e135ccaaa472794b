"""How two recordings of one model differ: two runs of a trace, or two traces.

Pure functions of both. Kernels are matched by what they compute, decisions by their ids. What is
equal is counted, not listed. Code is compared only when someone looks at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tcw.compiler.trace.records import Run, WhatIf
from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences.alignment import Alignment
from tcw.viewers.summary.differences.decision_changes import (
    DecisionChanges,
    Veto,
    decision_changes,
    vetoes_of,
)
from tcw.viewers.summary.differences.effects import Effect, effects_of
from tcw.viewers.summary.differences.fact_changes import FactChanges
from tcw.viewers.summary.differences.figures import (
    Figure,
    SettingChange,
    engines_of,
    fact_counts,
    figures,
    graph_changes,
    guard_changes,
    setting_changes,
)
from tcw.viewers.summary.differences.kernel_changes import KernelChange, kernel_changes
from tcw.viewers.summary.differences.measured import (
    MeasuredDifference,
    WhatIfVerdict,
    measured_of,
    whatif_verdict,
)


@dataclass(frozen=True)
class Difference:
    """A run compared with its base."""

    base: Recording
    run: Recording
    because: str
    """What the user changed: `veto tcw/0/0/forward/fuse/a+b`; "" if it was not recorded."""
    settings: tuple[SettingChange, ...]
    engines: tuple[str, ...]
    """Of base and run. If they differ, kernels are matched by user lines, and decisions are not
    compared: they concern different nodes."""
    figures: tuple[Figure, ...]
    """All of them, changed or not."""
    graphs: tuple[Figure, ...]
    breaks: tuple[Figure, ...]
    recompiles: tuple[Figure, ...]
    guards: tuple[Figure, ...]
    decisions: DecisionChanges
    kernels: tuple[KernelChange, ...]
    """All pieces of work, including those whose code is equal."""
    vetoes: tuple[Veto, ...]
    measured: tuple[MeasuredDifference, ...]
    alignment: Alignment = field(repr=False, compare=False)
    facts: FactChanges = field(repr=False, compare=False)

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        """What differs in words, by cost, each with its cause."""
        return effects_of(self, self.alignment)

    @property
    def changed_kernels(self) -> tuple[KernelChange, ...]:
        """Changed kernels, those predicted for a GPU last."""
        kernels = [kernel for kernel in self.kernels if kernel.kind != "same"]
        return tuple(
            sorted(kernels, key=lambda change: (change.after or change.before)[0].predicted)
        )

    @cached_property
    def verdict(self) -> WhatIfVerdict:
        return whatif_verdict(self)

    @property
    def nothing(self) -> bool:
        """Whether the two are equal in everything compared except times."""
        counted = any(
            figure.changed for figure in self.figures if figure.unit not in ("seconds", "error")
        )
        lists = (self.graphs, self.breaks, self.recompiles, self.guards, self.decisions.changes)
        return not (counted or any(lists) or self.decisions.followed or self.changed_kernels)


def difference(base: Recording, run: Recording, measured: Sequence[WhatIf] = ()) -> Difference:
    """Compare two recordings. `measured`: the measurements of these two runs only."""
    engines = engines_of(base, run)
    last = run.last(Run)
    alignment = Alignment(base, run)
    facts = FactChanges(alignment)
    whole = all(facts.complete)
    kernels = kernel_changes(alignment, by_lines=engines[0] != engines[1]) if whole else ()
    decided = whole and engines[0] == engines[1]
    return Difference(
        base=base,
        run=run,
        because=last.because if last else "",
        settings=setting_changes(base, run),
        engines=engines,
        figures=figures(base, run, facts),
        graphs=graph_changes(base, run) if whole else (),
        breaks=fact_counts(facts, "break", alignment),
        recompiles=fact_counts(facts, "recompile", alignment),
        guards=guard_changes(base, run) if whole else (),
        decisions=decision_changes(alignment) if decided else DecisionChanges((), 0),
        kernels=kernels,
        vetoes=vetoes_of(run),
        measured=measured_of(measured, kernels),
        alignment=alignment,
        facts=facts,
    )
