"""Properties of ATen operations for running them in another precision.

An operation may round (most do), only move or select existing values (exact), jump (comparisons,
indices, rounding to integers), or draw random numbers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch.utils import flop_counter

_EXACT = frozenset({
    "abs", "abs_", "alias", "amax", "amin", "argmax", "argmin", "argsort", "as_strided",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "broadcast_in_dim", "cat", "chunk",
    "clamp", "clamp_max", "clamp_min", "clone", "constant_pad_nd", "contiguous", "copy", "copy_",
    "cummax", "cummin", "detach", "diagonal", "diagonal_copy", "embedding", "eq", "expand",
    "expand_copy", "fill", "flip", "floor", "ceil", "round", "trunc", "sign", "gather", "ge",
    "getitem", "gt", "hardtanh", "index", "index_select", "isfinite", "isinf", "isnan", "item",
    "kthvalue", "le", "leaky_relu", "lift", "lift_fresh", "lift_fresh_copy", "logical_and",
    "logical_not", "logical_or", "logical_xor", "lt", "masked_fill", "masked_select", "max",
    "max_pool2d_with_indices", "max_pool3d_with_indices", "maximum", "median", "min", "minimum",
    "fractional_max_pool2d", "fractional_max_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d",
    "mode", "narrow", "ne", "neg", "nonzero", "permute", "pixel_shuffle", "pixel_unshuffle",
    "reflection_pad1d", "reflection_pad2d", "relu", "repeat", "replication_pad1d",
    "replication_pad2d", "reshape", "resize", "roll", "scatter", "searchsorted", "select",
    "select_scatter", "set", "signbit", "slice", "slice_scatter", "sort", "split",
    "split_with_sizes", "squeeze", "stack", "t", "threshold", "threshold_backward", "to", "topk",
    "transpose", "tril",
    "triu", "unbind", "unfold", "unsqueeze", "unsafe_index", "unsafe_split", "unsafe_view",
    "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "view", "where",
    "low_memory_max_pool_with_offsets", "low_memory_max_pool_offsets_to_indices", "masked_index",
    "unsafe_masked_index", "zeros_like", "ones_like", "_reshape_alias", "view_copy",
})  # fmt: skip
"""By name, without leading underscores. Each element of the result is an element of an argument (or
its negative, or a selection of these), whatever the precision."""
_JUMPS = frozenset({
    "ceil", "floor", "floor_divide", "round", "trunc", "fix", "sign", "sgn", "frac", "fmod",
    "remainder",
})  # fmt: skip
"""Return floats and are discontinuous in their argument."""
_ALONG_A_DIMENSION = frozenset({
    "batch_norm_with_update", "cummax", "cumprod", "cumsum", "logcumsumexp", "log_softmax",
    "log_softmax_backward_data", "native_batch_norm", "native_batch_norm_backward",
    "native_group_norm", "native_group_norm_backward", "native_layer_norm",
    "native_layer_norm_backward", "softmax", "softmax_backward_data", "prepare_softmax_online",
    "index_put", "index_add", "scatter_add", "scatter_reduce", "native_batch_norm_legit",
    "native_batch_norm_legit_functional", "native_batch_norm_legit_no_training", "fused_rms_norm",
    "embedding_dense_backward", "scaled_dot_product_flash_attention_for_cpu_backward",
})  # fmt: skip
"""Sum over part of the tensor, although the result is as large as the argument."""


def base_name(target: object) -> str:
    """`softmax` for `aten._softmax.default`."""
    if target is operator.getitem:
        return "getitem"
    packet = getattr(target, "_opname", None) or getattr(target, "__name__", "")
    return str(packet).strip("_")


def is_operation(target: object) -> bool:
    return isinstance(target, torch._ops.OpOverload)


def written(target: object) -> list[tuple[int, str]]:
    """Place and name of each argument that an operation writes in place."""
    if not isinstance(target, torch._ops.OpOverload) or not target._schema.is_mutable:
        return []
    return [
        (place, argument.name)
        for place, argument in enumerate(target._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]


def is_exact(target: object) -> bool:
    """Whether the operation does not round."""
    return base_name(target) in _EXACT or not is_operation(target)


def jumps(target: object) -> bool:
    """Whether a small change of an argument may change the float result by much."""
    return base_name(target) in _JUMPS


def draws(node: fx.Node) -> bool:
    """Whether the result depends on random numbers."""
    target = node.target
    name = base_name(target)
    if name in ("inductor_random", "inductor_randint", "inductor_seed", "inductor_seeds"):
        return True
    if not is_operation(target) or torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    return "attention" not in name or _dropout(node) != 0.0


def _dropout(node: fx.Node) -> float:
    """An attention's dropout; 1 if unknown."""
    schema = node.target._schema.arguments
    for place, argument in enumerate(schema):
        if argument.name == "dropout_p":
            value = (
                node.args[place] if place < len(node.args) else node.kwargs.get("dropout_p", 0.0)
            )
            return float(value) if isinstance(value, (int, float)) else 1.0
    return 0.0


def is_uninitialised(target: object) -> bool:
    """Whether the result is uninitialised memory."""
    return base_name(target) in (
        "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"
    )  # fmt: skip


def reads_bits(target: object) -> bool:
    """Whether the operation reinterprets a tensor's bits as another dtype."""
    overload = getattr(target, "_overloadname", "")
    return base_name(target) in ("view", "view_copy") and overload == "dtype"


def terms(
    target: object,
    called: tuple[Sequence[Any], Mapping[str, Any], Any],
    arguments: list[torch.Tensor],
    results: list[torch.Tensor],
) -> float:
    """The approximate number of terms summed for one element of the result; 1 if none are.
    `called`: the arguments by place and by name, and what comes of them."""
    out = max((result.numel() for result in results), default=0)
    if not arguments or not out:
        return 1.0
    packet = getattr(target, "overloadpacket", None)
    count = flop_counter.flop_registry.get(packet)
    if count is not None:
        with_flops = _flops(count, *called)
        if with_flops:
            return max(1.0, with_flops / (2 * out))
        sizes = sorted((argument.numel() for argument in arguments), reverse=True)[:2]
        return max(1.0, math.sqrt(math.prod(sizes) / out))
    largest = max(argument.numel() for argument in arguments)
    if base_name(target) in _ALONG_A_DIMENSION:
        return float(max(max(argument.shape, default=1) for argument in arguments))
    return max(1.0, float(largest) / out)


def _flops(count: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> int:
    try:
        return int(count(*args, **kwargs, out_val=result))
    except Exception:  # a formula for other arguments, or symbolic sizes
        return 0


def is_view(target: object) -> bool:
    """Whether the result shares its argument's memory."""
    if not is_operation(target):
        return False
    returns = target._schema.returns  # type: ignore[attr-defined]
    return any(one.alias_info is not None and not one.alias_info.is_write for one in returns)
