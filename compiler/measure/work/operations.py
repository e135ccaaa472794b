"""The work of one call of ATen: bytes read, bytes written, and FLOPs.

Derived from the shapes, strides and dtypes of its tensors, so it applies to a recorded node as well
as to a call. Bytes count each tensor once, whatever a kernel really moves:

- an expanded tensor: what is stored; a slice: what it shows;
- a view: none; an allocation: none;
- in place: read and written, except what is overwritten entirely (`copy_`, `out=`);
- rows gathered from a table (`embedding`, `index_select`), or put into one in place: those rows.

FLOPs of products, convolutions and attention are those of `torch.utils.flop_counter`. Otherwise
they are one per element of the result of a pointwise or random operation, and one per element of
the input of a reduction, normalisation or softmax. They are 0 if data only moves or nothing is a
float. A quantity that no rule covers is None.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any, NamedTuple

import torch
from torch.utils.flop_counter import flop_registry

from tcw.compiler.trace.records import Node, TensorMeta


class Work(NamedTuple):
    """The work of one call; None for unknown quantities."""

    read_bytes: int | None = None
    write_bytes: int | None = None
    flops: int | None = None

    @property
    def touches_memory(self) -> bool:
        """False if certainly no byte is moved: a view, an allocation."""
        return (self.read_bytes, self.write_bytes) != (0, 0)


NOTHING = Work(0, 0, 0)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


VIEWS = _names(
    """_conj _reshape_alias _unsafe_view alias as_strided broadcast_to chunk detach diagonal expand
    expand_as flatten getitem getattr lift_fresh movedim narrow numel permute real reshape select
    size slice split split_with_sizes squeeze swapaxes swapdims t transpose unbind unflatten unfold
    unsafe_chunk unsafe_split unsqueeze view view_as view_as_complex view_as_real"""
)
"""Operations that touch no memory, or whose copy is a separate operation once lowered."""
_VIEWS = _names("_unsafe_view _reshape_alias lift lift_fresh alias detach sym_size sym_stride")
_ALLOCATING = _names(
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided set resize"
    " resize_as is_same_size record_stream"
)
_OVERWRITING = _names(
    "copy fill zero normal uniform bernoulli random exponential geometric log_normal cauchy"
    " _foreach_copy _foreach_zero"
)
_GATHERING = _names(
    "embedding index_select index _unsafe_index gather take take_along_dim _embedding_bag"
    " _embedding_bag_forward_only embedding_bag"
)
_BAGS = _names("_embedding_bag _embedding_bag_forward_only embedding_bag")
_PUTTING = _names(
    "index_put _index_put_impl index_add index_copy index_fill scatter scatter_add scatter_reduce"
)
_ADDING = _names("index_add scatter_add scatter_reduce")
_MOVING = _GATHERING | _names(
    "copy clone _to_copy cat stack fill zero zeros zeros_like ones ones_like full full_like"
    " new_zeros new_ones new_full arange scalar_tensor eye tril triu slice_scatter select_scatter"
    " iota as_strided_scatter constant_pad_nd flip roll repeat slice_backward select_backward"
    " masked_select _local_scalar_dense item nonzero diagonal_scatter unfold_backward"
    " convert_element_type _foreach_copy _foreach_zero"
    " contiguous as_strided_copy view_copy permute_copy transpose_copy expand_copy"
)
_REDUCING = _names(
    "sum mean prod amax amin max min aminmax argmax argmin any all std var std_mean var_mean"
    " norm linalg_vector_norm logsumexp nansum count_nonzero cumsum cumprod logcumsumexp"
    " _softmax _log_softmax softmax log_softmax _safe_softmax _softmax_backward_data"
    " _log_softmax_backward_data native_layer_norm native_layer_norm_backward layer_norm"
    " _fused_rms_norm _fused_rms_norm_backward native_group_norm native_group_norm_backward"
    " native_batch_norm native_batch_norm_backward _native_batch_norm_legit"
    " _native_batch_norm_legit_no_training _batch_norm_with_update _batch_norm_no_update"
    " batch_norm_backward cudnn_batch_norm cudnn_batch_norm_backward avg_pool2d max_pool2d"
    " max_pool2d_with_indices _adaptive_avg_pool2d adaptive_max_pool2d embedding_dense_backward"
    " nll_loss_forward mse_loss max_pool2d_with_indices_backward avg_pool2d_backward"
    " _adaptive_avg_pool2d_backward"
)
_ATTENTION = {
    "_scaled_dot_product_flash_attention_for_cpu": "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu_backward": (
        "_scaled_dot_product_flash_attention_backward"
    ),
    "_scaled_dot_product_fused_attention_overrideable": "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_fused_attention_overrideable_backward": (
        "_scaled_dot_product_flash_attention_backward"
    ),
}
"""Attention that torch's registry lacks in some versions -> the operation whose formula applies."""
_LINEAR = _names("linear _linear_pointwise mv")
_CONVOLUTION = _names("_convolution_pointwise mkldnn_convolution thnn_conv2d")
_PRODUCTS = {"_addmm_activation": "addmm", "_int_mm": "mm", "addbmm": "baddbmm"}


def work_of(
    function: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    outputs: Sequence[TensorMeta | None],
) -> Work:
    """The work of a call of an `OpOverload`, with each tensor argument given as a `TensorMeta`: the
    same object for the same tensor."""
    if getattr(function, "_schema", None) is None:  # a higher-order operator
        return Work()
    if _is_view(function, _base_name(function)[0]):
        return NOTHING
    return _Call(function, args, kwargs, outputs).work()


class _Call:
    """A call that touches memory."""

    def __init__(
        self,
        function: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        outputs: Sequence[TensorMeta | None],
    ) -> None:
        self.function, self.args, self.kwargs, self.outputs = function, args, kwargs, outputs
        self.name, self.in_place = _base_name(function)
        arguments = _by_name(function._schema, args, kwargs)
        self.given = {argument.name: value for argument, value in arguments}
        self.written = [value for argument, value in arguments if _is_written(argument)]
        self.inputs = [value for argument, value in arguments if not argument.is_out]
        self.first = next(_tensors(self.inputs), None)
        self.adds = self.name in _ADDING or bool(self.given.get("accumulate", False))

    def work(self) -> Work:
        flops, name = self._flops(), self.name
        results = _results(self.function._schema, len(self.outputs))
        new = [
            output
            for output, result in zip(self.outputs, results, strict=False)
            if output is not None and (result is None or result.alias_info is None)
        ]
        written = _span([*new, *self.written])
        if name in _GATHERING and self.inputs:
            return Work(self._gathered(), written, flops)
        if self.in_place and name in _PUTTING:
            return self._put(flops)
        if name in ("_local_scalar_dense", "item"):
            return Work(None if self.first is None else _itemsize(self.first), 0, flops)
        overwrites = self.in_place and name in _OVERWRITING
        return Work(_span(self.inputs[overwrites:]), written, flops)

    def _gathered(self) -> int | None:
        """Bytes of the rows read, each once, and of the indices."""
        table, outputs = self.first, self.outputs
        if table is None or not outputs or outputs[0] is None:
            return None
        if self.name in _BAGS:
            indices = next(_tensors(self.inputs[1:]), None)
            count = None if indices is None else _elements(indices)
            width = table.shape[-1]
            rows = count * width if count is not None and isinstance(width, int) else None
        else:
            rows = _elements(outputs[0])
        whole, others = stored_bytes(table), _span(self.inputs[1:])
        if rows is None or whole is None or others is None:
            return None
        return min(whole, rows * _itemsize(table)) + others

    def _put(self, flops: int | None) -> Work:
        """Rows of the first argument are written, and also read if something is added to them."""
        table, rows, others = self.first, self._rows(), _span(self.inputs[1:])
        whole = None if table is None else stored_bytes(table)
        if table is None or whole is None or rows is None or others is None:
            return Work(None, None, flops)
        written = min(whole, rows * _itemsize(table))
        return Work(others + (written if self.adds else 0), written, flops)

    def _rows(self) -> int | None:
        """The number of elements of the first argument that an operation with indices writes."""
        table = self.first
        if table is None:
            return None
        if self.name in ("index_put", "_index_put_impl"):
            indices: Sequence[Any] = self.given.get("indices") or ()
            metas = [one for one in indices if isinstance(one, TensorMeta)]
            if any(tensor_meta.dtype in ("bool", "uint8") for tensor_meta in metas):
                return _elements(table)  # a mask: how much it lets through depends on the data
            kept: list[Any] = [
                size
                for place, size in enumerate(table.shape)
                if place >= len(indices) or indices[place] is None
            ]
            try:
                where = torch.broadcast_shapes(*[tensor_meta.shape for tensor_meta in metas])
                return int(prod(where) * prod(kept))
            except (TypeError, RuntimeError):
                return None
        index = self.given.get("index")
        if not isinstance(index, TensorMeta):
            return None
        count = _elements(index)
        if self.name.startswith("scatter") or count is None:
            return count
        elements, dim = _elements(table), self.given.get("dim", 0)
        size = table.shape[dim] if table.shape else 1
        return count * (elements // size) if elements and isinstance(size, int) and size else None

    def _flops(self) -> int | None:
        counted, function, name = self._product(), self.function, self.name
        if counted is not None:
            return counted
        if name in _PUTTING:
            return self._rows() if self.adds else 0
        if name in _MOVING:
            return 0
        if name.startswith(("_foreach_", "_fused_ad", "_fused_sgd")):
            counts = [_elements(tensor) for tensor in _tensors(self.inputs[:1])]
            return None if None in counts else sum(count for count in counts if count is not None)
        if name in _REDUCING or _tagged(function, "reduction"):
            return None if self.first is None else _elements(self.first)
        if _tagged(function, "pointwise") or _tagged(function, "nondeterministic_seeded"):
            result = next((output for output in self.outputs if output is not None), None)
            result = next(_tensors(self.written)) if result is None else result
            floats = any(_floating(tensor) for tensor in (result, *_tensors(self.inputs)))
            return _elements(result) if floats else 0
        return None

    def _product(self) -> int | None:
        """FLOPs by torch's formula, if it has one."""
        name, outputs = self.name, self.outputs
        output = next((tensor_meta for tensor_meta in outputs if tensor_meta is not None), None)
        shapes = [tensor.shape for tensor in _tensors(list(self.args))]
        if name in _LINEAR and output is not None and shapes:
            # mv: the vector's length; linear: the last size of its input, whose weight may be
            # packed
            inner = shapes[0][-1]
            count = _elements(output)
            return 2 * count * inner if count is not None and isinstance(inner, int) else None
        if name in _CONVOLUTION and output is not None and len(shapes) > 1:
            count, window = _elements(output), shapes[1][1:]
            known = [size for size in window if isinstance(size, int)]
            if count is None or len(known) < len(window):
                return None
            return 2 * count * prod(known)
        if name in ("dot", "vdot") and shapes and isinstance(shapes[0][0], int):
            return 2 * shapes[0][0]
        formula = flop_registry.get(getattr(self.function, "_overloadpacket", None))
        if formula is None:
            like = _ATTENTION.get(name) or _PRODUCTS.get(name) or name
            formula = flop_registry.get(getattr(torch.ops.aten, like, None))
        if formula is None:
            return None
        try:
            given = [_stand_in(value) for value in self.args]
            named = {key: _stand_in(value) for key, value in self.kwargs.items() if key != "out"}
            if "attention" in name:
                given = _all_heads(given, "backward" in name)
            results = [_stand_in(tensor_meta) for tensor_meta in outputs]
            out = results[0] if len(results) == 1 else results
            return int(formula(*given, **named, out_val=out))
        except Exception:  # a call that torch's formula does not expect
            return None


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and bool(argument.alias_info.is_write)


def _results(schema: Any, count: int) -> Sequence[Any]:
    """The schema's entry for each output; a list of tensors is one entry there."""
    results = list(schema.returns)
    if len(results) == 1 and count > 1:
        results = results * count
    return [*results, *[None] * (count - len(results))]


@cache
def _base_name(function: Any) -> tuple[str, bool]:
    """(`add`, True) for `aten.add_.Tensor`: the name, and whether it changes its first argument."""
    name = function._schema.name.partition("::")[2]
    in_place = name.endswith("_") and not name.endswith("__")
    return (name[:-1] if in_place else name), in_place


@cache
def _is_view(function: Any, name: str) -> bool:
    return (
        name in _VIEWS
        or name in _ALLOCATING
        or bool(getattr(function, "is_view", False))
        or torch.Tag.inplace_view in function.tags
    )


def _by_name(schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """(the schema's entry, the value) of each argument that was passed."""
    found = list(zip(schema.arguments, args, strict=False))
    named = {argument.name: argument for argument in schema.arguments}
    return found + [(named[name], value) for name, value in kwargs.items() if name in named]


def _tensors(value: Any) -> Iterator[TensorMeta]:
    """All distinct tensors in an argument."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, TensorMeta):
            if id(one) not in seen:
                seen.add(id(one))
                yield one
        elif isinstance(one, (list, tuple)):
            waiting = [*one, *waiting]


def _itemsize(meta: TensorMeta) -> int:
    dtype: torch.dtype = getattr(torch, meta.dtype)
    return int(dtype.itemsize)


def _elements(meta: TensorMeta) -> int | None:
    """The number of elements, including repeated ones; None if a size is symbolic."""
    sizes = [size for size in meta.shape if isinstance(size, int)]
    return prod(sizes) if len(sizes) == len(meta.shape) else None


def stored_bytes(meta: TensorMeta) -> int | None:
    """Bytes of the distinct elements in memory; None if unknown.

    A dimension with stride 0 repeats one element; overlapping windows cannot hold more than their
    extent.
    """
    if meta.stride is None:
        return None
    count, extent = 1, 1
    for size, stride in zip(meta.shape, meta.stride, strict=True):
        if not isinstance(size, int) or not isinstance(stride, int):
            return None
        if size == 0:
            return 0
        if stride:
            count *= size
            extent += (size - 1) * abs(stride)
    return min(count, extent) * _itemsize(meta)


def _span(values: Iterable[Any]) -> int | None:
    total = 0
    for meta in _tensors(list(values)):
        span = stored_bytes(meta)
        if span is None:
            return None
        total += span
    return total


def _floating(meta: TensorMeta) -> bool:
    return meta.dtype.startswith(("float", "bfloat", "complex"))


def _tagged(function: Any, name: str) -> bool:
    tag = getattr(torch.Tag, name, None)
    return tag is not None and tag in function.tags


def _all_heads(args: list[Any], backward: bool) -> list[Any]:
    """Expand shared keys and values to all heads: torch's formula expects as many as of queries."""
    first = 1 if backward else 0
    query, *shared = args[first : first + 3]
    if len(shared) != 2 or any(not isinstance(one, torch.Tensor) for one in (query, *shared)):
        return args
    if query.dim() != 4 or shared[0].shape[1] == query.shape[1]:
        return args
    wide = [one[:, :1].expand(-1, query.shape[1], -1, -1) for one in shared]
    return [*args[: first + 1], *wide, *args[first + 3 :]]


def _stand_in(value: Any) -> Any:
    """A tensor without data, for formulas that need shapes, strides or dtypes."""
    if isinstance(value, TensorMeta):
        sizes = [int(size) for size in value.shape]
        strides = None if value.stride is None else [int(stride) for stride in value.stride]
        dtype = getattr(torch, value.dtype)
        if strides is None:
            return torch.empty(sizes, dtype=dtype, device="meta")
        return torch.empty_strided(sizes, strides, dtype=dtype, device="meta")
    if isinstance(value, (list, tuple)):
        return type(value)(_stand_in(item) for item in value)
    return value


def called(step: str) -> str:
    """The operation that a step of a compiled graph names: `aten.addmm` of `extern_kernels.addmm`,
    `aten.sort.stable` of `torch.ops.aten.sort.stable`."""
    return step.removeprefix("torch.ops.").replace("extern_kernels.", "aten.")


@cache
def operation_named(text: str) -> Any | None:
    """The `OpOverload` of `aten.addmm.default`, `extern_kernels.addmm`,
    `torch.ops.mkldnn._linear_pointwise.default`; None if this process has none."""
    parts = called(text).split(".")
    if len(parts) not in (2, 3):
        return None
    try:
        packet = getattr(getattr(torch.ops, parts[0]), parts[1])
        overloads = packet.overloads()
        name = parts[2] if len(parts) == 3 else "default"
        if name not in overloads and len(parts) == 2:
            name = overloads[0]
        return getattr(packet, name)
    except (AttributeError, RuntimeError, IndexError):
        return None


Values = Mapping[str, TensorMeta | tuple[TensorMeta | None, ...] | None]
"""Node name -> its value, or the values of a multi-output node."""


def values_of(nodes: Iterable[Node]) -> Values:
    """What `work_of_node` needs of a graph."""
    return {node.name: node.values or node.value for node in nodes}


def work_of_node(node: Node, values: Values) -> Work:
    """The work of a recorded node, from the trace alone."""
    if node.target == "operator.getitem" or node.op in ("placeholder", "get_attr", "output"):
        return NOTHING
    function = operation_named(node.target)
    if function is None:
        return Work()
    outputs = node.values or (node.value,)
    try:
        args, kwargs = _parsed(node.args, values)
    except (SyntaxError, ValueError, RecursionError):
        # truncated, or not parseable: its inputs are known by name
        inputs = [values.get(name) for name in node.inputs]
        return work_of(function, [inputs], {}, outputs)._replace(flops=None)
    return work_of(function, args, kwargs, outputs)


def _parsed(text: str, values: Values) -> tuple[list[Any], dict[str, Any]]:
    call = ast.parse(f"f({text})", mode="eval").body
    if not isinstance(call, ast.Call):
        raise ValueError(text)
    return (
        [_value(arg, values) for arg in call.args],
        {keyword.arg: _value(keyword.value, values) for keyword in call.keywords if keyword.arg},
    )


def _value(tree: ast.expr, values: Values) -> Any:
    if isinstance(tree, ast.Name):
        return values.get(tree.id)
    if isinstance(tree, (ast.List, ast.Tuple)):
        return [_value(item, values) for item in tree.elts]
    try:
        return ast.literal_eval(tree)
    except ValueError:  # torch.float32, device(type='cpu')
        return None
