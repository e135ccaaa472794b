"""A made-up program, whose steps and operations are sorted into regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tcw.compiler.measure.regions.origins import CallOfKernel, Origins
from tcw.compiler.measure.regions.regions import Grouped, PlacedStep, regions
from tcw.compiler.trace.records import Graph, Kernel, Location, Node, SchedulerNode
from tcw.compiler.trace.records.profile import CompiledStep, EagerOperation

FILE = "/model.py"


def at(line: int) -> Location:
    return Location(file=FILE, line=line)


def node(
    name: str,
    target: str,
    line: int | None,
    *origins: str,
    module: str = "",
    inputs: Sequence[str] = (),
) -> Node:
    return Node(
        name=name,
        op="call_function",
        target=target,
        module=module,
        location=None if line is None else at(line),
        origins=origins,
        inputs=tuple(inputs),
    )


class Program:
    """Captured nodes, lowered nodes, kernels and eager operations of one compiled frame."""

    def __init__(self, captured: Sequence[Node], lowered: Sequence[Node], backward: bool = False):
        kind = "backward" if backward else "forward"
        self.graph = f"0/0/{kind}"
        self.phase = kind if backward else ""
        self.records: list[Graph | Kernel | SchedulerNode] = [
            Graph(id="0/0", kind="captured", compile_id="0/0", nodes=tuple(captured)),
            Graph(
                id=f"{self.graph}/lowered",
                kind="lowered",
                compile_id="0/0",
                nodes=tuple(lowered),
                parent="0/0",
            ),
        ]
        self.kernels: list[Kernel] = []
        self.operations: list[EagerOperation] = []

    def kernel(
        self,
        *origins: str,
        name: str = "",
        language: Literal["cpp", "aten"] = "cpp",
        nodes: Sequence[str] = (),
    ) -> None:
        """`nodes`: its scheduler nodes, each a part of all its origins."""
        id = f"k{len(self.kernels)}"
        self.records += [
            SchedulerNode(
                graph=f"{self.graph}/lowered",
                name=one,
                kind="pointwise",
                label=one,
                origins=origins,
            )
            for one in nodes
        ]
        self.kernels.append(
            Kernel(
                id=id,
                graph=f"{self.graph}/lowered",
                name=name or f"cpp_fused_{id}",
                label=", ".join(origins),
                language=language,
                origins=origins,
                nodes=tuple(nodes),
            )
        )

    def eager(
        self, operation: str, line: int | None, module: str = "", of: str = "", **more
    ) -> str:
        id = f"e{len(self.operations)}"
        more.setdefault("launches", 1)
        more.setdefault("phase", self.phase)
        self.operations.append(
            EagerOperation(
                id=id,
                call=1,
                operation=operation,
                module=module,
                of=of,
                location=None if line is None else at(line),
                **more,
            )
        )
        return id

    def regions(self, compile_ids: Sequence[str] = ("0/0",)) -> list[Grouped]:
        self.origins = Origins([*self.records, *self.kernels])
        computed = self.origins.computed(CallOfKernel(kernel) for kernel in self.kernels)
        steps = [
            PlacedStep(
                CompiledStep(
                    id=f"s{number}",
                    call=1,
                    kind="kernel",
                    name=kernel.name,
                    phase=self.phase,
                    graph=self.graph,
                    kernel=kernel.id,
                ),
                computes,
            )
            for number, (kernel, computes) in enumerate(zip(self.kernels, computed, strict=True))
        ]
        return regions(self.origins, steps, self.operations, compile_ids)

    def sets(self) -> list[tuple[list[str], list[str]]]:
        """(steps, operations) of each region, by their ids."""
        return [
            (
                [step.step.id for step in group.steps],
                [operation.id for operation in group.operations],
            )
            for group in self.regions()
        ]
