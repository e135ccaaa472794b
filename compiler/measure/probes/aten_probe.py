"""The probe of a graph that our own engine left to ATen: the graph's own Python, instrumented."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from tcw.compiler.graphs.nodes import target_name
from tcw.compiler.measure.compiled.alone import Boxed
from tcw.compiler.measure.compiled.engine_graphs import AtenGraph
from tcw.compiler.measure.probes.code_probe import CodeProbe
from tcw.compiler.measure.probes.wrapper_code import CalledStep, Rules, WrapperCode, instrumented


class AtenProbe(CodeProbe):
    """Its steps are nodes of the lowered graph."""

    _live: AtenGraph

    def __init__(self, graph: AtenGraph) -> None:
        super().__init__(graph.graph, graph)
        self.memory = AtenMemory(self.code)

    @cached_property
    def code(self) -> WrapperCode:
        module = self._live.module
        code = instrumented(module.code, f"<{self.graph}>", _RULES, "forward")
        targets = {node.name: target_name(node.target) for node in module.graph.nodes}
        code.steps = [
            replace(step, name=targets.get(code.makes.get(step.index, ""), step.name))
            for step in code.steps
        ]
        return code

    @cached_property
    def names(self) -> dict[str, Any]:
        return {**type(self._live.module).forward.__globals__}

    def boxed(self, call: Callable[..., Any]) -> Boxed:
        module = self._live.module
        if self._live.left.takes_list:
            return lambda arguments: call(module, arguments)

        def run(arguments: list[Any]) -> Any:
            given = tuple(arguments)
            arguments.clear()
            return call(module, *given)

        return run


class AtenMemory:
    """The variables of the graph's Python: each holds the value of the node of that name."""

    def __init__(self, code: WrapperCode) -> None:
        self._made = {
            index: (name, *(part.name for part in code.results.get(index, ())))
            for index, name in code.makes.items()
        }

    def nodes(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        return dict(tensors)

    def complete(self, step: int) -> Collection[str]:
        return self._made.get(step, ())


def _steps_of(_: ast.Call, called: str) -> Sequence[CalledStep]:
    return [CalledStep("aten", called)] if called.startswith("torch.ops.") else []


_RULES = Rules(_steps_of, named_later=True)
