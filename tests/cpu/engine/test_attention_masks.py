"""Masks that no input decides: computed, and dropped if a kernel needs none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import fx

from tcw.compiler.engine.backend import backend
from tcw.compiler.rewrites.attention_masks import ATTENTION, attention_masks
from tcw.compiler.rewrites.subject import Subject
from tcw.compiler.trace.records import Decided
from tests.cpu.worker.recorded import recorded
from tests.long import mostly_long

L = 12


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def attention(mask: Callable[[torch.Tensor], Any]) -> Callable[..., torch.Tensor]:
    def run(x: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(x, x, x, attn_mask=mask(x))

    return run


def captured(function: Callable[..., Any], *inputs: Any, **options: Any) -> fx.GraphModule:
    found: list[fx.GraphModule] = []

    def keep(module: fx.GraphModule, _: Any) -> Any:
        found.append(module)
        return module

    torch.compile(function, backend=keep, **options)(*inputs)
    return found[0]


def positions(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    where = torch.arange(x.shape[-2], device=x.device)
    return where[:, None], where[None, :]


def causal(x: torch.Tensor) -> torch.Tensor:
    rows, columns = positions(x)
    return columns <= rows


def window(width: int) -> Callable[[torch.Tensor], torch.Tensor]:
    def mask(x: torch.Tensor) -> torch.Tensor:
        rows, columns = positions(x)
        return (columns <= rows) & (columns > rows - width)

    return mask


def added(x: torch.Tensor) -> torch.Tensor:
    zero = torch.zeros(x.shape[-2], x.shape[-2], dtype=x.dtype)
    return zero.masked_fill(~causal(x), torch.finfo(x.dtype).min)


def written(x: torch.Tensor) -> torch.Tensor:
    mask = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool)
    mask[0] = True
    return mask.tril_()


def all_true(x: torch.Tensor) -> torch.Tensor:
    rows, columns = positions(x)
    return (rows >= 0) & (columns >= 0)


def by_input(x: torch.Tensor) -> torch.Tensor:
    return causal(x) & (x[0, 0, :, :1] < 100)


def input_written(x: torch.Tensor) -> torch.Tensor:
    mask = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool)
    view = mask[1:]
    view[:] = x[0, 0, :1, :1] < -100
    return mask


def batched(x: torch.Tensor) -> torch.Tensor:
    """Tensors inside vmap do not show their memory, and something else is written."""
    where = torch.arange(x.shape[-2])
    other = torch.zeros(L)
    other.add_(x[0, 0, :, 0])
    return torch.vmap(lambda row: where <= row)(where)


def drawn(x: torch.Tensor) -> torch.Tensor:
    return torch.rand_like(torch.ones(x.shape[-2], x.shape[-2])) >= 0


def weights(x: torch.Tensor) -> torch.Tensor:
    rows, columns = positions(x)
    return (rows - columns) * 0.1


@pytest.mark.parametrize(
    ("mask", "kind"),
    [
        (causal, "is-causal"),
        (added, "is-causal"),
        (written, ""),
        (lambda x: causal(x)[None, None].expand(2, -1, L, L), "is-causal"),
        (lambda x: torch.ones(L, L, dtype=torch.bool).tril(), "is-causal"),
        (window(L), "is-causal"),
        (window(1 << 20), "is-causal"),
        (all_true, "none"),
        (lambda x: torch.zeros(L, L), "none"),
        (lambda x: torch.ones(1, L, dtype=torch.bool), "none"),
        (window(3), "mask"),
        (window(1), "mask"),
        (lambda x: causal(x).t(), "mask"),
        (lambda x: torch.ones(L, L, dtype=torch.bool).tril(1), "mask"),
        (by_input, ""),
        (input_written, ""),
        (batched, ""),
        (drawn, ""),
        (weights, ""),
    ],
)
def test_a_mask_is_what_it_is(mask: Callable[[Any], Any], kind: str) -> None:
    x = torch.randn(2, 3, L, 8)
    torch.manual_seed(0)
    expected = attention(mask)(x)
    module = captured(attention(mask), x, dynamic=False)
    changed = attention_masks(Subject(module, graph="0/0/inference"))
    module.recompile()
    assert changed == (kind in ("is-causal", "none"))
    (node,) = (one for one in module.graph.nodes if one.target is ATTENTION)
    assert (node.kwargs["attn_mask"] is None) == (kind in ("is-causal", "none"))
    assert bool(node.kwargs.get("is_causal")) == (kind == "is-causal")
    torch.manual_seed(0)
    torch.testing.assert_close(torch.compile(attention(mask), backend=backend)(x), expected)


def test_other_lengths_of_keys_keep_the_mask() -> None:
    def run(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(
            q, k, k, torch.ones(L, L + 1, dtype=torch.bool).tril()
        )

    module = captured(run, torch.randn(1, 1, L, 8), torch.randn(1, 1, L + 1, 8), dynamic=False)
    assert attention_masks(Subject(module, graph="0/0/inference")) == 0


def test_sizes_that_may_change_keep_the_mask() -> None:
    module = captured(attention(causal), torch.randn(2, 3, L, 8), dynamic=True)
    assert attention_masks(Subject(module, graph="0/0/inference")) == 0


def test_gradients() -> None:
    x = torch.randn(2, 3, L, 8, requires_grad=True)
    (expected,) = torch.autograd.grad(attention(causal)(x).square().sum(), x)
    (found,) = torch.autograd.grad(
        torch.compile(attention(causal), backend=backend)(x).square().sum(), x
    )
    torch.testing.assert_close(found, expected)


MODEL = """
import torch

def model(x):
    where = torch.arange(x.shape[-2])
    mask = where[None, :] <= where[:, None]
    return torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)

example_inputs = (torch.randn(2, 3, 12, 8),)
"""


def test_the_decision_is_recorded_and_can_be_overridden(tmp_path: Path) -> None:
    found = recorded(tmp_path, MODEL, engine="tcw", grad="no-grad", until="lowering")
    (decided,) = (one for one in found.all(Decided) if one.kind == "mask")
    assert (decided.choice, decided.rule) == ("is-causal", "causal")
    kept = recorded(
        tmp_path,
        MODEL,
        engine="tcw",
        grad="no-grad",
        until="lowering",
        overrides={decided.id: "mask"},
    )
    (decided,) = (one for one in kept.all(Decided) if one.kind == "mask")
    assert decided.choice == "mask"


MODELS = {
    "LlamaModel": {"num_key_value_heads": 2, "num_attention_heads": 4, "intermediate_size": 64},
    "GPT2Model": {"num_attention_heads": 4},
    "MistralModel": {
        "num_key_value_heads": 2, "num_attention_heads": 4, "intermediate_size": 64,
        "sliding_window": 64,
    },
    "ViTModel": {
        "num_attention_heads": 4, "intermediate_size": 64, "image_size": 32, "patch_size": 8,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", mostly_long(MODELS, ("LlamaModel",)))
def test_models_of_transformers_attend_without_a_mask(name: str) -> None:
    transformers = pytest.importorskip("transformers")
    make = getattr(transformers, name)
    config = make.config_class(
        num_hidden_layers=1, hidden_size=32, vocab_size=64, use_cache=False, **MODELS[name]
    )
    model = make(config).eval()
    tokens = torch.randint(0, 64, (2, 16))
    inputs = (torch.randn(2, 3, 32, 32),) if name == "ViTModel" else (tokens,)
    with torch.no_grad():
        module = captured(model, *inputs)
        attention_masks(Subject(module, graph="0/0/inference"))
        calls = [node for node in module.graph.nodes if node.target is ATTENTION]
        assert calls
        assert all(call.kwargs["attn_mask"] is None for call in calls)
        assert all(bool(call.kwargs["is_causal"]) == (name != "ViTModel") for call in calls)
        torch._dynamo.reset()
        found = torch.compile(model, backend=backend)(*inputs)[0]
        torch.testing.assert_close(found, model(*inputs)[0], rtol=1e-4, atol=1e-4)
