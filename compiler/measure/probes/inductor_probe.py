"""The probe of a graph that Inductor compiled: its generated wrapper, instrumented.

The wrapper is compiled again into the globals of the generated module, so it runs the same kernels.
Line numbers are still those of the module.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import torch

from tcw.compiler.measure.compiled.alone import Boxed
from tcw.compiler.measure.compiled.inductor_graphs import InductorGraph
from tcw.compiler.measure.probes.code_probe import CodeProbe
from tcw.compiler.measure.probes.wrapper_code import (
    CalledStep,
    NoSteps,
    Rules,
    WrapperCode,
    instrumented,
)

_LIBRARIES = ("extern_kernels.", "aten.", "torch.ops.", "inductor_ops.", "_quantized.", "prims.")
_NO_WORK = ("torch.ops.inductor._alloc_from_pool", "inductor_ops._alloc_from_pool")
_METHODS = ("copy_", "zero_", "fill_", "clone", "item")
"""Tensor methods that the wrapper calls for their effect on memory or on the host."""


class InductorProbe(CodeProbe):
    """A partition that a CUDA graph replays is one step, `partition_0`.

    If a CUDA graph contains everything, including the wrapper, the wrapper does not run again, and
    there are no readings.
    """

    _live: InductorGraph

    @cached_property
    def code(self) -> WrapperCode:
        live = self._live
        rules = rules_of(live.kernels, self._replaced())
        try:
            return instrumented(live.source, live.module.__file__, rules)
        except (NoSteps, SyntaxError) as error:
            self.unmeasured = f"it was timed whole: {error}"
            return WrapperCode()

    @cached_property
    def names(self) -> dict[str, Any]:
        names: dict[str, Any] = vars(self._live.module)
        return names

    def _replaced(self) -> list[int]:
        """Partitions that do not run as generated, because torch put a CUDA graph around them."""
        runner = getattr(self._live.generated, "__self__", None)
        return [
            number
            for number, function in enumerate(getattr(runner, "partitions", ()))
            if function is not getattr(self._live.module, f"partition_{number}", None)
        ]

    def instead(self, call: Boxed) -> AbstractContextManager[None]:
        if not torch.cuda.is_available():
            return super().instead(call)

        def unless_captured(arguments: list[Any]) -> Any:
            # a CUDA graph replays what it captures: it must contain nothing but the graph
            captured = torch.cuda.is_current_stream_capturing()
            return (self._live.generated if captured else call)(arguments)

        return super().instead(unless_captured)


def rules_of(kernels: Collection[str], replaced: Collection[int] = ()) -> Rules:
    """What a step is in Inductor's wrapper: a kernel (`cpp_fused_add_0(…)`,
    `triton_poi_fused_add_0.run(…)`) or a call of a library (`extern_kernels.mm(…)`,
    `torch.ops.aten.sort.stable(…)`)."""

    def steps_of(call: ast.Call, called: str) -> Sequence[CalledStep]:
        name = called.partition(".")[0]
        if name in kernels:
            return [CalledStep("kernel", name)]
        if called.startswith(_LIBRARIES) and called not in _NO_WORK:
            return [CalledStep("aten", called)]
        if isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS:
            return [CalledStep("aten", f"aten.{call.func.attr}")]
        return []

    # a step completes buffers that it names by a part of them
    return Rules(steps_of, replaced=replaced, named_later=True, all_variables=True)
