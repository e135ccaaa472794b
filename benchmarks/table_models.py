"""The five models of the standard table, with random weights and inputs; nothing is downloaded.

This is also a model file for `tcw`. `--model` chooses a model; the inputs are those of the model
that it created, on the GPU if there is one:

    tcw profile benchmarks/table_models.py --model 'bert_base()' --no-grad
    tcw profile benchmarks/table_models.py --model 'vit_large(training=True)' --train

Inference is bf16 throughout; training keeps float32 weights under bf16 autocast. `tiny=True` makes
each model small enough for a CPU. The transformers are from `transformers`. ResNet-50 is
torchvision's, or timm's if only that is installed, else `ResNet50` below.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
Inputs = tuple[tuple[Any, ...], dict[str, Any]]

_made: list[Inputs] = []
"""The inputs of the models created so far; the last model's are last."""


def example_inputs() -> Inputs:
    """The inputs of the model created last."""
    if not _made:
        raise ValueError("choose a model first: --model 'bert_base()'")
    return _made[-1]


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1, with the stride in the 3x3 ("v1.5", as in torchvision)."""

    def __init__(self, inner: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inner, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample: nn.Module | None = None
        if stride != 1 or inner != 4 * width:
            self.downsample = nn.Sequential(
                nn.Conv2d(inner, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet50(nn.Module):
    """He et al., arXiv 1512.03385; 25,557,032 parameters with 1,000 classes."""

    def __init__(
        self, blocks: tuple[int, ...] = (3, 4, 6, 3), width: int = 64, classes: int = 1000
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        layers: list[nn.Module] = []
        inner = width
        for number, count in enumerate(blocks):
            outer = width << number
            for block in range(count):
                layers.append(Bottleneck(inner, outer, 2 if number and not block else 1))
                inner = 4 * outer
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(inner, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return self.fc(self.layers(x).mean((2, 3)))


class Autocast(nn.Module):
    """A model whose forward runs under bf16 autocast."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with torch.autocast(DEVICE, torch.bfloat16):
            return self.model(*args, **kwargs)


class Classify(nn.Module):
    """The cross-entropy of an image classifier: the counterpart of `outputs.loss`."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(self.model(images), labels)


def _on_device(make: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    """Draw weights and inputs on the device: a billion of them are quick on a GPU."""

    @functools.wraps(make)
    def made(**choices: Any) -> nn.Module:
        torch.manual_seed(0)
        with torch.device(DEVICE):
            return make(**choices)

    return made


@_on_device
def resnet50(training: bool = False, tiny: bool = False, batch: int = 32) -> nn.Module:
    """ResNet-50, 224 x 224 images."""
    model = ResNet50((1, 1), 8, 10) if tiny else _resnet50()
    size, classes = (32, 10) if tiny else (224, 1000)
    images = torch.randn(2 if tiny else batch, 3, size, size)
    labels = torch.randint(0, classes, (images.shape[0],))
    if training:
        return _ready(Classify(model), True, ((images, labels), {}))
    return _ready(model, False, ((images,), {}))


def _resnet50() -> nn.Module:
    for package, make in (("torchvision.models", "resnet50"), ("timm.models.resnet", "resnet50")):
        try:
            return getattr(importlib.import_module(package), make)()  # type: ignore[no-any-return]
        except ImportError:
            continue
    return ResNet50()


@_on_device
def bert_base(training: bool = False, tiny: bool = False, batch: int = 16) -> nn.Module:
    """BERT-base with its language model head, 512 tokens, no padding."""
    import transformers

    small = {
        "vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 32,
    }  # fmt: skip
    model = transformers.BertForMaskedLM(transformers.BertConfig(**small if tiny else {}))
    inputs = _tokens(model, 2 if tiny else batch, 16 if tiny else 512, training)
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    return _ready(model, training, ((), inputs))


@_on_device
def gpt2(training: bool = False, tiny: bool = False, batch: int = 8) -> nn.Module:
    """GPT-2 with 124 million parameters, 512 tokens, no key-value cache."""
    import transformers

    small = {
        "vocab_size": 64, "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 2,
        "bos_token_id": 1, "eos_token_id": 2,
    }  # fmt: skip
    config = transformers.GPT2Config(use_cache=False, **small if tiny else {})
    model = transformers.GPT2LMHeadModel(config)
    inputs = _tokens(model, 2 if tiny else batch, 16 if tiny else 512, training)
    return _ready(model, training, ((), inputs))


@_on_device
def llama_7b(
    training: bool = False, tiny: bool = False, batch: int = 4, layers: int = 4
) -> nn.Module:
    """The first layers of a model with the widths of Llama-7B, 512 tokens, no cache."""
    import transformers

    small = {
        "vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2,
        "max_position_embeddings": 32,
    }  # fmt: skip
    config = transformers.LlamaConfig(
        use_cache=False, num_hidden_layers=2 if tiny else layers, **small if tiny else {}
    )
    model = transformers.LlamaForCausalLM(config)
    inputs = _tokens(model, 2 if tiny else batch, 16 if tiny else 512, training)
    return _ready(model, training, ((), inputs))


@_on_device
def vit_large(training: bool = False, tiny: bool = False, batch: int = 32) -> nn.Module:
    """ViT-Large with 16 x 16 patches of 224 x 224 images, and a classifier."""
    import transformers

    large = {
        "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
        "intermediate_size": 4096, "num_labels": 1000,
    }  # fmt: skip
    small = {
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 64, "num_labels": 10, "image_size": 32,
    }  # fmt: skip
    config = transformers.ViTConfig(**small if tiny else large)
    model = transformers.ViTForImageClassification(config)
    images = torch.randn(2 if tiny else batch, 3, config.image_size, config.image_size)
    inputs = {"pixel_values": images}
    if training:
        inputs["labels"] = torch.randint(0, config.num_labels, (images.shape[0],))
    return _ready(model, training, ((), inputs))


def _tokens(model: Any, batch: int, length: int, training: bool) -> dict[str, Tensor]:
    tokens = torch.randint(0, model.config.vocab_size, (batch, length))
    return {"input_ids": tokens, "labels": tokens} if training else {"input_ids": tokens}


def _ready(model: nn.Module, training: bool, inputs: Inputs) -> nn.Module:
    """Move a model to its device and dtype, and store its inputs for `example_inputs`."""
    dtype = torch.float32 if training else torch.bfloat16

    def placed(value: Tensor) -> Tensor:
        return value.to(DEVICE, dtype) if value.is_floating_point() else value.to(DEVICE)

    positional, keyword = inputs
    _made.append(
        (tuple(map(placed, positional)), {name: placed(one) for name, one in keyword.items()})
    )
    model = model.to(DEVICE, dtype)
    return Autocast(model).train() if training else model.eval()


MODELS: dict[str, tuple[str, Callable[..., nn.Module]]] = {
    "resnet": ("ResNet-50, batch 32", resnet50),
    "bert": ("BERT-base, 16×512", bert_base),
    "gpt2": ("GPT-2, 8×512", gpt2),
    "vit": ("ViT-Large, batch 32", vit_large),
    "llama": ("Llama-7B widths, 4 layers, 4×512", llama_7b),
}
"""Name -> (title, factory), in the order of the table."""
