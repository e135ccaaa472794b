"""An operation is decomposed once for all that are like it, and the graph is the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn
from torch._dynamo.backends.common import aot_autograd
from torch._functorch import config as functorch_config
from torch._functorch.aot_autograd import make_boxed_func
from torch.utils._pytree import tree_leaves

from tcw.compiler.rewrites import repeated_pieces
from tcw.compiler.rewrites.decompositions import decompositions
from tcw.compiler.rewrites.repeated_pieces import traced_once

aten = torch.ops.aten


class Layers(nn.Module):
    """Layers whose training has normalisations, softmaxes and views."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(8) for _ in range(layers))
        self.batch_norms = nn.ModuleList(nn.BatchNorm1d(4) for _ in range(layers))
        self.linear = nn.ModuleList(nn.Linear(8, 8) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        for norm, batch_norm, linear in zip(self.norms, self.batch_norms, self.linear, strict=True):
            x = x + linear(batch_norm(norm(x))).softmax(-1).relu()
        return x


def traced(function: Callable[..., Tensor], example: Tensor, table: Any) -> list[fx.GraphModule]:
    graphs: list[fx.GraphModule] = []

    def compiler(module: fx.GraphModule, _: Any) -> Any:
        graphs.append(module)
        return make_boxed_func(module)

    torch._dynamo.reset()
    run = torch.compile(
        function,
        backend=aot_autograd(fw_compiler=compiler, bw_compiler=compiler, decompositions=table),
    )
    run(example).sum().backward()
    return graphs


def described(module: fx.GraphModule) -> Iterator[str]:
    """Each node, with what its metadata says of its values and of whose memory they are in."""
    memories: dict[int, int] = {}
    for node in module.graph.nodes:
        yield f"{node.name} = {node.target} {node.args} {node.kwargs}"
        yield f"{node.meta.get('stack_trace')} {node.meta.get('original_aten')}"
        for value in tree_leaves(node.meta.get("val")):
            if isinstance(value, Tensor):
                memory = value.untyped_storage()
                where = memories.setdefault(memory._cdata, len(memories)), memory.nbytes()
                yield f"{value.dtype} {value.shape} {value.stride()} {where}"
                yield f"{value.device} {value.storage_offset()} {node.meta.get('tensor_meta')}"


@pytest.fixture
def calls() -> Counter[Any]:
    return Counter()


@pytest.fixture
def tables(calls: Counter[Any]) -> tuple[Any, Any]:
    """Decompositions that trace each operation, and ours; each counts its calls."""

    def counted(operation: Any, pieces: Callable[..., Any]) -> Callable[..., Any]:
        def count(*arguments: Any, **options: Any) -> Any:
            calls[operation] += 1
            return pieces(*arguments, **options)

        return count

    bare = {
        operation: counted(operation, pieces.__wrapped__)  # type: ignore[attr-defined]
        for operation, pieces in decompositions().items()
    }
    return bare, {operation: traced_once(operation, pieces) for operation, pieces in bare.items()}


def test_the_graph_is_the_same(tables: tuple[Any, Any]) -> None:
    torch.manual_seed(0)
    model, example = Layers(3), torch.randn(2, 4, 8)
    with functorch_config.patch(force_non_lazy_backward_lowering=True):
        bare, copied = (traced(model, example, table) for table in tables)
    assert len(bare) == len(copied) == 2
    for one, other in zip(bare, copied, strict=True):
        assert list(described(other)) == list(described(one))


@pytest.mark.parametrize("layers", [2, 5])
def test_once_for_all_layers(layers: int, calls: Counter[Any], tables: tuple[Any, Any]) -> None:
    traced(Layers(layers), torch.randn(2, 4, 8), tables[1])
    assert calls[aten.native_layer_norm.default] == 1
    assert calls[aten._native_batch_norm_legit_functional.default] == 1
    assert calls[aten.native_batch_norm_backward.default] == 1
    assert calls[aten._softmax.default] == 1


def test_a_copied_value_is_faked_once(
    monkeypatch: pytest.MonkeyPatch, tables: tuple[Any, Any]
) -> None:
    spent: Counter[str] = Counter()
    copied, like = repeated_pieces._copied, repeated_pieces._Memories.like

    def counted(pieces: Any, *others: Any) -> Any:
        spent["values"] += sum(len(tree_leaves(node.meta["val"])) for node in pieces.nodes)
        return copied(pieces, *others)

    def fake(self: Any, theirs: Tensor) -> Any:
        spent["fakes"] += 1
        return like(self, theirs)

    monkeypatch.setattr(repeated_pieces, "_copied", counted)
    monkeypatch.setattr(repeated_pieces._Memories, "like", fake)
    traced(Layers(3), torch.randn(2, 4, 8), tables[1])
    assert 0 < spent["fakes"] == spent["values"]


def test_other_arguments_are_traced(calls: Counter[Any], tables: tuple[Any, Any]) -> None:
    def function(x: Tensor) -> Tensor:
        y = x.softmax(0) + x.exp().softmax(0)
        return y + x.softmax(-1) + x.t().softmax(0) + x.half().softmax(0)

    traced(function, torch.randn(4, 4, requires_grad=True), tables[1])
    assert calls[aten._softmax.default] == 4  # also for another dim, other strides, another dtype


def test_sizes_that_are_not_known(calls: Counter[Any], tables: tuple[Any, Any]) -> None:
    def function(x: Tensor) -> Tensor:
        return x.softmax(0) + x.exp().softmax(0)

    example = torch.randn(4, 4, requires_grad=True)
    torch._dynamo.mark_dynamic(example, 0)
    traced(function, example, tables[1])
    assert calls[aten._softmax.default] == 2
