"""The fused groups that most models of `transformers` have, as functions.

    python -m tests.cpu.codegen.count_groups               counts them: four CPU minutes
    python -m tests.cpu.codegen.count_groups --write       and writes the 30 most common ones

Each model, small and with random weights, is compiled for inference and for training as on a GPU,
up to fusion. A group is counted by what it computes (its nest's label), once for each model. Its
function consists of its operations and the views between them, with the sizes of the first model
that has it.
"""

from __future__ import annotations

import argparse
import subprocess
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import getitem
from pathlib import Path
from typing import Any

import torch
import transformers
from functorch.compile import make_boxed_func
from torch import fx
from torch._dynamo.backends.common import aot_autograd

from tcw.compiler.engine.compile import load_families
from tcw.compiler.engine.partition import partition
from tcw.compiler.fusion import build_nest
from tcw.compiler.fusion.fuse import fuse
from tcw.compiler.fusion.weights import GPU
from tcw.compiler.loops.nest import Nest
from tcw.compiler.lowering.driver import lower
from tcw.compiler.rewrites.decompositions import decompositions

FILE = Path(__file__).with_name("model_groups.py")
MOST = 30

TEXT = (
    "Bert", "DistilBert", "Roberta", "Electra", "Albert", "GPT2", "OPT", "GPTNeoX", "Qwen2",
    "Qwen3", "Gemma", "Gemma2", "Phi3", "Mistral", "Bloom", "Olmo2", "Llama", "Mixtral", "Cohere",
    "StableLm", "Granite", "DebertaV2", "XLMRoberta", "Mamba", "Mpt", "Starcoder2",
)  # fmt: skip
PAIRS = ("Bart", "Pegasus")
IMAGES = (
    "ViT", "DeiT", "Beit", "Dinov2", "ConvNext", "Swin", "ResNet", "ConvNextV2", "Segformer",
)  # fmt: skip
HEADS = (
    "ForCausalLM", "LMHeadModel", "ForMaskedLM", "ForConditionalGeneration",
    "ForImageClassification",
)  # fmt: skip
WIDTHS = (
    "hidden_size", "d_model", "n_embd", "dim", "embedding_size", "word_embed_proj_dim",
    "moe_intermediate_size",
)  # fmt: skip
LAYERS = (
    "num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers",
)  # fmt: skip
OF_FOUR = (
    "num_attention_heads", "n_head", "n_heads", "encoder_attention_heads",
    "decoder_attention_heads", "num_experts", "num_local_experts",
)  # fmt: skip
OF_64 = (
    "vocab_size", "intermediate_size", "d_ff", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim",
    "hidden_dim", "max_position_embeddings", "n_positions",
)  # fmt: skip
SMALL: dict[str, Any] = {
    **dict.fromkeys(WIDTHS, 32), **dict.fromkeys(LAYERS, 2), **dict.fromkeys(OF_FOUR, 4),
    **dict.fromkeys(OF_64, 64),
    "num_key_value_heads": 2, "num_experts_per_tok": 2, "head_dim": 8, "sliding_window": 8,
    "image_size": 32, "patch_size": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "use_cache": False,
}  # fmt: skip
"""Attributes of configurations."""
OWN: dict[str, dict[str, Any]] = {
    "ConvNext": {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2, "patch_size": 4},
    "ConvNextV2": {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2, "patch_size": 4},
    "Swin": {
        "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "window_size": 4, "image_size": 32,
        "patch_size": 4,
    },
    "ResNet": {"embedding_size": 8, "hidden_sizes": [16, 32], "depths": [1, 1]},
    "Segformer": {
        "depths": [1, 1, 1, 1], "hidden_sizes": [8, 16, 32, 64], "decoder_hidden_size": 32,
        "num_attention_heads": [1, 2, 2, 4],
    },
}  # fmt: skip


def model(name: str) -> tuple[Any, dict[str, torch.Tensor]]:
    """A model with its inputs for training."""
    make = getattr(transformers, f"{name}Config")
    known = make()
    own = OWN.get(name) or {k: v for k, v in SMALL.items() if hasattr(known, k)}
    head = next(h for h in HEADS if hasattr(transformers, name + h))
    made = getattr(transformers, name + head)(make(**own))
    if name in IMAGES:
        return made, {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.tensor([0, 1])}
    tokens = torch.randint(3, 60, (2, 16))
    return made, {"input_ids": tokens, "labels": tokens}


class Groups:
    """The groups of all models."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        """Label -> how often each model has it."""
        self.functions: dict[str, str] = {}

    def of(self, name: str) -> None:
        made, inputs = model(name)
        backend = aot_autograd(
            fw_compiler=self._compiler(name, "forward"),
            bw_compiler=self._compiler(name, "backward"),
            inference_compiler=self._compiler(name, "forward"),
            partition_fn=partial(partition, gate=None),
            decompositions=decompositions(),
        )
        torch._dynamo.reset()
        torch.compile(made.train(), backend=backend)(**inputs).loss.backward()
        torch._dynamo.reset()
        with torch.no_grad():
            torch.compile(made.eval(), backend=backend)(**inputs)

    def _compiler(self, model: str, kind: str) -> Callable[..., Any]:
        def compiler(module: fx.GraphModule, inputs: Sequence[Any]) -> Any:
            program = fuse(lower(module, "graph"), machine=GPU).program
            for step in program.steps:
                if isinstance(step, Nest):
                    key = f"{step.label} ({kind})"
                    self.counts[key][model] += 1
                    if key not in self.functions:
                        self.functions[key] = function(module, step.origins(), key, model)
            return make_boxed_func(module.forward)

        return compiler

    def common(self) -> list[tuple[str, Counter[str]]]:
        """The most common first."""
        return sorted(self.counts.items(), key=lambda one: (-len(one[1]), -one[1].total(), one[0]))


def function(module: fx.GraphModule, origins: Sequence[str], key: str, model: str) -> str:
    """The text of a group's function, and of what makes its inputs."""
    nodes = {node.name: node for node in module.graph.nodes}
    wanted = {nodes[origin] for origin in origins if origin in nodes}
    for node in reversed(module.graph.nodes):
        readers = [user for user in node.users if user in wanted]
        if readers and _is_view(node) and node.op == "call_function":
            wanted.add(node)
    for node in module.graph.nodes:
        if node.target is getitem and node.args[0] in wanted:
            wanted.add(node)
    names: dict[fx.Node, str] = {}
    lines: list[str] = []
    inputs: list[str] = []

    def given(argument: fx.Node) -> str:
        if argument not in names:
            names[argument] = f"a{len(inputs)}"
            value = argument.meta["val"]
            inputs.append(f"given({tuple(value.shape)}, {tuple(value.stride())}, {value.dtype})")
        return names[argument]

    def text(item: Any) -> str:
        if isinstance(item, fx.Node):
            return given(item)
        if isinstance(item, (list, tuple)):
            return f"[{', '.join(map(text, item))}]"
        if item is torch.float32:
            return "real"
        return "cpu" if isinstance(item, torch.device) else repr(item)

    results = []
    for node in module.graph.nodes:
        if node not in wanted:
            continue
        words = [text(argument) for argument in node.args]
        words += [
            f"{name}={text(value)}"
            for name, value in node.kwargs.items()
            if name not in ("pin_memory", "layout")
        ]
        names[node] = f"v{len(lines)}"
        target = str(node.target) if isinstance(node.target, torch._ops.OpOverload) else "getitem"
        lines.append(f"    {names[node]} = {target}({', '.join(words)})")
        if not _is_view(node) and any(user not in wanted for user in node.users):
            results += [names[node]] if isinstance(node.meta["val"], torch.Tensor) else []
    given_names = ", ".join(f"a{i}: Any" for i in range(len(inputs)))
    head = f"def {_identifier(key)}({given_names}, real: torch.dtype = torch.float32) -> Any:"
    body = [head, *lines, f"    return {', '.join(results)}"]
    made = ",\n        ".join(inputs)
    return "\n".join(
        (*body, "", "", f"GROUPS[{key!r}] = (", f"    {_identifier(key)},", f"    [{made}],", ")")
    )


def _is_view(node: fx.Node) -> bool:
    target = node.target
    return isinstance(target, torch._ops.OpOverload) and (
        target.is_view or target is torch.ops.aten.reshape.default
    )


def _identifier(key: str) -> str:
    words = "".join(c if c.isalnum() else " " for c in key)
    return "_".join(words.split())


HEAD = '''"""The fused groups that most models of `transformers` have: written by `count_groups`."""

# ruff: noqa: RET504

from __future__ import annotations

from collections.abc import Callable
from operator import getitem
from typing import Any

import torch

aten, prims = torch.ops.aten, torch.ops.prims
cpu, inf = torch.device("cpu"), float("inf")
Given = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]
GROUPS: dict[str, tuple[Callable[..., Any], list[Given]]] = {}
"""What a group computes -> its function, and sizes, strides and dtypes of its inputs."""


def given(sizes: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> Given:
    return sizes, strides, dtype
'''


def texts(groups: Groups) -> Iterator[str]:
    yield HEAD
    for key, counts in groups.common()[:MOST]:
        yield f"\n\n# {len(counts)} models, {counts.total()} groups\n{groups.functions[key]}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write {FILE.name}")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    build_nest.LABEL_LENGTH = 100  # groups with the same beginning are different ones
    load_families()
    groups = Groups()
    for name in (*TEXT, *PAIRS, *IMAGES):
        torch.manual_seed(0)
        try:
            groups.of(name)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:100]}", flush=True)
    for key, counts in groups.common()[: 2 * MOST]:
        print(f"{len(counts):3} models {counts.total():4} groups  {key}")
    if arguments.write:
        FILE.write_text("".join(texts(groups)), encoding="utf-8")
        subprocess.run(["ruff", "format", str(FILE)], check=True)


if __name__ == "__main__":
    main()
