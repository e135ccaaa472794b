"""Graphs that Inductor compiled, by the modules that it generates for them.

A module of generated code (`PyCodeCache.load_by_key_path`, torch/_inductor/codecache.py) has a
function `call` and a global per kernel, which `call` looks up on each run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from tcw.compiler.control.hooks import Hook, after_call, during
from tcw.compiler.measure.compiled.alone import CompiledGraph, NotAlone, Shadows, Step, copied
from tcw.compiler.measure.rounds.whole_runs import DeviceRun
from tcw.compiler.trace.generated_code import definitions

HOOK = Hook(
    name="generated modules",
    offers="what-if, profile: Inductor's kernels and graphs, each called and timed by itself",
    needs=("torch._inductor.codecache:PyCodeCache.load_by_key_path(key, path)",),
    test="measure/compiled/test_inductor_graphs.py",
)


class _Watched:
    """Replaces a Triton kernel in its module: the wrapper calls its `run` (`CachingAutotuner`,
    torch/_inductor/runtime/triton_heuristics.py)."""

    def __init__(self, kernel: Any, observed: Callable[..., Any]) -> None:
        self._kernel = kernel
        self.run = partial(observed, kernel.run)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)


class InductorGraph(CompiledGraph):
    """One module of generated code."""

    def __init__(self, module: Any, keep_arguments: bool = True) -> None:
        self.module = module
        super().__init__(module.call, keep_arguments)
        with open(module.__file__, encoding="utf-8") as stream:
            self.source = stream.read()
        self._defined = {definition.name: definition for definition in definitions(self.source)}
        module.call = self.boxed()

    @property
    def kernels(self) -> Collection[str]:
        return self._defined

    def text(self, kernel: str) -> str:
        return self._defined[kernel].source if kernel in self._defined else ""

    def capture(self, wanted: Collection[str], shadows: Shadows) -> list[Step]:
        if self.arguments is None:
            raise NotAlone("its graph was not called")
        for name in wanted:
            how = self._defined[name].how
            if not how.startswith(("cpp", "triton")):
                raise NotAlone(f"{name} is a {how} kernel, which cannot run alone")
        steps: list[Step] = []
        originals = {name: getattr(self.module, name) for name in wanted}

        def observed(kernel: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
            if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
                return kernel(*arguments, **named)  # a CUDA graph replays what it captures
            step = partial(kernel, *map(shadows.value, arguments), **named)
            step()
            steps.append(step)
            return kernel(*arguments, **named)

        try:
            for name, kernel in originals.items():
                on_device = self._defined[name].how == "triton"
                watched = _Watched(kernel, observed) if on_device else partial(observed, kernel)
                setattr(self.module, name, watched)
            with torch.no_grad():
                self.run(copied(self.arguments))
        finally:
            for name, kernel in originals.items():
                setattr(self.module, name, kernel)
        on_devices = {self._defined[name].how == "triton" for name in wanted}
        if len(on_devices) > 1:
            raise NotAlone("some of them run on the CPU and some on a GPU")
        return [DeviceRun(step) for step in steps] if on_devices == {True} else steps

    def together(self, steps: Sequence[Step]) -> Step:
        if len(steps) == 1:
            return steps[0]
        launches = [step.run for step in steps if isinstance(step, DeviceRun)]

        def run() -> None:
            for step in launches or steps:
                step()

        return DeviceRun(run, len(launches)) if launches else run


@contextmanager
def inductor_graphs(keep_arguments: bool = True) -> Iterator[list[InductorGraph]]:
    """The graphs that Inductor compiles, or loads from its cache, inside the block.

    `keep_arguments`: each graph stores a copy of its first arguments, so that it can be called
    alone; that takes the memory of all parameters again.
    """
    from torch._inductor.codecache import PyCodeCache

    graphs: list[InductorGraph] = []

    def loaded(module: Any, *_: Any, **__: Any) -> None:
        if callable(getattr(module, "call", None)):
            graphs.append(InductorGraph(module, keep_arguments))

    with during(after_call(PyCodeCache, "load_by_key_path", loaded)):
        yield graphs
