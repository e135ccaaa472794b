"""Values of a decomposition whose vectors nobody reads are the call that eager makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from tcw.compiler.engine.backend import backend
from tcw.compiler.rewrites.subject import Subject
from tcw.compiler.rewrites.unread_vectors import drop_unread_vectors

aten = torch.ops.aten
Function = Callable[[torch.Tensor], Any]

VALUES: dict[str, Function] = {
    "svdvals": torch.linalg.svdvals,
    "nuclear": lambda x: torch.linalg.matrix_norm(x, "nuc"),
    "spectral": lambda x: torch.linalg.matrix_norm(x, 2),
    "cond": torch.linalg.cond,
    "eigvalsh": torch.linalg.eigvalsh,
    "upper": lambda x: torch.linalg.eigvalsh(x, UPLO="U"),
    "eigvals": lambda x: torch.linalg.eigvals(x).abs(),
}


def calls(function: Function, x: torch.Tensor) -> list[fx.Node]:
    module = make_fx(function, tracing_mode="fake")(x)
    drop_unread_vectors(Subject(module))
    return [node for node in module.graph.nodes if "linalg" in str(node.target)]


@pytest.mark.parametrize("name", VALUES)
def test_values_are_computed_alone(name: str) -> None:
    x = torch.randn(3, 6, 6, dtype=torch.float64)
    (call,) = calls(VALUES[name], x)
    assert call.target is aten._linalg_eigvals.default or call.args[-1] is False
    compiled = torch.compile(VALUES[name], backend=backend)
    torch.testing.assert_close(compiled(x), VALUES[name](x), rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.linalg.svd(x, full_matrices=False)[0],
        lambda x: torch.linalg.svd(x),
        lambda x: torch.linalg.eigh(x)[1],
        lambda x: torch.linalg.eig(x),
    ],
)
def test_vectors_that_are_read_stay(function: Function) -> None:
    x = torch.randn(4, 4, dtype=torch.float64)
    (call,) = calls(function, x)
    assert False not in call.args[2:]
    assert call.target is not aten._linalg_eigvals.default


def test_a_gradient_reads_the_vectors() -> None:
    x = torch.randn(5, 5, dtype=torch.float64, requires_grad=True)
    compiled = torch.compile(torch.linalg.svdvals, backend=backend)
    (found,) = torch.autograd.grad(compiled(x).sum(), x)
    (wanted,) = torch.autograd.grad(torch.linalg.svdvals(x).sum(), x)
    torch.testing.assert_close(found, wanted)
