"""The fused groups that most models of `transformers` have: written by `count_groups`."""

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


# 25 models, 133 groups
def sum_backward(a0: Any, real: torch.dtype = torch.float32) -> Any:
    v0 = aten.view.default(a0, [32, 64])
    v1 = aten.sum.dim_IntList(v0, [0], True)
    return v1


GROUPS["sum (backward)"] = (
    sum_backward,
    [given((2, 16, 64), (1024, 64, 1), torch.float32)],
)


# 25 models, 50 groups
def to_copy_div_forward(a0: Any, a1: Any, real: torch.dtype = torch.float32) -> Any:
    v0 = aten._to_copy.default(a0, dtype=real, device=cpu)
    v1 = aten.div.Tensor(a1, v0)
    return v0, v1


GROUPS["to copy + div (forward)"] = (
    to_copy_div_forward,
    [given((), (), torch.int64), given((), (), torch.float32)],
)


# 22 models, 23 groups
def add_backward(a0: Any, a1: Any, real: torch.dtype = torch.float32) -> Any:
    v0 = aten.permute.default(a0, [1, 0])
    v1 = aten.permute.default(v0, [1, 0])
    v2 = aten.add.Tensor(v1, a1)
    return v2


GROUPS["add (backward)"] = (
    add_backward,
    [given((64, 32), (32, 1), torch.float32), given((64, 32), (32, 1), torch.float32)],
)


# 21 models, 76 groups
def add_layer_norm_forward(
    a0: Any, a1: Any, a2: Any, a3: Any, real: torch.dtype = torch.float32
) -> Any:
    v0 = aten.add.Tensor(a0, a1)
    v1 = aten.var_mean.correction(v0, [2], correction=0, keepdim=True)
    v2 = getitem(v1, 0)
    v3 = getitem(v1, 1)
    v4 = aten.add.Tensor(v2, 1e-12)
    v5 = aten.rsqrt.default(v4)
    v6 = aten.sub.Tensor(v0, v3)
    v7 = aten.mul.Tensor(v6, v5)
    v8 = aten.mul.Tensor(v7, a2)
    v9 = aten.add.Tensor(v8, a3)
    return v9


GROUPS["add + layer norm (forward)"] = (
    add_layer_norm_forward,
    [
        given((2, 16, 32), (512, 32, 1), torch.float32),
        given((2, 16, 32), (512, 32, 1), torch.float32),
        given((32,), (1,), torch.float32),
        given((32,), (1,), torch.float32),
    ],
)


# 20 models, 20 groups
def scatter_div_scalar_tensor_where_mul_sub_exp_sum_add_backward(
    a0: Any,
    a1: Any,
    a2: Any,
    a3: Any,
    a4: Any,
    a5: Any,
    a6: Any,
    a7: Any,
    a8: Any,
    real: torch.dtype = torch.float32,
) -> Any:
    v0 = aten.div.Tensor(a0, a1)
    v1 = aten.view.default(a2, [-1, 64])
    v2 = aten.sub.Tensor(v1, a3)
    v3 = aten.sub.Tensor(v2, a4)
    v4 = aten.scatter.value(a5, 1, a6, -1.0)
    v5 = aten.scalar_tensor.default(0, dtype=real, device=cpu)
    v6 = aten.where.self(a7, v0, v5)
    v7 = aten.mul.Tensor(v4, v6)
    v8 = aten.exp.default(v3)
    v9 = aten.sum.dim_IntList(v7, [1], True)
    v10 = aten.mul.Tensor(v8, v9)
    v11 = aten.sub.Tensor(v7, v10)
    v12 = aten.view.default(v11, [2, 16, 64])
    v13 = aten.add.Tensor(a8, v12)
    v14 = aten.view.default(v13, [32, 64])
    v15 = aten.sum.dim_IntList(v14, [0], True)
    return v3, v15


GROUPS["scatter + div + scalar tensor + where + mul + sub + exp + sum + add (backward)"] = (
    scatter_div_scalar_tensor_where_mul_sub_exp_sum_add_backward,
    [
        given((), (), torch.float32),
        given((), (), torch.float32),
        given((2, 16, 64), (1024, 64, 1), torch.float32),
        given((32, 1), (1, 1), torch.float32),
        given((32, 1), (1, 1), torch.float32),
        given((32, 64), (64, 1), torch.float32),
        given((32, 1), (1, 1), torch.int64),
        given((32, 1), (1, 1), torch.bool),
        given((2, 16, 64), (1024, 64, 1), torch.float32),
    ],
)


# 19 models, 66 groups
def add_layer_norm_div_forward(
    a0: Any, a1: Any, a2: Any, a3: Any, real: torch.dtype = torch.float32
) -> Any:
    v0 = aten.add.Tensor(a0, a1)
    v1 = aten.var_mean.correction(v0, [2], correction=0, keepdim=True)
    v2 = getitem(v1, 0)
    v3 = getitem(v1, 1)
    v4 = aten.add.Tensor(v2, 1e-12)
    v5 = aten.rsqrt.default(v4)
    v6 = aten.sub.Tensor(v0, v3)
    v7 = aten.mul.Tensor(v6, v5)
    v8 = aten.mul.Tensor(v7, a2)
    v9 = aten.add.Tensor(v8, a3)
    v10 = aten.div.Tensor(v5, 32)
    return v7, v9, v10


GROUPS["add + layer norm + div (forward)"] = (
    add_layer_norm_div_forward,
    [
        given((2, 16, 32), (512, 32, 1), torch.float32),
        given((2, 16, 32), (512, 32, 1), torch.float32),
        given((32,), (1,), torch.float32),
        given((32,), (1,), torch.float32),
    ],
)


# 18 models, 76 groups
def gelu_forward(a0: Any, real: torch.dtype = torch.float32) -> Any:
    v0 = aten.view.default(a0, [2, 16, 64])
    v1 = aten.gelu.default(v0)
    return v1


GROUPS["gelu (forward)"] = (
    gelu_forward,
    [given((32, 64), (64, 1), torch.float32)],
)


# 18 models, 36 groups
def log_softmax_sum_clone_ne_scalar_tensor_where_gather_neg_forward(
    a0: Any, a1: Any, real: torch.dtype = torch.float32
) -> Any:
    v0 = aten.slice.Tensor(a0, 1, 1, 9223372036854775807)
    v1 = aten.clone.default(v0, memory_format=torch.contiguous_format)
    v2 = aten.view.default(a1, [-1, 64])
    v3 = aten.view.default(v1, [-1])
    v4 = aten.amax.default(v2, [1], True)
    v5 = aten.sub.Tensor(v2, v4)
    v6 = aten.exp.default(v5)
    v7 = aten.sum.dim_IntList(v6, [1], True)
    v8 = aten.log.default(v7)
    v9 = aten.sub.Tensor(v5, v8)
    v10 = aten.ne.Scalar(v3, -100)
    v11 = aten.scalar_tensor.default(0, dtype=torch.int64, device=cpu)
    v12 = aten.where.self(v10, v3, v11)
    v13 = aten.unsqueeze.default(v12, 1)
    v14 = aten.gather.default(v9, 1, v13)
    v15 = aten.squeeze.dims(v14, [1])
    v16 = aten.neg.default(v15)
    v17 = aten.scalar_tensor.default(0, dtype=real, device=cpu)
    v18 = aten.where.self(v10, v16, v17)
    v19 = aten.sum.default(v10)
    v20 = aten.sum.default(v18)
    v21 = aten.unsqueeze.default(v3, 1)
    v22 = aten.ne.Scalar(v21, -100)
    v23 = aten.where.self(v22, v21, v11)
    return v4, v8, v19, v20, v22, v23


GROUPS["log softmax + sum + clone + ne + scalar tensor + where + gather + neg (forward)"] = (
    log_softmax_sum_clone_ne_scalar_tensor_where_gather_neg_forward,
    [given((2, 17), (17, 1), torch.int64), given((2, 16, 64), (1024, 64, 1), torch.float32)],
)


# 16 models, 32 groups
def gelu_backward_sum_backward(a0: Any, a1: Any, real: torch.dtype = torch.float32) -> Any:
    v0 = aten.view.default(a0, [2, 16, 64])
    v1 = aten.view.default(a1, [2, 16, 64])
    v2 = aten.gelu_backward.default(v0, v1)
    v3 = aten.view.default(v2, [32, 64])
    v4 = aten.sum.dim_IntList(v3, [0], True)
    return v4


GROUPS["gelu backward + sum (backward)"] = (
    gelu_backward_sum_backward,
    [given((32, 64), (64, 1), torch.float32), given((32, 64), (64, 1), torch.float32)],
)


# 15 models, 58 groups
def clone_forward(a0: Any, real: torch.dtype = torch.float32) -> Any:
    v0 = aten.view.default(a0, [2, 4, 16, 8])
    v1 = aten.view.default(v0, [2, -1, 16, 8])
    v2 = aten.permute.default(v1, [0, 2, 1, 3])
    v3 = aten.clone.default(v2, memory_format=torch.contiguous_format)
    return v3


GROUPS["clone (forward)"] = (
    clone_forward,
    [given((8, 16, 8), (128, 8, 1), torch.float32)],
)


# 15 models, 31 groups
def sub_ne_cumsum_forward(a0: Any, real: torch.dtype = torch.float32) -> Any:
    v0 = aten.slice.Tensor(a0, -1, 0, 16)
    v1 = aten.slice.Tensor(a0, -1, 1, 17)
    v2 = aten.sub.Tensor(v1, v0)
    v3 = aten.ne.Scalar(v2, 1)
    v4 = aten.cumsum.default(v3, -1)
    return v4


GROUPS["sub + ne + cumsum (forward)"] = (
    sub_ne_cumsum_forward,
    [given((2, 17), (17, 1), torch.int64)],
)


# 15 models, 30 groups
def cat_index_forward(a0: Any, a1: Any, a2: Any, real: torch.dtype = torch.float32) -> Any:
    v0 = aten.unsqueeze.default(a0, 0)
    v1 = aten.expand.default(v0, [2, -1])
    v2 = aten.cat.default([a1, v1], -1)
    v3 = aten.unsqueeze.default(a2, 1)
    v4 = aten.unsqueeze.default(v3, 2)
    v5 = aten.unsqueeze.default(v4, 3)
    v6 = aten.unsqueeze.default(v0, 1)
    v7 = aten.unsqueeze.default(v6, 2)
    v8 = aten.index.Tensor(v1, [v5, v7])
    return v2, v8


GROUPS["cat + index (forward)"] = (
    cat_index_forward,
    [
        given((16,), (1,), torch.int64),
        given((2, 1), (1, 1), torch.int64),
        given((2,), (1,), torch.int64),
    ],
)


# 14 models, 56 groups
def neg_cat_forward(a0: Any, a1: Any, real: torch.dtype = torch.float32) -> Any:
    v0 = aten.slice.Tensor(a0, 3, 0, 2)
    v1 = aten.slice.Tensor(a1, 3, 0, 2)
    v2 = aten.slice.Tensor(v0, 3, 0, 1)
    v3 = aten.slice.Tensor(v0, 3, 1, 9223372036854775807)
    v4 = aten.neg.default(v3)
    v5 = aten.cat.default([v4, v2], -1)
    v6 = aten.slice.Tensor(v1, 3, 0, 1)
    v7 = aten.slice.Tensor(v1, 3, 1, 9223372036854775807)
    v8 = aten.neg.default(v7)
    v9 = aten.cat.default([v8, v6], -1)
    return v5, v9


GROUPS["neg + cat (forward)"] = (
    neg_cat_forward,
    [
        given((2, 4, 16, 8), (1536, 24, 96, 1), torch.float32),
        given((2, 4, 16, 8), (1536, 24, 96, 1), torch.float32),
    ],
)


# 14 models, 32 groups
def embedding_dense_backward_backward(a0: Any, a1: Any, real: torch.dtype = torch.float32) -> Any:
    v0 = aten.embedding_dense_backward.default(a0, a1, 2, -1, False)
    return v0


GROUPS["embedding dense backward (backward)"] = (
    embedding_dense_backward_backward,
    [given((2, 16, 32), (512, 32, 1), torch.float32), given((2, 16), (0, 1), torch.int64)],
)


# 14 models, 28 groups
def sub_cat_constant_pad_nd_forward(a0: Any, a1: Any, real: torch.dtype = torch.float32) -> Any:
    v0 = aten.unsqueeze.default(a0, 0)
    v1 = aten.expand.default(v0, [2, -1])
    v2 = aten.slice.Tensor(v1, 1, 0, 1)
    v3 = aten.sub.Tensor(v2, 1)
    v4 = aten.cat.default([v3, v1], -1)
    v5 = aten.constant_pad_nd.default(a1, [0, 1], -100.0)
    return v4, v5


GROUPS["sub + cat + constant pad nd (forward)"] = (
    sub_cat_constant_pad_nd_forward,
    [given((16,), (1,), torch.int64), given((2, 16), (16, 1), torch.int64)],
)


# 13 models, 52 groups
def neg_cat_mul_add_forward(
    a0: Any, a1: Any, a2: Any, a3: Any, a4: Any, real: torch.dtype = torch.float32
) -> Any:
    v0 = aten.view.default(a0, [2, 16, 32])
    v1 = aten.view.default(v0, [2, 16, -1, 8])
    v2 = aten.permute.default(v1, [0, 2, 1, 3])
    v3 = aten.view.default(a1, [2, 16, 16])
    v4 = aten.view.default(v3, [2, 16, -1, 8])
    v5 = aten.permute.default(v4, [0, 2, 1, 3])
    v6 = aten.unsqueeze.default(a2, 1)
    v7 = aten.unsqueeze.default(a3, 1)
    v8 = aten.slice.Tensor(v2, 3, 0, 4)
    v9 = aten.slice.Tensor(v2, 3, 4, 9223372036854775807)
    v10 = aten.neg.default(v9)
    v11 = aten.cat.default([v10, v8], -1)
    v12 = aten.mul.Tensor(v5, v6)
    v13 = aten.mul.Tensor(a4, v7)
    v14 = aten.add.Tensor(v12, v13)
    return v11, v14


GROUPS["neg + cat + mul + add (forward)"] = (
    neg_cat_mul_add_forward,
    [
        given((32, 32), (32, 1), torch.float32),
        given((32, 16), (16, 1), torch.float32),
        given((1, 16, 8), (128, 8, 1), torch.float32),
        given((1, 16, 8), (128, 8, 1), torch.float32),
        given((2, 2, 16, 8), (256, 128, 8, 1), torch.float32),
    ],
)


# 13 models, 42 groups
def mul_backward(a0: Any, a1: Any, a2: Any, real: torch.dtype = torch.float32) -> Any:
    v0 = aten.slice.Tensor(a0, 3, 0, 2)
    v1 = aten.slice.Tensor(a1, 3, 0, 2)
    v2 = aten.mul.Tensor(a2, 1.0)
    v3 = aten.unsqueeze.default(v2, 1)
    v4 = aten.mul.Tensor(v0, v3)
    v5 = aten.mul.Tensor(v1, v3)
    return v4, v5


GROUPS["mul (backward)"] = (
    mul_backward,
    [
        given((2, 4, 16, 8), (512, 8, 32, 1), torch.float32),
        given((2, 4, 16, 8), (512, 8, 32, 1), torch.float32),
        given((1, 16, 2), (32, 2, 1), torch.float32),
    ],
)


# 13 models, 26 groups
def iota_add_to_copy_mul_cat_forward(a0: Any, real: torch.dtype = torch.float32) -> Any:
    v0 = prims.iota.default(16, start=0, step=1, dtype=torch.int64, device=cpu, requires_grad=False)
    v1 = aten.add.Tensor(v0, 0)
    v2 = aten.unsqueeze.default(v1, 0)
    v3 = aten.unsqueeze.default(v2, 2)
    v4 = aten._to_copy.default(v3, dtype=real)
    v5 = aten.mul.Tensor(v4, a0)
    v6 = aten.cat.default([v5, v5], -1)
    return v6


GROUPS["iota + add + to copy + mul + cat (forward)"] = (
    iota_add_to_copy_mul_cat_forward,
    [given((1,), (1,), torch.float32)],
)


# 13 models, 26 groups
def neg_full_slice_scatter_backward(a0: Any, a1: Any, real: torch.dtype = torch.float32) -> Any:
    v0 = aten.slice.Tensor(a0, 3, 0, 1)
    v1 = aten.slice.Tensor(a0, 3, 1, 2)
    v2 = aten.neg.default(v0)
    v3 = aten.full.default([2, 4, 16, 2], 0, dtype=real, device=cpu)
    v4 = aten.slice_scatter.default(v3, v2, 3, 1, 9223372036854775807)
    v5 = aten.slice_scatter.default(v3, v1, 3, 0, 1)
    v6 = aten.slice.Tensor(a1, 3, 0, 1)
    v7 = aten.slice.Tensor(a1, 3, 1, 2)
    v8 = aten.neg.default(v6)
    v9 = aten.slice_scatter.default(v3, v8, 3, 1, 9223372036854775807)
    v10 = aten.slice_scatter.default(v3, v7, 3, 0, 1)
    return v3, v4, v5, v9, v10


GROUPS["neg + full + slice scatter (backward)"] = (
    neg_full_slice_scatter_backward,
    [
        given((2, 4, 16, 2), (128, 2, 8, 1), torch.float32),
        given((2, 4, 16, 2), (128, 2, 8, 1), torch.float32),
    ],
)


# 13 models, 19 groups
def mul_sum_sub_backward(
    a0: Any, a1: Any, a2: Any, a3: Any, real: torch.dtype = torch.float32
) -> Any:
    v0 = aten.view.default(a0, [2, 16, 32])
    v1 = aten.mul.Tensor(v0, a1)
    v2 = aten.mul.Tensor(v1, 32)
    v3 = aten.sum.dim_IntList(v1, [2], True)
    v4 = aten.mul.Tensor(v1, a2)
    v5 = aten.sum.dim_IntList(v4, [2], True)
    v6 = aten.mul.Tensor(a2, v5)
    v7 = aten.sub.Tensor(v2, v3)
    v8 = aten.sub.Tensor(v7, v6)
    v9 = aten.mul.Tensor(a3, v8)
    v10 = aten.view.default(v9, [32, 32])
    v11 = aten.sum.dim_IntList(v10, [0], True)
    return v9, v11


GROUPS["mul + sum + sub (backward)"] = (
    mul_sum_sub_backward,
    [
        given((32, 32), (32, 1), torch.float32),
        given((32,), (1,), torch.float32),
        given((2, 16, 32), (512, 32, 1), torch.float32),
        given((2, 16, 1), (16, 1, 1), torch.float32),
    ],
)


# 12 models, 47 groups
def mul_add_clone_forward(
    a0: Any, a1: Any, a2: Any, a3: Any, a4: Any, a5: Any, real: torch.dtype = torch.float32
) -> Any:
    v0 = aten.view.default(a0, [2, 16, 32])
    v1 = aten.view.default(v0, [2, 16, -1, 8])
    v2 = aten.permute.default(v1, [0, 2, 1, 3])
    v3 = aten.view.default(a1, [2, 16, 16])
    v4 = aten.view.default(v3, [2, 16, -1, 8])
    v5 = aten.permute.default(v4, [0, 2, 1, 3])
    v6 = aten.unsqueeze.default(a2, 1)
    v7 = aten.unsqueeze.default(a3, 1)
    v8 = aten.mul.Tensor(v2, v6)
    v9 = aten.mul.Tensor(a4, v7)
    v10 = aten.add.Tensor(v8, v9)
    v11 = aten.unsqueeze.default(a5, 2)
    v12 = aten.expand.default(v11, [2, 2, 2, 16, 8])
    v13 = aten.clone.default(v12, memory_format=torch.contiguous_format)
    v14 = aten.unsqueeze.default(v5, 2)
    v15 = aten.expand.default(v14, [2, 2, 2, 16, 8])
    v16 = aten.clone.default(v15, memory_format=torch.contiguous_format)
    return v10, v13, v16


GROUPS["mul + add + clone (forward)"] = (
    mul_add_clone_forward,
    [
        given((32, 32), (32, 1), torch.float32),
        given((32, 16), (16, 1), torch.float32),
        given((1, 16, 8), (128, 8, 1), torch.float32),
        given((1, 16, 8), (128, 8, 1), torch.float32),
        given((2, 4, 16, 8), (512, 128, 8, 1), torch.float32),
        given((2, 2, 16, 8), (256, 8, 16, 1), torch.float32),
    ],
)


# 12 models, 24 groups
def clone_backward(a0: Any, real: torch.dtype = torch.float32) -> Any:
    v0 = aten.view.default(a0, [2, 16, 32])
    v1 = aten.view.default(v0, [2, 16, 4, 8])
    v2 = aten.permute.default(v1, [0, 2, 1, 3])
    v3 = aten.view.default(v2, [2, 4, 16, 8])
    v4 = aten.clone.default(v3, memory_format=torch.contiguous_format)
    return v4


GROUPS["clone (backward)"] = (
    clone_backward,
    [given((32, 32), (32, 1), torch.float32)],
)


# 12 models, 24 groups
def index_forward(a0: Any, a1: Any, a2: Any, real: torch.dtype = torch.float32) -> Any:
    v0 = aten.unsqueeze.default(a0, 0)
    v1 = aten.unsqueeze.default(a1, 1)
    v2 = aten.unsqueeze.default(v1, 2)
    v3 = aten.unsqueeze.default(v2, 3)
    v4 = aten.unsqueeze.default(v0, 1)
    v5 = aten.unsqueeze.default(v4, 2)
    v6 = aten.index.Tensor(a2, [v3, v5])
    return v6


GROUPS["index (forward)"] = (
    index_forward,
    [
        given((16,), (1,), torch.int64),
        given((2,), (1,), torch.int64),
        given((2, 16), (16, 1), torch.int64),
    ],
)


# 11 models, 29 groups
def add_mul_sum_pow_div_backward(
    a0: Any, a1: Any, a2: Any, a3: Any, a4: Any, a5: Any, real: torch.dtype = torch.float32
) -> Any:
    v0 = aten.view.default(a0, [2, 16, 32])
    v1 = aten.view.default(a1, [2, 16, 32])
    v2 = aten.add.Tensor(v0, v1)
    v3 = aten.mul.Tensor(v2, a2)
    v4 = aten.mul.Tensor(a3, a4)
    v5 = aten.mul.Tensor(v2, v4)
    v6 = aten.sum.dim_IntList(v5, [0, 1], True)
    v7 = aten.mul.Tensor(v3, a3)
    v8 = aten.mul.Tensor(v3, a4)
    v9 = aten.sum.dim_IntList(v7, [2], True)
    v10 = aten.add.Tensor(a5, v8)
    v11 = aten.pow.Tensor_Scalar(a4, 3)
    v12 = aten.mul.Scalar(v9, -0.5)
    v13 = aten.mul.Tensor(v12, v11)
    v14 = aten.expand.default(v13, [2, 16, 32])
    v15 = aten.div.Scalar(v14, 32)
    v16 = aten.pow.Tensor_Scalar(a3, 1.0)
    v17 = aten.mul.Scalar(v16, 2.0)
    v18 = aten.mul.Tensor(v15, v17)
    v19 = aten.add.Tensor(v10, v18)
    return v6, v19


GROUPS["add + mul + sum + pow + div (backward)"] = (
    add_mul_sum_pow_div_backward,
    [
        given((32, 32), (32, 1), torch.float32),
        given((32, 32), (32, 1), torch.float32),
        given((32,), (1,), torch.float32),
        given((2, 16, 32), (512, 32, 1), torch.float32),
        given((2, 16, 1), (16, 1, 1), torch.float32),
        given((2, 16, 32), (512, 32, 1), torch.float32),
    ],
)


# 11 models, 22 groups
def cos_mul_sin_forward(a0: Any, real: torch.dtype = torch.float32) -> Any:
    v0 = aten.cos.default(a0)
    v1 = aten.mul.Tensor(v0, 1.0)
    v2 = aten.sin.default(a0)
    v3 = aten.mul.Tensor(v2, 1.0)
    return v1, v3


GROUPS["cos + mul + sin (forward)"] = (
    cos_mul_sin_forward,
    [given((1, 16, 8), (128, 8, 1), torch.float32)],
)


# 11 models, 11 groups
def sin_mul_cos_backward(a0: Any, real: torch.dtype = torch.float32) -> Any:
    v0 = aten.sin.default(a0)
    v1 = aten.mul.Tensor(v0, 1.0)
    v2 = aten.cos.default(a0)
    v3 = aten.mul.Tensor(v2, 1.0)
    return v1, v3


GROUPS["sin + mul + cos (backward)"] = (
    sin_mul_cos_backward,
    [given((1, 16, 8), (128, 8, 1), torch.float32)],
)


# 10 models, 40 groups
def silu_mul_forward(a0: Any, a1: Any, real: torch.dtype = torch.float32) -> Any:
    v0 = aten.view.default(a0, [2, 16, 64])
    v1 = aten.silu.default(v0)
    v2 = aten.view.default(a1, [2, 16, 64])
    v3 = aten.mul.Tensor(v1, v2)
    return v3


GROUPS["silu + mul (forward)"] = (
    silu_mul_forward,
    [given((32, 64), (64, 1), torch.float32), given((32, 64), (64, 1), torch.float32)],
)


# 10 models, 23 groups
def add_mul_sum_sub_to_copy_backward(
    a0: Any, a1: Any, a2: Any, a3: Any, a4: Any, a5: Any, a6: Any, real: torch.dtype = torch.float32
) -> Any:
    v0 = aten.view.default(a0, [2, 16, 32])
    v1 = aten.add.Tensor(a1, v0)
    v2 = aten.mul.Tensor(v1, a2)
    v3 = aten.mul.Tensor(v2, 32)
    v4 = aten.sum.dim_IntList(v2, [2], True)
    v5 = aten.mul.Tensor(v2, a3)
    v6 = aten.sum.dim_IntList(v5, [2], True)
    v7 = aten.mul.Tensor(a3, v6)
    v8 = aten.sub.Tensor(v3, v4)
    v9 = aten.sub.Tensor(v8, v7)
    v10 = aten.mul.Tensor(a4, v9)
    v11 = aten.mul.Tensor(v1, a3)
    v12 = aten.sum.dim_IntList(v11, [0, 1])
    v13 = aten.sum.dim_IntList(v1, [0, 1])
    v14 = aten._to_copy.default(a5, dtype=real, device=cpu)
    v15 = aten.mul.Tensor(v14, 1.1111111111111112)
    v16 = aten.mul.Tensor(v10, v15)
    v17 = aten.view.default(a6, [32, 32])
    v18 = aten.sum.dim_IntList(v17, [0], True)
    return v10, v12, v13, v16, v18


GROUPS["add + mul + sum + sub + to copy (backward)"] = (
    add_mul_sum_sub_to_copy_backward,
    [
        given((32, 32), (32, 1), torch.float32),
        given((2, 16, 32), (512, 32, 1), torch.float32),
        given((32,), (1,), torch.float32),
        given((2, 16, 32), (512, 32, 1), torch.float32),
        given((2, 16, 1), (16, 1, 1), torch.float32),
        given((2, 16, 32), (512, 32, 1), torch.bool),
        given((2, 16, 32), (512, 32, 1), torch.float32),
    ],
)


# 10 models, 22 groups
def clone_sum_backward(a0: Any, real: torch.dtype = torch.float32) -> Any:
    v0 = aten.view.default(a0, [2, 4, 16, 8])
    v1 = aten.permute.default(v0, [0, 2, 1, 3])
    v2 = aten.clone.default(v1, memory_format=torch.contiguous_format)
    v3 = aten.view.default(v2, [2, 16, 32])
    v4 = aten.view.default(v3, [32, 32])
    v5 = aten.sum.dim_IntList(v4, [0], True)
    return v5


GROUPS["clone + sum (backward)"] = (
    clone_sum_backward,
    [given((8, 16, 8), (128, 8, 1), torch.float32)],
)


# 10 models, 20 groups
def index_eq_full_bitwise_and_le_scalar_tensor_where_forward(
    a0: Any, a1: Any, a2: Any, a3: Any, a4: Any, real: torch.dtype = torch.float32
) -> Any:
    v0 = aten.unsqueeze.default(a0, 0)
    v1 = aten.expand.default(v0, [2, -1])
    v2 = aten.unsqueeze.default(a1, 1)
    v3 = aten.unsqueeze.default(v2, 2)
    v4 = aten.unsqueeze.default(v3, 3)
    v5 = aten.unsqueeze.default(v0, 1)
    v6 = aten.unsqueeze.default(v5, 3)
    v7 = aten.full.default([], True, dtype=torch.bool, device=cpu)
    v8 = aten.index.Tensor(a2, [v4, v6])
    v9 = aten.eq.Tensor(v8, a3)
    v10 = aten.bitwise_and.Tensor(v7, v9)
    v11 = aten.index.Tensor(v1, [v4, v6])
    v12 = aten.le.Tensor(a4, v11)
    v13 = aten.bitwise_and.Tensor(v10, v12)
    v14 = aten.expand.default(v13, [2, -1, 16, 16])
    v15 = aten.scalar_tensor.default(-inf, dtype=real, device=cpu)
    v16 = aten.scalar_tensor.default(0.0, dtype=real, device=cpu)
    v17 = aten.where.self(v14, v16, v15)
    return v17


GROUPS["index + eq + full + bitwise and + le + scalar tensor + where (forward)"] = (
    index_eq_full_bitwise_and_le_scalar_tensor_where_forward,
    [
        given((16,), (1,), torch.int64),
        given((2,), (1,), torch.int64),
        given((2, 16), (16, 1), torch.int64),
        given((2, 1, 1, 16), (16, 16, 16, 1), torch.int64),
        given((2, 1, 1, 16), (16, 16, 16, 1), torch.int64),
    ],
)
