"""Which ATen operations are decomposed before our compiler sees the graph.

torch's core ATen table, minus operations that one ATen kernel does better than the pieces would,
plus composites that benefit from fusion: normalisations, softmaxes, activations, losses, `_foreach`
lists. Random operations stay whole, so that they produce the same bits as eager.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch._C import DispatchKey
from torch._decomp import _core_aten_decompositions_post_autograd, get_decompositions

from tcw.compiler.graphs.aten_facts import aliases
from tcw.compiler.rewrites.foreach import foreach_decompositions
from tcw.compiler.rewrites.repeated_pieces import traced_once
from tcw.compiler.rewrites.resampling import RESAMPLING

aten = torch.ops.aten

Table = dict[Any, Callable[..., Any]]

WHOLE = (
    # a single call, whatever the form of the mask: its pieces would write the scores to memory
    aten._scaled_dot_product_flash_attention_for_cpu,
    # products: BLAS
    aten.baddbmm,
    aten.dot,
    aten.vdot,
    aten.mv,
    # an index selects rows to be summed: ATen's kernels need no atomics
    aten.embedding_dense_backward,
    aten._embedding_bag,
    aten.index_add,
    aten.unfold_backward,
    # windows
    aten.im2col,
    aten.col2im,
    aten.avg_pool2d_backward,
    # random numbers: the same bits as eager
    aten.bernoulli,
    aten.rrelu_with_noise,
    aten.rrelu_with_noise_,
    aten.native_dropout,
    # quantisation observers mutate their arguments
    aten._fused_moving_avg_obs_fq_helper,
    # a single operator of the loop IR each
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
"""Never decomposed, although torch's core table would."""

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
"""Decomposed, although torch's core table keeps them."""


LOWERED_WHOLE = (aten.gelu, aten.gelu_backward, aten.mish, aten.mish_backward, aten.silu)
"""Lowered directly to the loops that their pieces would become, because tracing the pieces costs
more than all our stages together. Limited to operations that the partitioner can recompute: it
saves what any other operation of the backward reads, which is suboptimal for a normalisation. mish
is one of the others, but its pieces take four times as long."""

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
    aten.native_layer_norm,
    aten.softplus,
    aten.std,
)
"""The same if no partitioner has to choose which of the pieces to save for the backward."""


def _softmax_backward_data(grad: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    """(grad - sum(grad * output)) * output, as in ATen's kernel.

    torch's table has `grad * output - output * sum`: two rounded products that nearly cancel if one
    probability is close to 1.
    """
    dtype = output.dtype
    wide = torch._prims_common.get_computation_dtype(dtype)
    grad, output = grad.to(wide), output.to(wide)
    total = (grad * output).sum(dim, keepdim=True)
    narrow = dtype if grad.device.type == "cpu" else input_dtype
    return ((grad - total) * output).to(narrow).contiguous()


def _weight_norm_backward(grad: Any, v: Any, g: Any, norms: Any, dim: int) -> Any:
    """torch's table has only the forward. From aten/src/ATen/native/cpu/WeightNormKernel.cpp."""
    wide = norms.dtype
    grad, direction, length = grad.to(wide), v.to(wide), g.to(wide)
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    along = (grad * direction).sum(others, keepdim=True)
    to_v = (length / norms) * (grad - direction * (along / (norms * norms)))
    return to_v.to(v.dtype).contiguous(), (along / norms).to(g.dtype)


def _index_add(tensor: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """Along the memory of a tensor that is not row-major, and copied into rows once, as its result
    is: each addition into a transposed row is a write per cache line."""
    order = _dense_order(tensor)
    if order is None or order == sorted(order):
        return NotImplemented
    dim %= tensor.dim()
    found = aten.index_add(
        tensor.permute(order), order.index(dim), index, source.permute(order), alpha=alpha
    )
    return found.permute([order.index(d) for d in range(len(order))]).contiguous()


def _dense_order(tensor: Any) -> list[int] | None:
    """The dimensions from the widest stride to the narrowest; None if elements have gaps, or if
    sizes or strides are symbols."""
    shape, strides = tensor.shape, tensor.stride()
    if not all(isinstance(number, int) for number in (*shape, *strides)):
        return None
    order = sorted(range(tensor.dim()), key=lambda d: (-strides[d], d))
    width = 1
    for d in reversed(order):
        if shape[d] != 1 and strides[d] != width:
            return None
        width *= shape[d]
    return order


def _index_reduce(
    tensor: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """A mean is a sum over a count, one number for each index. Other reductions are one store."""
    if reduce != "mean" or not tensor.dim():
        return NotImplemented
    dim %= tensor.dim()
    size = tensor.shape[dim]
    kept = tensor if include_self else tensor.index_fill(dim, index, 0)
    ones = torch.ones(index.reshape(-1).shape, dtype=torch.float64, device=tensor.device)
    start = torch.full(
        (size,), 1.0 if include_self else 0.0, dtype=torch.float64, device=tensor.device
    )
    counts = start.index_add(0, index.reshape(-1), ones).clamp_min(1)
    wide = torch._prims_common.get_computation_dtype(tensor.dtype)
    shape = [size if d == dim else 1 for d in range(tensor.dim())]
    total = kept.index_add(dim, index, source)
    if not tensor.dtype.is_floating_point:
        whole = counts.to(tensor.dtype).reshape(shape)
        return torch.div(total, whole, rounding_mode="floor")
    return (total.to(wide) / counts.to(wide).reshape(shape)).to(tensor.dtype)


def _addbmm(tensor: Any, left: Any, right: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """One product over the batch and the inner dimension together. ATen calls BLAS once per batch,
    and rounds a 16-bit sum after each."""
    batch, rows, inner = left.shape
    beside = left.permute(1, 0, 2).reshape(rows, batch * inner)
    below = right.reshape(batch * inner, right.shape[2])
    return aten.addmm(tensor.expand(rows, right.shape[2]), beside, below, beta=beta, alpha=alpha)


def _full_like(tensor: Any, value: Any, *, memory_format: Any = None, **options: Any) -> Any:
    """Of the sizes alone where they are known, so that no backward keeps a tensor to read them."""
    order = _dense_order(tensor)
    preserved = memory_format in (None, torch.preserve_format)
    if (
        order is None
        or not preserved
        or any(options.get(name) for name in ("layout", "pin_memory"))
    ):
        return NotImplemented
    dtype, device = options.get("dtype") or tensor.dtype, options.get("device") or tensor.device
    full = aten.full([tensor.shape[d] for d in order], value, dtype=dtype, device=device)
    return full.permute([order.index(d) for d in range(len(order))])


def _put(tensor: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """Elements of the flattened tensor, as a store at indices; a call copies the tensor whole."""
    if not tensor.dim() or not tensor.numel():
        return NotImplemented
    flat = tensor.reshape(-1).index_put([index], source.reshape(index.shape), accumulate)
    return flat.reshape(tensor.shape)


def _take(tensor: Any, index: Any) -> Any:
    """A few elements of a tensor that is not row-major, by their place in each dimension. torch's
    table copies the tensor into rows first."""
    order = _dense_order(tensor)
    count = tensor.numel()
    in_rows = tensor.dim() < 2 or order == list(range(tensor.dim()))
    known = all(isinstance(size, int) for size in (*tensor.shape, *index.shape))
    if in_rows or not known or index.numel() >= count:
        return _core_aten_decompositions_post_autograd()[aten.take.default](tensor, index)
    flat = torch.where(index < 0, index + count, index)
    flat = torch.where(flat < 0, count, flat)  # still out of range, not wrapped twice
    places: list[Any] = []
    for size in reversed(tensor.shape[1:]):
        places.insert(0, flat % size)
        flat = flat // size
    return aten.index.Tensor(tensor, [flat, *places])


def _isin(elements: Any, tests: Any, **options: Any) -> Any:
    """Kept whole where it sorts short integers: ATen's radix sort of both takes less time than a
    search for each element among the sorted others."""
    dtype = elements.dtype
    short = not dtype.is_floating_point and not dtype.is_complex and dtype.itemsize <= 4
    sizes = (*elements.shape, *tests.shape)
    known = all(isinstance(size, int) for size in sizes)
    if short and known and tests.numel() >= 10 * elements.numel() ** 0.145:
        return NotImplemented
    return _core_aten_decompositions_post_autograd()[aten.isin.Tensor_Tensor](
        elements, tests, **options
    )


def _diag_embed(tensor: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """A diagonal written into zeros. torch's table compares two indices for each element."""
    rank = tensor.dim() + 1
    dim1, dim2 = dim1 % rank, dim2 % rank
    if dim1 == dim2:
        return NotImplemented
    side, others = tensor.shape[-1] + abs(offset), iter(tensor.shape[:-1])
    shape = [side if d in (dim1, dim2) else next(others) for d in range(rank)]
    zeros = torch.full(shape, 0, dtype=tensor.dtype, device=tensor.device)
    return zeros.diagonal_scatter(tensor, offset, dim1, dim2)


def _roll(tensor: Any, shifts: Any, dims: Any = ()) -> Any:
    """Kept whole if all sizes are known: it is lowered to two copies. torch's table computes an
    index for each element."""
    if all(isinstance(size, int) for size in (*tensor.shape, *shifts)):
        return NotImplemented
    return _core_aten_decompositions_post_autograd()[aten.roll.default](tensor, shifts, dims)


def _max_unpool(operation: Any, rank: int) -> Callable[..., Any]:
    """A scatter into the planes of an image, each of which is written on its own. torch's table
    writes into the flattened image, in which an index may point into another plane."""

    def unpool(tensor: Any, indices: Any, output_size: Any, *window: Any) -> Any:
        others = tensor.shape[:-rank]
        planes, size = math.prod(others), math.prod(output_size)
        if tensor.shape != indices.shape or planes == 0 or size == 0:
            whole = _core_aten_decompositions_post_autograd()[operation]
            return whole(tensor, indices, output_size, *window)
        zeros = torch.full((planes, size), 0, dtype=tensor.dtype, device=tensor.device)
        found = zeros.scatter(1, indices.reshape(planes, -1), tensor.reshape(planes, -1))
        return found.reshape(*others, *output_size)

    return unpool


PADS = tuple(
    getattr(aten, f"{kind}_pad{rank}d").default
    for kind in ("reflection", "replication")
    for rank in (1, 2, 3)
) + tuple(getattr(aten, f"reflection_pad{rank}d_backward").default for rank in (1, 2, 3))


def _pad(operation: Any) -> Callable[..., Any]:
    """Kept whole if no pad is negative or symbolic: each border is a copy, or, in a gradient, an
    addition. torch's table computes an index for each element. A negative pad of a replication
    crops the tensor first."""
    replicates = str(operation).startswith("aten.replication")

    def pad(*arguments: Any) -> Any:
        if all(isinstance(count, int) for count in arguments[-1]):
            if all(count >= 0 for count in arguments[-1]):
                return NotImplemented
            if replicates:
                tensor, pads = arguments
                return operation(_cropped(tensor, pads), [max(count, 0) for count in pads])
        return _core_aten_decompositions_post_autograd()[operation](*arguments)

    return pad


def _cropped(tensor: Any, pads: Any) -> Any:
    """The tensor without what negative pads, of the last dimension first, take from its ends."""
    for i in range(0, len(pads), 2):
        dim = tensor.dim() - 1 - i // 2
        low, high = max(-pads[i], 0), max(-pads[i + 1], 0)
        tensor = tensor.narrow(dim, low, tensor.shape[dim] - low - high)
    return tensor


def _of_reals(operation: Any, pieces: Callable[..., Any]) -> Callable[..., Any]:
    """Keeps an operation with a kernel of its own whole if a tensor is complex: its pieces would be
    calls too, as loops have no complex numbers."""
    if aliases(operation) or operation.has_kernel_for_dispatch_key(
        DispatchKey.CompositeImplicitAutograd
    ):
        return pieces

    @functools.wraps(pieces)
    def of_reals(*arguments: Any, **options: Any) -> Any:
        for argument in (*arguments, *options.values()):
            if isinstance(argument, torch.Tensor) and argument.is_complex():
                return NotImplemented
        return pieces(*arguments, **options)

    return of_reals


@functools.cache
def decompositions(training: bool = True) -> Table:
    """Operation -> the function that expresses it in other operations."""
    table: Table = dict(_core_aten_decompositions_post_autograd())
    for operation in WHOLE:
        for overload in operation.overloads():
            table.pop(getattr(operation, overload), None)
    table.update(get_decompositions([*APART, *RESAMPLING]))
    table.update(foreach_decompositions())
    table[aten.diag_embed.default] = _diag_embed
    table[aten.roll.default] = _roll
    table[aten.isin.Tensor_Tensor] = _isin
    table[aten.index_add.default] = _index_add
    table[aten.index_reduce.default] = _index_reduce
    table[aten.put.default] = _put
    table[aten.take.default] = _take
    table[aten.addbmm.default] = _addbmm
    table[aten.full_like.default] = _full_like
    table.update({operation: _pad(operation) for operation in PADS})
    for operation, rank in ((aten.max_unpool2d.default, 2), (aten.max_unpool3d.default, 3)):
        table[operation] = _max_unpool(operation, rank)
    table[aten._softmax_backward_data.default] = _softmax_backward_data
    table[aten._weight_norm_interface_backward.default] = _weight_norm_backward
    for operation in LOWERED_WHOLE if training else (*LOWERED_WHOLE, *LOWERED_WHOLE_IN_INFERENCE):
        for overload in operation.overloads():
            table.pop(getattr(operation, overload), None)
    return {
        operation: traced_once(operation, _of_reals(operation, pieces))
        for operation, pieces in table.items()
    }
