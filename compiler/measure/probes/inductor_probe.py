"""The probe of a graph that Inductor compiled: its generated wrapper, instrumented.

The wrapper is compiled a second time with the clock's functions in it (`wrapper_code`), into the
globals of the generated module: it runs the same kernels. Line numbers stay those of the module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType, MethodType
from typing import Any, Protocol

import torch

from compiler.measure.kernels import NotAlone
from compiler.measure.probes import wrapper_code
from compiler.measure.probes.clock import Clock
from compiler.measure.probes.graph_probe import GraphStep, See
from compiler.measure.probes.wrapper_code import NoSteps, Result, WrapperCode

Call = Callable[[list[Any]], Any]


class Live(Protocol):
    """What a probe needs of a generated module (`compiler.measure.inductor_graphs`)."""

    module: Any
    instead: Call | None
    """What runs in place of the wrapper, while it is set."""
    source: str

    @property
    def call(self) -> Call:
        """The wrapper as it was generated."""
        ...

    @property
    def kernels(self) -> Any: ...


class InductorProbe:
    """A `GraphProbe`. Partitions that a CUDA graph replays are one step each, `partition_0`."""

    def __init__(self, graph: str, live: Live) -> None:
        self.graph = graph
        self.whole = ""
        """Why there are no steps: then only the whole graph can be timed. Known after `steps`."""
        self._live = live
        self._code: WrapperCode | None = None

    @property
    def steps(self) -> Sequence[GraphStep]:
        return self._instrumented().steps

    @contextmanager
    def timing(self, clock: Clock, base: int) -> Iterator[None]:
        code = self._instrumented()
        names = vars(self._live.module)
        names[wrapper_code.START] = clock.start
        names[wrapper_code.STOP] = clock.stop
        names[wrapper_code.BASE] = base
        call = self._function(code.timed, wrapper_code.TIMED) or self._live.call
        start, stop = clock.start, clock.stop

        def timed(arguments: list[Any]) -> Any:
            start(base)
            try:
                return call(arguments)
            finally:
                stop(base)

        with self._instead(timed):
            yield

    @contextmanager
    def observing(self, see: See, before: See | None = None) -> Iterator[None]:
        """`before` is called before each step, with all names of its function. Raises `NotAlone`
        where the code cannot be taken apart."""
        code = self._instrumented()
        call = self._function(code.observed, wrapper_code.OBSERVED)
        if call is None:
            raise NotAlone(self.whole)
        steps = code.steps

        def seen(index: int, variables: Mapping[str, Any]) -> None:
            see(steps[index], tensors_of(variables, code.results.get(index, ())))

        def starts(index: int, variables: Mapping[str, Any]) -> None:
            if before is not None:
                before(steps[index], tensors_of(variables))

        names = vars(self._live.module)
        names[wrapper_code.SEEN] = seen
        names[wrapper_code.BEFORE] = starts
        with self._instead(call):
            yield

    def _instrumented(self) -> WrapperCode:
        if self._code is None:
            module = self._live.module
            try:
                self._code = wrapper_code.instrumented(
                    self._live.source, module.__file__, self._live.kernels, self._replaced()
                )
            except (NoSteps, SyntaxError) as error:
                self.whole = str(error)
                self._code = WrapperCode()
        return self._code

    def _replaced(self) -> list[int]:
        """Partitions that run otherwise than as generated: torch put a CUDA graph around them."""
        runner = getattr(self._live.call, "__self__", None)
        return [
            number
            for number, function in enumerate(getattr(runner, "partitions", ()))
            if function is not getattr(self._live.module, f"partition_{number}", None)
        ]

    def _function(self, code: CodeType | None, prefix: str) -> Call | None:
        """The instrumented `call`, as the module's own caller calls it."""
        if code is None:
            return None
        names = vars(self._live.module)
        made: dict[str, Any] = {}
        exec(code, names, made)
        names.update(made)
        call: Call = made[f"{prefix}call"]
        if self._code is not None and self._code.method:
            return MethodType(call, getattr(self._live.call, "__self__", None))
        return call

    @contextmanager
    def _instead(self, call: Call) -> Iterator[None]:
        def unless_captured(arguments: list[Any]) -> Any:
            # what a CUDA graph captures would be replayed: it must hold nothing but the graph
            captured = torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()
            return (self._live.call if captured else call)(arguments)

        before = self._live.instead
        self._live.instead = unless_captured
        try:
            yield
        finally:
            self._live.instead = before


def tensors_of(variables: Mapping[str, Any], results: Sequence[Result] = ()) -> dict[str, Any]:
    """Tensors among a function's variables, and in tuples and lists (`buf1[0]`); what is named
    later only, by that name as well."""
    found: dict[str, Any] = {}
    for name, value in variables.items():
        if isinstance(value, torch.Tensor):
            found[name] = value
        elif isinstance(value, list | tuple):
            for place, item in enumerate(value):
                if isinstance(item, torch.Tensor):
                    found[f"{name}[{place}]"] = item
    for result in results:
        value = variables.get(result.source)
        for place in result.path:
            in_it = isinstance(value, list | tuple) and place < len(value)
            value = value[place] if in_it else None  # type: ignore[index]
        if isinstance(value, torch.Tensor):
            found[result.name] = value
    return found
