"""Models that we did not write, with random weights: from `transformers`, and timm if installed.

Small enough for a CPU, and large enough that kernels and products take most of the time.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

Inputs = tuple[tuple[Any, ...], dict[str, Any]]
Made = tuple[Callable[..., Any], Sequence[Inputs]]
"""A model, and each set of inputs that it is called with."""


def trains(function: Callable[..., Any]) -> bool:
    """Whether a function has parameters to train."""
    return isinstance(function, nn.Module) and any(p.requires_grad for p in function.parameters())


def call(function: Callable[..., Any], sets: Sequence[Inputs], train: bool) -> Any:
    """Call each set of inputs once, in training with the backward of its loss; returns the last
    output."""
    from tcw.compiler.measure.calls.runs import loss_of

    output = None
    with contextlib.redirect_stdout(io.StringIO()):
        for positional, keyword in sets:
            with contextlib.nullcontext() if train else torch.no_grad():
                output = function(*positional, **keyword)
            if train and isinstance(output, Tensor):
                output.square().mean().backward()
            elif train:
                loss_of(output).backward()
    return output


def _transformer(name: str, inputs: Callable[[], Inputs], **options: Any) -> Made:
    """`transformers`' model of that name; the name of its configuration follows from it."""
    import transformers

    family = name
    for suffix in ("ForCausalLM", "LMHeadModel", "EncoderModel", "Model"):
        family = family.removesuffix(suffix)
    config = getattr(transformers, f"{family}Config")(**options)
    return getattr(transformers, name)(config), [inputs()]


def _timm(name: str, size: int) -> Made:
    import timm

    return timm.create_model(name), [_images(2, size)]


def _tokens(batch: int, time: int, words: int = 1000) -> Inputs:
    return (torch.randint(0, words, (batch, time)),), {}


def _labelled(batch: int, time: int, words: int = 500) -> Inputs:
    (tokens,), _ = _tokens(batch, time, words)
    return (tokens,), {"labels": tokens}


def _images(batch: int, size: int) -> Inputs:
    return (torch.randn(batch, 3, size, size),), {}


def _sound(batch: int, samples: int) -> Inputs:
    return (torch.randn(batch, samples),), {}


def _spectra(batch: int, time: int, bands: int) -> Inputs:
    return (torch.randn(batch, time, bands),), {}


_TINY: dict[str, Any] = {
    "vocab_size": 500,
    "hidden_size": 128,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
_SMALL: dict[str, Any] = {
    "vocab_size": 1000,
    "hidden_size": 256,
    "intermediate_size": 1024,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
}
_SHORT = partial(_tokens, 2, 64, 500)
_LONG = partial(_tokens, 4, 96)
_PICTURES = partial(_images, 4, 96)

LIBRARY_MODELS: dict[str, Callable[[], Made]] = {
    "transformers BERT, tiny": partial(_transformer, "BertModel", _SHORT, **_TINY),
    "transformers GPT-2, tiny": partial(_transformer, "GPT2LMHeadModel", partial(_labelled, 2, 64),
        vocab_size=500, n_positions=64, n_embd=128, n_layer=2, n_head=4),
    "transformers Llama, tiny": partial(_transformer, "LlamaForCausalLM", partial(_labelled, 2, 64),
        **(_TINY | {"intermediate_size": 352, "num_key_value_heads": 2})),
    "transformers BERT": partial(_transformer, "BertModel", _LONG, **_SMALL),
    "transformers T5 encoder": partial(_transformer, "T5EncoderModel", _LONG, vocab_size=1000,
        d_model=256, d_kv=64, num_heads=4, d_ff=1024, num_layers=3),
    "transformers Qwen2": partial(_transformer, "Qwen2Model", _LONG,
        **(_SMALL | {"intermediate_size": 768, "num_key_value_heads": 2})),
    "transformers Mixtral": partial(_transformer, "MixtralModel", _LONG,
        **(_TINY | {"vocab_size": 1000, "num_key_value_heads": 2, "num_local_experts": 4})),
    "transformers DeBERTa": partial(_transformer, "DebertaV2Model", _LONG,
        **(_TINY | {"vocab_size": 1000})),
    "transformers Mamba": partial(_transformer, "MambaModel", partial(_tokens, 2, 48),
        vocab_size=1000, hidden_size=128, num_hidden_layers=2),
    "transformers Mamba-2": partial(_transformer, "Mamba2Model", partial(_tokens, 2, 48),
        vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_heads=8, head_dim=32, n_groups=1,
        chunk_size=16),
    "transformers RWKV": partial(_transformer, "RwkvModel", partial(_tokens, 2, 32),
        vocab_size=1000, hidden_size=128, attention_hidden_size=128, num_hidden_layers=2),
    "transformers FNet": partial(_transformer, "FNetModel", _LONG, **_SMALL),
    "transformers ViT": partial(_transformer, "ViTModel", _PICTURES, hidden_size=192,
        num_hidden_layers=3, num_attention_heads=3, intermediate_size=768, image_size=96,
        patch_size=8),
    "transformers Swin": partial(_transformer, "SwinModel", _PICTURES, image_size=96, patch_size=4,
        embed_dim=48, depths=[2, 2], num_heads=[3, 6], window_size=6),
    "transformers ConvNeXt": partial(_transformer, "ConvNextModel", _PICTURES, hidden_sizes=[48,
        96], depths=[2, 2], num_stages=2 ),
    "transformers SegFormer": partial(_transformer, "SegformerModel", _PICTURES, hidden_sizes=[32,
        64, 96, 128], depths=[1, 1, 1, 1]),
    "transformers ResNet": partial(_transformer, "ResNetModel", _PICTURES, embedding_size=32,
        hidden_sizes=[64, 128], depths=[2, 2], layer_type="basic"),
    "transformers wav2vec 2.0": partial(_transformer, "Wav2Vec2Model", partial(_sound, 2, 16000),
        hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512,
        conv_dim=[64] * 7),
    "transformers HiFi-GAN": partial(_transformer, "SpeechT5HifiGan", partial(_spectra, 2, 40, 20),
        model_in_dim=20, upsample_initial_channel=64, upsample_rates=[4, 4],
        upsample_kernel_sizes=[8, 8]),
    "timm resnet18": partial(_timm, "resnet18", 128),
    "timm vit_tiny": partial(_timm, "vit_tiny_patch16_224", 224),
    "timm convnext_atto": partial(_timm, "convnext_atto", 128),
}  # fmt: skip
