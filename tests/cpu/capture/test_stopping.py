"""Recordings that end after capture or AOTAutograd: Inductor is not asked, results are correct."""

from __future__ import annotations

import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor import compile_fx

from tcw.compiler.trace.records import Graph, Stage
from tests.cpu.inductor.recorded import recording


@pytest.mark.parametrize("until", ["capture", "autograd"])
@pytest.mark.parametrize("grad", [False, True])
def test_inductor_lowers_nothing(until: Stage, grad: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def lowered(*_: object, **__: object) -> None:
        raise AssertionError("Inductor was asked")

    monkeypatch.setattr(compile_fx, "fx_codegen_and_compile", lowered)
    x = torch.linspace(-1, 1, 6).requires_grad_(grad)
    with recording(until) as recorded, torch.set_grad_enabled(grad):
        found = torch.compile(lambda x: (x * 2).sin())(x)
        if grad:
            found.sum().backward()
    torch.testing.assert_close(found, (x * 2).sin())
    if grad:
        torch.testing.assert_close(x.grad, 2 * (x * 2).cos())
    kinds = {graph.kind for graph in recorded.all(Graph)}
    assert "captured" in kinds
    assert (kinds > {"captured"}) == (until == "autograd")


def test_torch_is_as_before() -> None:
    with recording("capture"):
        pass
    counters.clear()
    torch._dynamo.reset()
    torch.compile(lambda x: x + 1)(torch.ones(2))
    assert sum(counters["inductor"].values())
