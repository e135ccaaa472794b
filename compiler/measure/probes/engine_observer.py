"""Listeners called at each step of a graph of our own engine, with the tensors at that moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tcw.compiler.codegen.launcher.segment import KernelSite
from tcw.compiler.measure.probes.aten_probe import tensors_of
from tcw.compiler.measure.probes.engine_memory import ArtifactMemory
from tcw.compiler.measure.probes.engine_unit import Observer
from tcw.compiler.measure.probes.graph_probe import GraphStep, See


class EngineObserver:
    """Turns the reports of a graph's code at its steps into calls of `see` and `before`."""

    def __init__(
        self,
        memory: ArtifactMemory,
        steps: Sequence[GraphStep],
        sites: Sequence[tuple[int, KernelSite]],
        see: See,
        before: See | None,
    ) -> None:
        """`sites`: each kernel call in the unit, with the index of its step."""
        self.memory = memory
        self.steps = steps
        self.sites = sites
        self.see = see
        self.before = before
        self.passed: Mapping[str, int] = {}
        self.failed: BaseException | None = None
        """The exception that `see` or `before` raised."""
        self.callback = Observer(self._kernel)
        """For the unit: it must live as long as the unit may call it."""

    def begin(self, passed: Mapping[str, int], symbols: Mapping[str, int]) -> None:
        """A call of the graph begins. `passed` are its numeric arguments, `symbols` the known
        values of size symbols."""
        self.failed = None
        self.passed = passed
        self.memory.numbers = dict(symbols)

    def starts(self, index: int, tensors: Mapping[str, Any]) -> None:
        """A call into ATen begins, with these arguments by name."""
        self._take_numbers(tensors)
        if self.before is not None:
            self._say(self.before, index, {**self.passed, **tensors_of(tensors)})

    def ended(self, index: int, tensors: Mapping[str, Any]) -> None:
        """The call into ATen is over; its results are included."""
        self._say(self.see, index, tensors_of(tensors))

    def _kernel(self, call: int, over: int, pointers: Any, numbers: Any) -> None:
        try:
            index, site = self.sites[call]
            if not over:
                self._take_numbers({name: numbers[i] for i, name in enumerate(site.symbols)})
            about = self.memory.steps[index]
            if over:
                names = dict.fromkeys([n for n in about.reads if n not in about.ends])
                names.update(dict.fromkeys(about.writes))
                self._say(self.see, index, self.memory.at(index, names, pointers))
            elif self.before is not None:
                read = self.memory.at(index, about.reads, pointers)
                self._say(self.before, index, {**self.passed, **read})
        except BaseException as problem:  # it must not propagate through C
            self.failed = self.failed or problem

    def _take_numbers(self, values: Mapping[str, Any]) -> None:
        numbers = {name: one for name, one in values.items() if isinstance(one, int)}
        self.memory.numbers.update(numbers)

    def _say(self, listener: See, index: int, tensors: Mapping[str, Any]) -> None:
        if self.failed is None:
            try:
                listener(self.steps[index], tensors)
            except BaseException as problem:  # the user's call continues to its end
                self.failed = problem
