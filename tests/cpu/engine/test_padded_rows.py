"""Results that are part of a padded product keep its rows: on a GPU's graph, without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tcw.compiler.lowering.driver import lower
from tcw.compiler.rewrites import padded_rows as passes
from tcw.compiler.rewrites.aligned_products import aligned_products
from tcw.compiler.rewrites.padded_rows import padded_rows
from tcw.compiler.rewrites.subject import Subject
from tests.cpu.engine.test_cuda_graphs import graph_of

aten = torch.ops.aten
BIG, VOCABULARY, WIDE = 1024, 1021, 1024


def square(x: torch.Tensor) -> torch.Tensor:
    return x[: BIG * BIG].view(BIG, BIG)


def logits(x: torch.Tensor) -> Any:
    right = x[: BIG * VOCABULARY].view(VOCABULARY, BIG).t()
    return aten.mm(square(x), right)


def biased(x: torch.Tensor) -> Any:
    right = x[: BIG * VOCABULARY].view(VOCABULARY, BIG).t()
    return aten.addmm(x[:VOCABULARY], square(x), right)


CASES: dict[str, tuple[Callable[[torch.Tensor], Any], list[int] | None]] = {
    "itself": (logits, [WIDE, 1]),
    "bias": (biased, [WIDE, 1]),
    "batches": (lambda x: logits(x).view(4, BIG // 4, -1), [BIG // 4 * WIDE, WIDE, 1]),
    "a part": (lambda x: logits(x).view(4, BIG // 4, -1)[:, -1], [BIG // 4 * WIDE, 1]),
    "read as well": (lambda x: (logits(x), logits(x).sum())[0], [WIDE, 1]),
    "turned": (lambda x: logits(x).t(), [1, WIDE]),
    "flat": (lambda x: logits(x).view(-1), None),
    "computed": (lambda x: logits(x) * 2, None),
    "cut by the user": (lambda x: aten.mm(square(x), square(x))[:, :9], None),
}


@pytest.mark.parametrize("name", CASES)
def test_results(name: str) -> None:
    function, strides = CASES[name]
    x = torch.randn(1 << 21).bfloat16() / 8
    module = graph_of(lambda x: [function(x)], x)
    (expected,) = module.forward(x)
    aligned_products(Subject(module, graph="0/0/inference"))
    kept = padded_rows(Subject(module, graph="0/0/inference", kind="inference", promised=1))
    module.recompile()
    assert kept == (strides is not None)
    (found,) = module.forward(x)
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)
    if strides is None:
        return
    assert list(found.stride()) == strides
    lowered = lower(module, "0/0/inference", torch.device("cuda", 0))
    (returned,) = lowered.outputs
    assert list(returned.strides) == strides
    names = {node.name for node in lowered.nodes if type(node).__name__ == "Call"}
    assert returned.value in names, "the product's own memory is returned"


def test_a_bias_is_added_by_the_product() -> None:
    x = torch.randn(1 << 21).bfloat16() / 8
    module = graph_of(biased, x)
    aligned_products(Subject(module, graph="0/0/inference"))
    (product,) = [n for n in module.graph.nodes if n.target is aten.addmm.default]
    assert product.args[0].meta["val"].shape == (WIDE,)


def test_gradients_have_the_strides_of_eager() -> None:
    x = torch.randn(1 << 21).bfloat16() / 8
    module = graph_of(lambda x: [logits(x)], x)
    aligned_products(Subject(module, graph="0/0/backward"))
    assert padded_rows(Subject(module, graph="0/0/backward", kind="backward", promised=1)) == 0


def test_what_a_branch_reads_keeps_its_strides() -> None:
    """It was traced for them: a flat view needs them."""

    def program(x: torch.Tensor) -> Any:
        y = logits(x)
        flat = torch.cond(x[0] > 0, lambda a: a.view(-1) * 2, lambda a: a.view(-1) * 3, (y,))
        return y, flat

    x = torch.randn(1 << 21).bfloat16() / 8
    module = graph_of(program, x)
    aligned_products(Subject(module, graph="0/0/inference"))
    assert padded_rows(Subject(module, graph="0/0/inference", kind="inference", promised=2)) == 0


def test_an_output_that_is_made_again_from_its_base_keeps_its_strides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = torch.randn(1 << 21).bfloat16() / 8
    module = graph_of(lambda x: (logits(x), logits(x.neg())), x)
    aligned_products(Subject(module, graph="0/0/forward"))
    monkeypatch.setattr(passes, "views_are_regenerated", lambda: True)
    assert padded_rows(Subject(module, graph="0/0/forward", kind="forward", promised=1)) == 1
    first, saved = next(n for n in module.graph.nodes if n.op == "output").args[0]
    assert first.meta["val"].stride() == (VOCABULARY, 1)
    assert saved.meta["val"].stride() == (WIDE, 1)


def test_two_outputs_of_one_product_are_copied() -> None:
    x = torch.randn(1 << 21).bfloat16() / 8

    def both(x: torch.Tensor) -> Any:
        found = logits(x)
        return found, found.t()

    module = graph_of(both, x)
    aligned_products(Subject(module, graph="0/0/inference"))
    assert padded_rows(Subject(module, graph="0/0/inference", kind="inference", promised=2)) == 0


def test_a_result_that_is_saved_as_well_is_returned_once_from_the_products_memory() -> None:
    """As a language model's logits with its loss: two copies of 500 MB in BERT's training."""
    x = torch.randn(1 << 21).bfloat16() / 8

    def both(x: torch.Tensor) -> Any:
        found = logits(x)
        return found.view(4, BIG // 4, -1), found

    module = graph_of(both, x)
    aligned_products(Subject(module, graph="0/0/forward"))
    assert padded_rows(Subject(module, graph="0/0/forward", kind="forward", promised=1)) == 1
    lowered = lower(module, "0/0/forward", torch.device("cuda", 0))
    names = {node.name for node in lowered.nodes if type(node).__name__ == "Call"}
    assert [output.value in names for output in lowered.outputs] == [True, True]
