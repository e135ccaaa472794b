"""Models of `transformers` from small configs with random weights: nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import transformers

Call = Callable[[], object]
"""One call of the compiled model."""

BATCHES = (2, 3, 4)


def _ids(batch: int, length: int = 16, vocabulary: int = 64) -> torch.Tensor:
    return torch.arange(batch * length).reshape(batch, length) % (vocabulary - 4) + 3


@dataclass(frozen=True)
class Recipe:
    """A model and its keyword arguments for a batch size."""

    model: torch.nn.Module
    inputs: Callable[[int], dict[str, torch.Tensor]]

    def calls(self) -> list[Call]:
        """The model compiled with a backend that only captures, called with each batch size."""
        self.model.eval()
        compiled = torch.compile(self.model, backend="eager")

        def call(batch: int) -> object:
            with torch.no_grad():
                return compiled(**self.inputs(batch))

        return [lambda batch=batch: call(batch) for batch in BATCHES]


def bert() -> Recipe:
    config = transformers.BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=32,
    )  # fmt: skip
    model = transformers.BertModel(config)
    return Recipe(
        model, lambda n: {"input_ids": _ids(n), "attention_mask": torch.ones(n, 16).long()}
    )


def gpt2_generate() -> list[Call]:
    config = transformers.GPT2Config(
        vocab_size=64, n_positions=32, n_embd=32, n_layer=1, n_head=2,
        bos_token_id=1, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config).eval()
    model.forward = torch.compile(model.forward, backend="eager")

    def call(batch: int) -> object:
        return model.generate(
            _ids(batch, 6),
            attention_mask=torch.ones(batch, 6).long(),
            max_new_tokens=4,
            do_sample=False,
        )

    return [lambda batch=batch: call(batch) for batch in BATCHES]


def llama() -> Recipe:
    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32,
    )  # fmt: skip
    return Recipe(transformers.LlamaForCausalLM(config), lambda n: {"input_ids": _ids(n)})


def t5() -> Recipe:
    config = transformers.T5Config(
        vocab_size=64, d_model=32, d_kv=8, d_ff=64, num_layers=1, num_heads=4,
        decoder_start_token_id=0,
    )  # fmt: skip
    model = transformers.T5ForConditionalGeneration(config)
    return Recipe(model, lambda n: {"input_ids": _ids(n), "decoder_input_ids": _ids(n, 8)})


def whisper() -> Recipe:
    config = transformers.WhisperConfig(
        vocab_size=64, num_mel_bins=8, encoder_layers=1, encoder_attention_heads=2,
        decoder_layers=1, decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64,
        d_model=32, max_source_positions=16, max_target_positions=16, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        suppress_tokens=[], begin_suppress_tokens=[],
    )  # fmt: skip
    model = transformers.WhisperModel(config)
    return Recipe(
        model,
        lambda n: {
            "input_features": torch.linspace(-1, 1, n * 8 * 32).reshape(n, 8, 32),
            "decoder_input_ids": _ids(n, 8),
        },
    )


def longformer() -> Recipe:
    config = transformers.LongformerConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=40, attention_window=[4],
    )  # fmt: skip

    def inputs(batch: int) -> dict[str, torch.Tensor]:
        everywhere = torch.zeros(batch, 16).long()
        everywhere[:, 0] = 1
        return {
            "input_ids": _ids(batch),
            "attention_mask": torch.ones(batch, 16).long(),
            "global_attention_mask": everywhere,
        }

    return Recipe(transformers.LongformerModel(config), inputs)


def reformer() -> Recipe:
    config = transformers.ReformerConfig(
        vocab_size=64, attention_head_size=8, attn_layers=["local", "lsh"],
        axial_pos_embds_dim=[16, 16], axial_pos_shape=[4, 4], chunk_size_lm_head=0,
        feed_forward_size=64, hidden_size=32, local_attn_chunk_length=4, lsh_attn_chunk_length=4,
        max_position_embeddings=16, num_attention_heads=2, num_buckets=2, num_hashes=1,
        hash_seed=0, is_decoder=False,
    )  # fmt: skip
    return Recipe(transformers.ReformerModel(config), lambda n: {"input_ids": _ids(n)})


def mixtral() -> Recipe:
    config = transformers.MixtralConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, num_local_experts=4,
        num_experts_per_tok=2, max_position_embeddings=32,
    )  # fmt: skip
    return Recipe(transformers.MixtralForCausalLM(config), lambda n: {"input_ids": _ids(n)})


def mamba() -> Recipe:
    config = transformers.MambaConfig(
        vocab_size=64, hidden_size=32, state_size=4, num_hidden_layers=1, intermediate_size=64
    )
    return Recipe(transformers.MambaForCausalLM(config), lambda n: {"input_ids": _ids(n)})


RECIPES: dict[str, Callable[[], Recipe]] = {
    "bert": bert,
    "llama": llama,
    "t5": t5,
    "whisper": whisper,
    "longformer": longformer,
    "reformer": reformer,
    "mixtral": mixtral,
    "mamba": mamba,
}


def _capture_calls(recipe: Callable[[], Recipe]) -> Callable[[], list[Call]]:
    return lambda: recipe().calls()


MODELS: dict[str, Callable[[], list[Call]]] = {
    "gpt2-generate": gpt2_generate,
    **{name: _capture_calls(recipe) for name, recipe in RECIPES.items()},
}
