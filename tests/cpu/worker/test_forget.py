"""What a second compile in one process is told of the first: nothing."""

from __future__ import annotations

import torch
from torch._guards import CompileContext

from tcw.workbench.worker.forget import beside_what_is_compiled


def test_a_compile_beside_another_has_the_ids_of_a_first_one() -> None:
    met: list[list[str]] = []

    def forward(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    def backend(graph: torch.fx.GraphModule, _: object) -> object:
        met[-1].append(str(CompileContext.current_compile_id()))
        return graph.forward

    torch._dynamo.reset()
    for size in (3, 4):  # another size would be dynamic, had the first been seen
        met.append([])
        beside_what_is_compiled()
        another = lambda graph, given: backend(graph, given)  # noqa: E731
        torch.compile(forward, backend=another)(torch.ones(size))
    torch._dynamo.reset()
    assert met == [["0/0", "1/0"], ["0/0", "1/0"]]
