"""Which ATen operations are taken apart before our compiler sees the graph.

torch's core ATen table, minus what one ATen kernel does better than the pieces would, plus the
composites that fusion lives on: normalisations, softmaxes, activations, losses, `_foreach` lists.
Random numbers stay ATen calls, so that the bits are those of eager.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import _core_aten_decompositions_post_autograd, get_decompositions

from compiler.engine.foreach import foreach_decompositions

aten = torch.ops.aten

Table = dict[Any, Callable[..., Any]]

WHOLE = (
    # one call, however the mask comes: its pieces would write the scores to memory
    aten._scaled_dot_product_flash_attention_for_cpu,
    # products: BLAS
    aten.baddbmm,
    aten.dot,
    aten.vdot,
    aten.mv,
    # an index picks rows that are added up: ATen's kernels need no atomics
    aten.embedding_dense_backward,
    aten._embedding_bag,
    aten.index_add,
    aten.unfold_backward,
    # windows and resampling
    aten.im2col,
    aten.col2im,
    aten.avg_pool2d_backward,
    aten.max_unpool2d,
    aten.max_unpool3d,
    aten.upsample_linear1d,
    aten.upsample_bilinear2d,
    aten.upsample_trilinear3d,
    aten.upsample_nearest2d_backward,
    # random numbers: the same bits as eager
    aten.bernoulli,
    aten.rrelu_with_noise,
    aten.rrelu_with_noise_,
    aten.native_dropout,
    # quantisation observers change their arguments
    aten._fused_moving_avg_obs_fq_helper,
    # one operator of the loop IR each
    aten.sigmoid,
    aten.tanh,
    aten.erf,
    aten.select_scatter,
    aten.slice_scatter,
    aten._to_copy,
    aten.sum,
    aten.all,
    aten.any,
)
"""Never taken apart, though torch's core table would."""

APART = (
    aten._batch_norm_no_update,
    aten._batch_norm_with_update,
    aten._batch_norm_with_update_functional,
    aten._log_softmax,
    aten._native_batch_norm_legit,
    aten._native_batch_norm_legit_functional,
    aten._native_batch_norm_legit_no_training,
    aten._softmax,
    aten.addmv,
    aten.arange,
    aten.batch_norm_backward,
    aten.dist,
    aten.elu,
    aten.empty_like,
    aten.hardtanh,
    aten.index_select,
    aten.leaky_relu,
    aten.linalg_vector_norm,
    aten.native_batch_norm,
    aten.native_group_norm,
    aten.native_layer_norm,
    aten.permute_copy,
    aten.rrelu_with_noise_backward,
    aten.tril_indices,
    aten.triu_indices,
    aten.unbind_copy.int,
)
"""Taken apart, though torch's core table keeps them."""


LOWERED_WHOLE = (aten.gelu, aten.gelu_backward, aten.silu)
"""Lowered at once, to the loops that their pieces would become: tracing the pieces costs more than
all our stages together. Only what the partitioner knows how to recompute: it saves what any other
operation of the backward reads, and knows nothing better of a normalisation in one piece."""

LOWERED_WHOLE_IN_INFERENCE = (
    aten._fused_rms_norm,
    aten._log_softmax,
    aten._native_batch_norm_legit_no_training,
    aten._safe_softmax,
    aten._softmax,
    aten.addcdiv,
    aten.addcmul,
    aten.elu,
    aten.hardsigmoid,
    aten.hardswish,
    aten.hardtanh,
    aten.leaky_relu,
    aten.lerp,
    aten.logsumexp,
    aten.masked_fill,
    aten.mish,
    aten.native_group_norm,
    aten.native_layer_norm,
    aten.softplus,
    aten.std,
)
"""The same, where no partitioner has to choose among the pieces what to save for the backward."""


def _softmax_backward_data(grad: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    """(grad - sum(grad * output)) * output, as ATen's kernel has it.

    torch's table says `grad * output - output * sum`: two rounded products that nearly cancel where
    one probability is close to 1.
    """
    dtype = output.dtype
    wide = torch._prims_common.get_computation_dtype(dtype)
    grad, output = grad.to(wide), output.to(wide)
    total = (grad * output).sum(dim, keepdim=True)
    narrow = dtype if grad.device.type == "cpu" else input_dtype
    return ((grad - total) * output).to(narrow).contiguous()


def _weight_norm_backward(grad: Any, v: Any, g: Any, norms: Any, dim: int) -> Any:
    """torch's table has the forward alone. aten/src/ATen/native/cpu/WeightNormKernel.cpp."""
    wide = norms.dtype
    grad, direction, length = grad.to(wide), v.to(wide), g.to(wide)
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    along = (grad * direction).sum(others, keepdim=True)
    to_v = (length / norms) * (grad - direction * (along / (norms * norms)))
    return to_v.to(v.dtype).contiguous(), (along / norms).to(g.dtype)


@functools.cache
def decompositions(training: bool = True) -> Table:
    """Operation -> the function that writes it in others."""
    table: Table = dict(_core_aten_decompositions_post_autograd())
    for operation in WHOLE:
        for overload in operation.overloads():
            table.pop(getattr(operation, overload), None)
    table.update(get_decompositions(list(APART)))
    table.update(foreach_decompositions())
    table[aten._softmax_backward_data.default] = _softmax_backward_data
    table[aten._weight_norm_interface_backward.default] = _weight_norm_backward
    for operation in LOWERED_WHOLE if training else (*LOWERED_WHOLE, *LOWERED_WHOLE_IN_INFERENCE):
        for overload in operation.overloads():
            table.pop(getattr(operation, overload), None)
    return table
