"""Third-party models with our engine: forward and gradients equal eager's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import transformers
from torch.utils import _pytree as pytree

from tcw.compiler.engine.backend import backend
from tests.cpu.transformer_models import RECIPES, Recipe, _ids
from tests.long import mostly_long

BOUND = 1e-5
"""Absolute and relative tolerances in f32: forward and gradients."""


def gpt2() -> Recipe:
    config = transformers.GPT2Config(
        vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    return Recipe(transformers.GPT2LMHeadModel(config), lambda n: {"input_ids": _ids(n)})


def vit() -> Recipe:
    config = transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        image_size=16, patch_size=8,
    )  # fmt: skip
    return Recipe(
        transformers.ViTModel(config),
        lambda n: {"pixel_values": torch.linspace(-1, 1, n * 3 * 256).reshape(n, 3, 16, 16)},
    )


def convnext() -> Recipe:
    config = transformers.ConvNextConfig(
        hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, image_size=16, patch_size=4
    )
    return Recipe(
        transformers.ConvNextModel(config),
        lambda n: {"pixel_values": torch.linspace(-1, 1, n * 3 * 256).reshape(n, 3, 16, 16)},
    )


MODELS = {**RECIPES, "gpt2": gpt2, "vit": vit, "convnext": convnext}


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TCW_STRICT", "1")
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def floats(output: Any) -> list[torch.Tensor]:
    tensors = [t for t in pytree.tree_leaves(_plain(output)) if isinstance(t, torch.Tensor)]
    return [t for t in tensors if t.is_floating_point()]


def _plain(output: Any) -> Any:
    return output.to_tuple() if hasattr(output, "to_tuple") else output


TWO_SIZES = {"gpt2", "convnext"}
"""A second batch size compiles a model again, with symbolic sizes: of the others a long test."""


def check_forward(name: str, batches: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    recipe = MODELS[name]()
    recipe.model.eval()
    compiled = torch.compile(recipe.model, backend=backend)
    for batch in batches:
        with torch.no_grad():
            torch.manual_seed(1)
            wanted = floats(recipe.model(**recipe.inputs(batch)))
            torch.manual_seed(1)
            found = floats(compiled(**recipe.inputs(batch)))
        assert wanted
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=BOUND, atol=BOUND)


@pytest.mark.parametrize("name", mostly_long(MODELS, {"gpt2"}))
def test_forward(name: str) -> None:
    check_forward(name, (2, 3) if name in TWO_SIZES else (2,))


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in MODELS if name not in TWO_SIZES])
def test_forward_of_two_sizes(name: str) -> None:
    check_forward(name, (2, 3))


NOT_REPEATED = {"reformer"}
"""In training it hashes with its own random seeds: eager's gradients differ from run to run."""


@pytest.mark.parametrize(
    "name",
    mostly_long((n for n in MODELS if n not in NOT_REPEATED), {"mixtral", "convnext"}),
)
def test_gradients(name: str) -> None:
    torch.manual_seed(0)
    recipe = MODELS[name]()
    recipe.model.train()
    for module in recipe.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0

    def gradients(model: Any) -> list[torch.Tensor | None]:
        recipe.model.zero_grad()
        torch.manual_seed(1)
        outputs = floats(model(**recipe.inputs(2)))
        sum(o.square().mean() for o in outputs if o.requires_grad).backward()
        return [None if p.grad is None else p.grad.clone() for p in recipe.model.parameters()]

    wanted = gradients(recipe.model)
    found = gradients(torch.compile(recipe.model, backend=backend))
    for one, other in zip(found, wanted, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            torch.testing.assert_close(one, other, rtol=BOUND, atol=BOUND)
