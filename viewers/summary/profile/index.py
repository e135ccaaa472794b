"""The records of one profiled call, by their ids."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from tcw.compiler.protocol.decision import ENGINE, engine_of
from tcw.compiler.trace.provenance import Provenance
from tcw.compiler.trace.records import (
    Account,
    CallProfile,
    CallTimeline,
    Ceilings,
    CompiledStep,
    Decided,
    EagerOperation,
    Graph,
    GraphBreak,
    Kernel,
    Location,
    Node,
    Region,
)
from tcw.viewers.collected import grouped
from tcw.viewers.recording import Recording

_PHASES = ("", "forward", "backward", "step")


class FusedPair(NamedTuple):
    """A pair that was fused."""

    graph: str
    id: str
    """Id of its decision."""
    members: frozenset[str]
    """Nodes of the lowered graph, or scheduler nodes."""
    words: str


class Index:
    """One profiled call of one engine, or the optimizer's step if it was measured separately. Never
    raises: what was not recorded is empty."""

    def __init__(self, recording: Recording, head: CallProfile, optimizer: bool = False) -> None:
        self.recording = recording
        self.head = head
        apart = "step" not in head.what

        def mine(one: Region | CompiledStep | EagerOperation) -> bool:
            return one.call == head.call and (apart and one.phase == "step") is optimizer

        self.regions = tuple(region for region in recording.all(Region) if mine(region))
        self.steps = {step.id: step for step in recording.all(CompiledStep) if mine(step)}
        self.operations = {
            operation.id: operation
            for operation in recording.all(EagerOperation)
            if mine(operation)
        }
        accounts = (account for account in recording.all(Account) if account.call == head.call)
        self.accounts = tuple(sorted(accounts, key=lambda account: _PHASES.index(account.phase)))
        self.timelines = tuple(
            timeline for timeline in recording.all(CallTimeline) if timeline.call == head.call
        )
        self.region_of = {
            name: region for region in self.regions for name in (*region.steps, *region.operations)
        }
        """Id of a step or an operation -> its region."""

    def account(self, side: str) -> Account | None:
        """Of one side's whole call."""
        accounts = (
            account for account in self.accounts if account.side == side and not account.phase
        )
        return next(accounts, None)

    @cached_property
    def ceilings(self) -> Ceilings | None:
        """The ceilings of the device that the call ran on, if they were measured."""
        cuda = self.head.clock == "device"
        found = [
            ceilings
            for ceilings in self.recording.all(Ceilings)
            if (ceilings.kind == "cuda") is cuda
        ]
        return found[-1] if found else None

    @cached_property
    def compiled_is_known(self) -> bool:
        """Whether the steps of the compiled graphs were measured. If not, a region without steps
        means nothing."""
        if not self.recording.kernels:
            return True
        return not self._is_unmeasured("compiled") and any(s.graph for s in self.steps.values())

    @cached_property
    def some_steps_are_known(self) -> bool:
        """Whether any steps of compiled graphs were timed."""
        return any(step.graph and step.time is not None for step in self.steps.values())

    @cached_property
    def eager_is_known(self) -> bool:
        """Whether the eager operations were measured."""
        if self._is_unmeasured("eager") and self.head.unmeasured_sides:
            return False
        working = [operation for operation in self.operations.values() if operation.launches]
        return not working or any(operation.time is not None for operation in working)

    def _is_unmeasured(self, side: str) -> bool:
        sides = self.head.unmeasured_sides
        return bool(self.head.unmeasured) and (side in sides or not sides)

    @cached_property
    def between_is_known(self) -> bool:
        """Whether what runs outside all graphs was measured. If nothing of it was, a region without
        steps may run there."""
        return any(step.kind == "eager" for step in self.steps.values())

    @cached_property
    def breaks(self) -> int:
        """Graph breaks: what eager ran there runs outside all graphs."""
        return len(self.recording.all(GraphBreak))

    @cached_property
    def unplaced(self) -> int:
        """Compiled steps whose computation is not in the trace, such as those of a graph served by
        a cache: any region without a counterpart may belong to them."""
        return sum(
            step.kind != "eager" and not self._is_placed(step) for step in self.steps.values()
        )

    def _is_placed(self, step: CompiledStep) -> bool:
        kernel = self.kernel_of(step)
        return kernel is not None and bool(kernel.origins or kernel.locations)

    @cached_property
    def provenance(self) -> Provenance:
        return Provenance(self.recording.records)

    @cached_property
    def fusions(self) -> tuple[FusedPair, ...]:
        """Pairs that were fused, in the order in which they were decided."""
        return tuple(_fusions(self.recording))

    @cached_property
    def steps_of_kernel(self) -> dict[str, list[CompiledStep]]:
        """Id of a kernel -> its steps: several if it is called several times."""
        return grouped((step.kernel, step) for step in self.steps.values() if step.kernel)

    def steps_in(self, region: Region) -> tuple[CompiledStep, ...]:
        return tuple(self.steps[name] for name in region.steps if name in self.steps)

    def operations_in(self, region: Region) -> tuple[EagerOperation, ...]:
        return tuple(self.operations[name] for name in region.operations if name in self.operations)

    def kernel_of(self, step: CompiledStep) -> Kernel | None:
        return self.recording.kernels.get(step.kernel)

    def captured(self) -> tuple[Graph, ...]:
        return tuple(graph for graph in self.recording.graphs.values() if graph.kind == "captured")

    def nodes_of(self, step: CompiledStep) -> list[Node]:
        """The recorded nodes that a step computes."""
        kernel = self.kernel_of(step)
        known = self.recording.nodes(kernel.graph) if kernel is not None else {}
        return [known[name] for name in (kernel.origins if kernel else ()) if name in known]

    def locations_of(self, step: CompiledStep) -> tuple[Location, ...]:
        """The user lines that a step computes; empty for one outside all graphs."""
        kernel = self.kernel_of(step)
        return kernel.locations if kernel else ()


def _fusions(recording: Recording) -> Iterable[FusedPair]:
    for decided in recording.all(Decided):
        if decided.kind != "fuse" or decided.choice != "fuse":
            continue
        names = decided.id.rpartition("/")[2].partition("#")[0]  # `exp+sum` of `…/fuse/exp+sum#2`
        pair = decided.pair
        words = names.replace("+", " and ")
        if pair is not None and engine_of(decided.id) != ENGINE:
            members = frozenset((*pair.first.split("_"), *pair.second.split("_")))
            yield FusedPair(pair.graph, decided.id, members, words)
        elif "apart" in decided.choices:
            yield FusedPair(decided.graph, decided.id, frozenset(names.split("+")), words)


def newest(recording: Recording) -> Index | None:
    """The last profiled call; None if there is none."""
    head = recording.last(CallProfile)
    return None if head is None else Index(recording, head)
