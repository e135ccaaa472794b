"""A finished run of a driven recording, with everything needed to time it later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.runs import Model
from tcw.compiler.trace.records import Engine, RandomOperation, Record, Settings


@dataclass
class FinishedRun:
    """One run at its end. `kept` holds live objects of this process."""

    number: int
    """The number in its `Run` record."""
    settings: Settings
    """Its settings, with all overrides that were in force at its end, including those chosen during
    the run."""
    sets: Sequence[InputSet]
    """The arguments of each call; `InputSet.fresh` makes the copy that a call may change."""
    records: tuple[Record, ...] = ()
    """The records of the run that a comparison needs, in order."""
    kept: dict[str, Any] = field(default_factory=dict)
    """`Recorder.kept` of the run: what stages stored there for timing, by graph id."""
    random_operations: tuple[RandomOperation, ...] = ()
    """What its graphs draw."""
    status: str = "ok"
    """Its outcome, as in `End.status`; only an `ok` run can be timed as a whole."""
    compile_again: Callable[[], dict[Engine, Model]] | None = None
    """Compiles and calls all input sets again, unrecorded and with this run's settings and
    overrides. It starts from a copy of the model as it was before the run, or from the run's own
    model if that cannot be copied. The compiled models (engine -> model) stay callable next to
    those of another run that was compiled again after it, until Dynamo is reset. Call
    `torch._dynamo.reset()` before the first of them. None if the run did not get that far."""

    def all(self, kind: type[Record]) -> list[Any]:
        """Its records of one kind, in order."""
        return [record for record in self.records if isinstance(record, kind)]
