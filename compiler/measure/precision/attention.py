"""A GPU's fused attentions in float64, which their kernels do not support: as two products and a
softmax, differentiated by autograd (`sdp_utils` in aten/src/ATen/native/transformers).

Their auxiliary results (the sums of the softmax, random number states, sizes) are specific to the
kernel: they are None here and are not compared (`keeps_books`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import fx
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


def _attention(
    query: Any, key: Any, value: Any, bias: Any, causal: bool, scale: float | None
) -> Any:
    grouped = query.shape[-3] != key.shape[-3]
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(
            query, key, value, bias, is_causal=causal, scale=scale, enable_gqa=grouped
        )


def _gradients(
    grad: Any,
    query: Any,
    key: Any,
    value: Any,
    bias: Any,
    causal: bool,
    scale: float | None,
    of_bias: bool = False,
) -> tuple[Any, ...]:
    given = [one.detach().requires_grad_() for one in (query, key, value)]
    wanted = list(given)
    if of_bias and bias is not None:
        bias = bias.detach().requires_grad_()
        wanted.append(bias)
    query, key, value = given
    with torch.enable_grad():
        out = _attention(query, key, value, bias, causal, scale)
        return tuple(torch.autograd.grad(out, wanted, grad))


def _flash(
    query: Any,
    key: Any,
    value: Any,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    return (_attention(query, key, value, None, is_causal, scale), *[None] * 8)


def _with_bias(
    beside: int,
    query: Any,
    key: Any,
    value: Any,
    attn_bias: Any,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    """`beside`: the number of auxiliary results after the attention."""
    return (_attention(query, key, value, attn_bias, is_causal, scale), *[None] * beside)


def _flash_backward(
    grad: Any, query: Any, key: Any, value: Any, *rest: Any, scale: float | None = None
) -> tuple[Any, ...]:
    # out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, …
    return _gradients(grad, query, key, value, None, rest[7], scale)


def _efficient_backward(
    grad: Any, query: Any, key: Any, value: Any, bias: Any, *rest: Any, scale: float | None = None
) -> tuple[Any, ...]:
    # out, logsumexp, philox_seed, philox_offset, dropout_p, grad_input_mask, is_causal
    causal = rest[6] if len(rest) > 6 else False
    found = _gradients(grad, query, key, value, bias, causal, scale, rest[5][3])
    return (*found, *[None] * (4 - len(found)))


def _cudnn_backward(
    grad: Any, query: Any, key: Any, value: Any, *rest: Any, scale: float | None = None
) -> tuple[Any, ...]:
    # out, logsumexp, philox_seed, philox_offset, attn_bias, cum_seq_q, …, dropout_p, is_causal
    return _gradients(grad, query, key, value, rest[4], rest[10], scale)


_OF = "scaled_dot_product"
IN_FLOAT64: dict[str, Callable[..., Any]] = {
    f"{_OF}_flash_attention": _flash,
    f"{_OF}_efficient_attention": partial(_with_bias, 3),
    f"{_OF}_cudnn_attention": partial(_with_bias, 8),
    f"{_OF}_flash_attention_backward": _flash_backward,
    f"{_OF}_efficient_attention_backward": _efficient_backward,
    f"{_OF}_cudnn_attention_backward": _cudnn_backward,
}
"""By the operation's name (`operations.base_name`)."""
_FORWARD = {name for name in IN_FLOAT64 if not name.endswith("backward")}


def keeps_books(node: fx.Node, name_of: Callable[[object], str]) -> bool:
    """Whether a node is an auxiliary result of a fused attention."""
    if node.target is not operator.getitem or not isinstance(node.args[0], fx.Node):
        return False
    return node.args[1] != 0 and name_of(node.args[0].target) in _FORWARD
