"""Calls: ATen operations on tensors in memory, for everything that loops do not compute.

The arguments that an operation writes, and those that its results may alias, are derived from its
schema once per operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from tcw.compiler.loops.graph import Call, Result, Subgraph
from tcw.compiler.loops.layouts import Layout, row_major
from tcw.compiler.loops.sizes import Symbolic
from tcw.compiler.lowering.builder import Builder
from tcw.compiler.lowering.reals import Real, StoredNumber
from tcw.compiler.lowering.registry import Estimate, Lowering, Unsupported, estimate_of, lowering_of
from tcw.compiler.lowering.tensors import Meta, Tensor

WANTED = frozenset({
    "mm", "addmm", "bmm", "baddbmm", "addmv", "addbmm", "mv", "dot", "vdot", "linear",
    "_linear_pointwise", "matmul", "_int_mm", "_scaled_mm", "convolution", "convolution_backward",
    "_convolution", "mkldnn_convolution", "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention_for_cpu_backward", "_scaled_dot_product_attention_math",
    "_scaled_dot_product_fused_attention_overrideable", "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_flash_attention", "sort", "topk", "kthvalue", "median", "nanmedian",
    "mode", "argsort", "msort", "searchsorted", "bucketize", "_fft_r2c", "_fft_c2r", "_fft_c2c",
    "max_pool2d_with_indices", "max_pool2d_with_indices_backward", "max_pool3d_with_indices",
    "upsample_nearest1d_backward", "upsample_nearest2d_backward", "upsample_nearest3d_backward",
    "_upsample_nearest_exact1d_backward", "_upsample_nearest_exact2d_backward",
    "_upsample_nearest_exact3d_backward", "upsample_linear1d_backward",
    "upsample_bilinear2d_backward", "upsample_trilinear3d_backward", "upsample_bicubic2d_backward",
    "_embedding_bag", "_embedding_bag_backward", "native_dropout", "bernoulli", "rand", "randn",
    "randint", "randint_like", "randperm", "rand_like", "randn_like", "uniform", "normal",
    "normal_functional", "exponential", "cauchy", "geometric", "log_normal",
    "rrelu_with_noise_functional", "multinomial", "_cdist_forward", "_pdist_forward",
    "linalg_vector_norm", "_linalg_svd", "linalg_qr", "linalg_inv_ex", "linalg_lu_factor_ex",
    "linalg_solve_triangular", "cholesky_inverse", "linalg_cholesky_ex", "_linalg_solve_ex",
    "_linalg_det", "_linalg_eigh",
})  # fmt: skip
"""Operations for which a library call is the intended choice; they carry no reason."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Static properties of an operation."""

    name: str
    """For example `aten.mm.default`."""
    lowering: Lowering | None
    estimate: Estimate | None
    wanted: bool
    effect: bool
    """The operation draws random numbers."""
    writes: tuple[int | str, ...]
    """The arguments that it writes, both by position and by name."""
    shares: tuple[int | str, ...]
    """The arguments that its results may be views of, both by position and by name."""
    returns: tuple[int | None, ...]
    """For each result of an in-place operation, the position of the argument that it is."""


_operations: dict[Any, Operation] = {}


def operation(target: Any) -> Operation:
    """The properties of an OpOverload or a higher-order operator."""
    found = _operations.get(target)
    if found is None:
        found = _operations[target] = _inspect(target)
    return found


def _inspect(target: Any) -> Operation:
    schema = getattr(target, "_schema", None)
    if schema is None:
        raise Unsupported(f"{target} is not an ATen operation")
    namespace, _, name = schema.name.partition("::")
    writes: list[int | str] = []
    shares: list[int | str] = []
    seen = set[str]()
    for result in schema.returns:
        if result.alias_info is not None:
            # for a list of views, the schema gives only the alias set of the elements: the wildcard
            seen |= set(result.alias_info.before_set) or {"*"}
    places: dict[str, int] = {}
    for position, argument in enumerate(schema.arguments):
        info = argument.alias_info
        if info is None:
            continue
        if info.is_write:
            writes += [position, argument.name]
            places.update(dict.fromkeys(info.before_set, position))
        elif seen & (set(info.before_set) | set(info.after_set)):
            shares += [position, argument.name]
    returns = tuple(
        next((places[n] for n in sorted(r.alias_info.before_set) if n in places), None)
        if r.alias_info is not None
        else None
        for r in schema.returns
    )
    overload = schema.overload_name or "default"
    return Operation(
        f"{namespace}.{name}.{overload}",
        lowering_of(target),
        estimate_of(target),
        name in WANTED,
        torch.Tag.nondeterministic_seeded in target.tags,
        tuple(writes),
        tuple(shares),
        returns,
    )


def call(
    builder: Builder,
    known: Operation,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    metas: tuple[Meta | None, ...],
    *,
    single: bool,
    reason: str,
    strides: Callable[[Tensor], tuple[Any, ...] | None],
) -> tuple[Tensor | None, ...]:
    """Add the operation as a call and return its results in order.

    `strides` returns the strides that the operation was promised for a tensor argument. `metas` has
    None for each result that is not a tensor or has no users.
    """
    mutates: dict[str, None] = {}
    aliases: dict[str, None] = {}

    def given(value: Any, place: int | str) -> Any:
        if isinstance(value, Tensor):
            operand = builder.in_memory(value, strides(value))
            if place in known.writes:
                if operand.value != value.value:
                    raise Unsupported(f"{known.name} writes a tensor that has no memory")
                mutates[operand.value] = None
            elif place in known.shares:
                aliases[operand.value] = None
            return operand
        if isinstance(value, (list, tuple)):
            return tuple(given(item, place) for item in value)
        if isinstance(value, dict):
            return {key: _constant(known, item) for key, item in value.items()}
        if isinstance(value, Real):
            return value.symbol()
        if isinstance(value, StoredNumber):
            raise Unsupported(f"{known.name} takes a number that is stored in a tensor")
        if isinstance(value, torch.Tensor | torch.nn.Module | torch.Generator):
            raise Unsupported(f"{known.name} takes a {type(value).__name__}")
        return value

    arguments = tuple(given(value, place) for place, value in enumerate(args))
    keywords = tuple((key, given(value, key)) for key, value in kwargs.items())
    for value in mutates:
        builder.about_to_write(value)
    results: list[Result | None] = []
    tensors: list[Tensor | None] = []
    for position, meta in enumerate(metas):
        in_place = known.returns[position] if position < len(known.returns) else None
        if in_place is not None and in_place < len(args) and isinstance(args[in_place], Tensor):
            results.append(None)
            tensors.append(args[in_place])
            continue
        if meta is None:
            results.append(None)
            tensors.append(None)
            continue
        name = builder.node if len(metas) == 1 else f"{builder.node}_{position}"
        result = Result(builder.fresh(name), meta.dtype, meta.shape, meta.strides)
        results.append(result)
        tensors.append(tensor_in_memory(result.name, meta))
    if single and results and results[0] is not None:
        label = results[0].name
    else:
        label = builder.fresh(builder.node)
    node = Call(
        label,
        known.name,
        arguments,
        keywords,
        tuple(results),
        single,
        tuple(mutates),
        tuple(aliases),
        reason,
        (builder.node,),
        known.effect or not metas,
    )
    builder.graph.nodes.append(node)
    return tuple(tensors)


def _constant(known: Operation, value: Any) -> Any:
    if isinstance(value, (Tensor, Real, StoredNumber, Symbolic, Subgraph, list, tuple, dict)):
        raise Unsupported(f"{known.name} takes a dictionary of more than constants")
    return value


def tensor_in_memory(value: str, meta: Meta) -> Tensor:
    """The tensor over an input or a result, whose first element is index 0 of the value."""
    if 0 in meta.shape or meta.strides == row_major(meta.shape).strides:
        return Tensor(value, (), meta.shape, meta.dtype)
    whole = Layout(meta.shape, meta.strides)
    return Tensor(value, () if whole.is_identity() else (whole,), meta.shape, meta.dtype)


def read_in_place(node: fx.Node) -> bool:
    """Whether all readers, of the node or of views of it, are operations on elements."""
    pending = list(node.users)
    while pending:
        user = pending.pop()
        if torch.Tag.pointwise in getattr(user.target, "tags", ()):
            continue
        if not _is_view(user):
            return False
        pending += user.users
    return True


def only_returned(node: fx.Node) -> bool:
    """Whether only the caller gets it, or views of it: no operation reads or writes it."""
    return all(
        user.op == "output" or (_is_view(user) and only_returned(user)) for user in node.users
    )


def _is_view(node: fx.Node) -> bool:
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    known = operation(node.target)
    return bool(known.shares) and not known.writes
