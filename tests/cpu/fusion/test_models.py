"""Real graphs, from PyTorch to loop nests: how many are left, and that they compute the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._functorch.aot_autograd import aot_module_simplified, make_boxed_func
from torch.fx import GraphModule

from benchmarks.models import Gpt, LlamaBlock
from tcw.compiler.fusion.fuse import fuse
from tcw.compiler.loops.graph import Call
from tcw.compiler.loops.interpreter import run_program
from tcw.compiler.loops.verifier import verify_program
from tcw.compiler.lowering.driver import lower
from tcw.compiler.rewrites.decompositions import decompositions

Inputs = tuple[Any, ...]


def graphs(model: Callable[..., Any], inputs: Inputs, train: bool) -> list[tuple[Any, list[Any]]]:
    """The ATen graphs of one call (and its backward), with what each was called with."""
    found: list[tuple[Any, list[Any]]] = []

    def compiler(module: GraphModule, _: object) -> Any:
        place = len(found)
        found.append((module, []))

        def run(*arguments: Any) -> Any:
            found[place] = (module, [same(a) for a in arguments])
            return module.forward(*arguments)

        return make_boxed_func(run)

    def backend(module: GraphModule, examples: list[Any]) -> Any:
        return aot_module_simplified(
            module, examples, fw_compiler=compiler, decompositions=decompositions()
        )

    torch._dynamo.reset()
    with torch.set_grad_enabled(train):
        output = torch.compile(model, backend=backend)(*inputs)
        if train:
            output.square().mean().backward()
    return found


def same(value: Any) -> Any:
    """A copy with the same strides."""
    if not isinstance(value, torch.Tensor):
        return value
    if 0 in value.stride():
        return value.clone()
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype).copy_(value)


def softmax_norm(x: Any, r: Any, w: Any, b: Any) -> Any:
    turned = x.view(8, 64, 16, 16).transpose(1, 2).reshape(8, 16, 1024)
    return F.layer_norm(torch.softmax(turned, -1) + r, (1024,), w, b)


def adam(p: Any, g: Any, m: Any, v: Any) -> Any:
    m, v = m * 0.9 + g * 0.1, v * 0.999 + g * g * 0.001
    return p - 1e-3 * m / (v.sqrt() + 1e-8), m, v


class Bottleneck(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        sizes = ((256, 64, 1), (64, 64, 3), (64, 256, 1))
        self.convs = torch.nn.ModuleList(
            [torch.nn.Conv2d(i, o, k, padding=k // 2, bias=False) for i, o, k in sizes]
        )
        self.norms = torch.nn.ModuleList([torch.nn.BatchNorm2d(o) for _, o, _ in sizes])

    def forward(self, x: Any) -> Any:
        y = x
        for conv, norm in zip(self.convs[:2], self.norms[:2], strict=True):
            y = F.relu(norm(conv(y)))
        return F.relu(self.norms[2](self.convs[2](y)) + x)


def leaf(*shape: int) -> Any:
    return torch.randn(*shape).requires_grad_()


CASES: dict[str, tuple[Callable[[], tuple[Callable[..., Any], Inputs]], bool, tuple[int, ...]]] = {
    "softmax + layer norm": (
        lambda: (softmax_norm, (leaf(8, 64, 256), leaf(8, 16, 1024), leaf(1024), leaf(1024))),
        True,
        (1, 2),
    ),
    "adam": (lambda: (adam, tuple(torch.rand(1 << 12) for _ in range(4))), False, (1,)),
    "cross entropy": (
        lambda: (F.cross_entropy, (leaf(64, 512), torch.randint(0, 512, (64,)))),
        True,
        (2, 1),
    ),
    "llama block": (lambda: (LlamaBlock(64, 2, 96, 16), (torch.randn(2, 16, 64),)), False, (5,)),
    "bottleneck": (
        lambda: (Bottleneck().eval(), (torch.randn(1, 256, 8, 8),)),
        False,
        (3,),
    ),
    "bottleneck training": (
        lambda: (Bottleneck().train(), (leaf(4, 256, 20, 20),)),
        True,
        (4, 4),
    ),
    "gpt, 2 layers": (
        lambda: (Gpt(64, 2, 2, 100, 16), (torch.randint(0, 100, (2, 16)),)),
        True,
        (9, 18),
    ),
}
"""Name -> model with its inputs, whether it trains, and the most nests that each graph may have."""


@pytest.mark.parametrize("name", list(CASES))
def test_nests(name: str) -> None:
    torch.manual_seed(0)
    make, train, limits = CASES[name]
    model, inputs = make()
    for (module, arguments), limit in zip(graphs(model, inputs, train), limits, strict=True):
        program = fuse(lower(module, f"0/0/{name}")).program
        verify_program(program)
        nests = [step for step in program.steps if not isinstance(step, Call)]
        assert len(nests) <= limit, [nest.label for nest in nests]
        expected = module.forward(*[same(a) for a in arguments])
        found = run_program(program, [same(a) for a in arguments])
        for one, two in zip(found, expected, strict=True):
            if isinstance(two, torch.Tensor):
                torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)
