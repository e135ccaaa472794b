"""One ATen operation at a time: in its own dtypes, in float64, or in float64 with noise.

The noise simulates rounding in any order of operations. Each result of a rounding operation is
perturbed by up to the unit of its dtype. Its inputs are perturbed by the unit of the dtype of the
computation (float32 for narrower ones), or more if many terms are summed.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import fx
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree

from tcw.compiler.measure.precision import operations

_WIDE = {torch.complex32: torch.complex128, torch.complex64: torch.complex128}
_LANES = 16
"""Partial sums that even a plain loop keeps."""
_SIGNS = 65521
"""The number of random signs, used cyclically: a prime, so that rows do not share signs."""
_COMPUTED = 2.0
"""Units of float32 (or float64) that one operation may be off by: functions such as exp and tanh
are approximations accurate to a few units."""


class NotComparable(Exception):
    """These operations cannot be carried out in float64; the message says why."""


class Arithmetic(Protocol):
    """How inputs are converted and operations carried out."""

    def taken(self, node: fx.Node, value: Any) -> Any:
        """Convert a value that the kernel read."""
        ...

    def run(self, node: fx.Node, args: Sequence[Any], kwargs: dict[str, Any]) -> Any: ...


class Own:
    """Eager's own arithmetic."""

    def taken(self, node: fx.Node, value: Any) -> Any:
        return value

    def run(self, node: fx.Node, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return call(node, args, kwargs)


class Double:
    """Every float as float64. Tensors created without a tensor argument keep the values of their
    dtype."""

    def __init__(self) -> None:
        self.jumping: dict[fx.Node, Any] = {}
        """The results of discontinuous operations."""

    def taken(self, node: fx.Node, value: Any) -> Any:
        return pytree.tree_map(widened, value)

    def run(self, node: fx.Node, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        result = double(node, args, kwargs)
        if is_jump(node, result):
            self.jumping[node] = result
        return result


class Noisy:
    """float64 with noise. `held`: fixed results for discontinuous operations, so that the result
    stays smooth; without it, a comparison may turn out differently."""

    def __init__(
        self, seed: int, strength: float = 1.0, held: dict[fx.Node, Any] | None = None
    ) -> None:
        self.seed = seed
        self.strength = strength
        self.held = held
        self._signs = Signs(seed)

    def taken(self, node: fx.Node, value: Any) -> Any:
        return pytree.tree_map(widened, value)

    def recomputed(self, node: fx.Node, value: Any) -> Any:
        """Convert a value that the kernel may have computed itself, without rounding it."""
        return self._changed(node, self.taken(node, value), own_units(node))

    def run(self, node: fx.Node, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if self.held is not None and node in self.held:
            return self.held[node]
        if operations.is_exact(node.target):
            return double(node, args, kwargs)
        given = _tensors(args) + _tensors(kwargs)
        if not given:
            return self._made(node, args, kwargs)
        if not is_conversion(node):
            value = node.meta.get("val")
            planned = fx.map_arg((node.args, node.kwargs), lambda one: one.meta.get("val"))
            called = (*planned, value)
            count = operations.terms(node.target, called, given, _tensors(value) or given)
            amount = computed_unit(node) * more_for(count)

            def changed(value: Any) -> Any:
                return self._noise(value, amount) if isinstance(value, torch.Tensor) else value

            args = pytree.tree_map(changed, list(args))
            kwargs = pytree.tree_map(changed, kwargs)
        return self._changed(node, double(node, args, kwargs), own_units(node))

    def _made(self, node: fx.Node, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A constant: rounded to its dtype, or not."""
        rounded, exact = double(node, args, kwargs), _wide_call(node, args, kwargs)
        if not isinstance(rounded, torch.Tensor) or not rounded.is_floating_point():
            return rounded
        share = self.seed % 2
        return torch.where(torch.isfinite(exact), rounded + share * (exact - rounded), rounded)

    def _changed(self, node: fx.Node, result: Any, units: Sequence[float]) -> Any:
        flat, spec = pytree.tree_flatten(result)
        several = len(units) == len(flat)
        changed = [
            self._noise(one, units[place] if several else max(units, default=0.0))
            for place, one in enumerate(flat)
        ]
        return pytree.tree_unflatten(changed, spec)

    def _noise(self, value: Any, amount: float) -> Any:
        if not isinstance(value, torch.Tensor) or not _is_real(value.dtype) or not amount:
            return value
        return self._signs.off(value, amount * self.strength)


class Signs:
    """Random signs, another choice of the same ones for each tensor."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._signs: dict[tuple[torch.device, torch.dtype], torch.Tensor] = {}
        self._drawn = 0

    def off(self, value: torch.Tensor, amount: float) -> torch.Tensor:
        """The tensor with each element off by this share of itself, to a random side."""
        self._drawn += 7919
        count = value.numel()
        signs = self._at_least(count + _SIGNS, value)
        start = self._drawn % _SIGNS
        drawn = signs[start : start + count]
        dense = torch.ops.aten.is_non_overlapping_and_dense(value)
        drawn = (
            drawn.as_strided(value.shape, value.stride(), start)
            if dense
            else drawn.reshape(value.shape)
        )
        return value * (drawn * amount + 1.0)

    def _at_least(self, count: int, value: torch.Tensor) -> torch.Tensor:
        kind = value.device, value.dtype
        signs = self._signs.get(kind)
        if signs is None:
            generator = torch.Generator(value.device).manual_seed(self.seed)
            drawn = torch.randint(0, 2, (_SIGNS,), generator=generator, device=value.device)
            signs = self._signs[kind] = (2 * drawn - 1).to(value.dtype)
        if signs.numel() < count:
            signs = self._signs[kind] = signs[:_SIGNS].repeat(-(-count // _SIGNS))
        return signs


def more_for(terms: float) -> float:
    """How many times the rounding of one operation a sum of this many terms may be off by."""
    return max(1.0, math.sqrt(terms) / math.sqrt(_LANES))


def call(node: fx.Node, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Run the node's operation on these values; an in-place operation gets copies of what it
    writes."""
    target = node.target
    if not callable(target):
        raise NotComparable(f"{target} is not an operation")
    if operations.is_operation(target):
        if operations.reads_bits(target):
            raise NotComparable(f"{target} reads the bits of a number as another dtype")
        if target is torch.ops.aten.view.default:
            # A kernel may lay out its results differently from eager.
            return torch.ops.aten.reshape.default(*args, **kwargs)
        args = list(args)
        for place, _ in operations.written(target):
            if place < len(args) and isinstance(args[place], torch.Tensor):
                args[place] = args[place].clone()
    return target(*args, **kwargs)


def double(node: fx.Node, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The node's operation with its floats as float64."""
    if not _tensors(args) and not _tensors(kwargs):
        return pytree.tree_map(widened, call(node, args, kwargs))
    return _wide_call(node, args, kwargs)


def _wide_call(node: fx.Node, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    replaced = _REPLACED.get(operations.base_name(node.target))
    if replaced is not None:
        return replaced(node.target, args, kwargs)
    args, kwargs = pytree.tree_map(_wide_dtype, (list(args), kwargs))
    return pytree.tree_map(widened, call(node, args, kwargs))


def _linear_pointwise(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """oneDNN's linear, which has no float64 (torch/_inductor/fx_passes/mkldnn_fusion.py)."""
    given = _by_name(target, args, kwargs)
    if given.get("attr", "none") != "none":
        raise NotComparable(f"mkldnn._linear_pointwise with {given['attr']}")
    return F.linear(*args[:3])


def _attention(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    """A GPU's fused attention, or its backward: as two products and a softmax, differentiated by
    autograd (`sdp_utils` in aten/src/ATen/native/transformers).

    Its auxiliary results (the sums of the softmax, random number states, sizes) are specific to the
    kernel: they are None here and are not compared (`is_auxiliary`).
    """
    given = _by_name(target, args, kwargs)
    grad = given.get("grad_out", given.get("grad_out_"))
    wanted = [given["query"], given["key"], given["value"]]
    bias = given.get("attn_bias")
    if grad is not None:
        wanted = [one.detach().requires_grad_() for one in wanted]
        if bias is not None and given.get("grad_input_mask", [False])[-1]:
            bias = bias.detach().requires_grad_()
            wanted.append(bias)
    query, key, value = wanted[:3]
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
        out = F.scaled_dot_product_attention(
            query,
            key,
            value,
            bias,
            is_causal=given.get("is_causal", False),
            scale=given.get("scale"),
            enable_gqa=query.shape[-3] != key.shape[-3],
        )
        found = (out.detach(),) if grad is None else torch.autograd.grad(out, wanted, grad)
    return (*found, *[None] * (len(target._schema.returns) - len(found)))


def _by_name(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an operation by their names in its schema."""
    names = (argument.name for argument in target._schema.arguments)
    return {**dict(zip(names, args, strict=False)), **kwargs}


_FUSED = [f"scaled_dot_product_{kind}_attention" for kind in ("flash", "efficient", "cudnn")]
_REPLACED: dict[str, Callable[[Any, Sequence[Any], Mapping[str, Any]], Any]] = {
    "linear_pointwise": _linear_pointwise,
    **{f"{name}{suffix}": _attention for name in _FUSED for suffix in ("", "_backward")},
}
"""By the operation's name (`operations.base_name`)."""


def is_auxiliary(node: fx.Node) -> bool:
    """Whether a node is an auxiliary result of a fused attention."""
    if node.target is not operator.getitem or not isinstance(node.args[0], fx.Node):
        return False
    return node.args[1] != 0 and operations.base_name(node.args[0].target) in _FUSED


def widened(value: Any) -> Any:
    """A tensor of floats as float64, of complex numbers as complex128."""
    if not isinstance(value, torch.Tensor):
        return value
    wide = _wide_dtype(value.dtype)
    return value if wide is value.dtype else value.to(wide)


def _wide_dtype(value: Any) -> Any:
    if not isinstance(value, torch.dtype):
        return value
    return torch.float64 if value.is_floating_point else _WIDE.get(value, value)


def is_jump(node: fx.Node, result: Any) -> bool:
    """Whether a small change of an argument may change a node's result by much."""
    if operations.jumps(node.target):
        return True
    if node.target is operator.getitem:
        return False
    if not any(_is_real(one.dtype) for source in node.all_input_nodes for one in _of(source)):
        return False
    return any(not _is_real(tensor.dtype) for tensor in _tensors(result))


def is_conversion(node: fx.Node) -> bool:
    """Whether a node only converts its argument to another dtype."""
    return operations.base_name(node.target) in ("convert_element_type", "to_copy", "to")


def own_units(node: fx.Node) -> list[float]:
    """The relative rounding error of the node's dtype for each of its results; 0 for a conversion
    that only widens."""
    results = _of(node)
    if is_conversion(node) and results:
        source = [one for given in node.all_input_nodes for one in _of(given)]
        if source and _is_real(source[0].dtype) and _is_real(results[0].dtype):
            before, after = (torch.finfo(one.dtype).eps for one in (source[0], results[0]))
            if after <= before:
                return [0.0]
    return [unit_of(result.dtype) for result in results]


def unit_of(dtype: torch.dtype) -> float:
    """The relative error of one operation with a result of this dtype."""
    if not _is_real(dtype):
        return 0.0
    eps = float(torch.finfo(dtype).eps)
    return eps / 2 if torch.finfo(dtype).bits <= 16 else _COMPUTED * eps


def computed_unit(node: fx.Node) -> float:
    """The relative error of the dtype that a node computes in."""
    dtypes = [one.dtype for given in (node, *node.all_input_nodes) for one in _of(given)]
    wide = dtypes and all(dtype is torch.float64 for dtype in dtypes if _is_real(dtype))
    return _COMPUTED * float(torch.finfo(torch.float64 if wide else torch.float32).eps)


def _of(node: fx.Node) -> list[Any]:
    return _tensors(node.meta.get("val"))


def _tensors(value: Any) -> list[Any]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _is_real(dtype: torch.dtype) -> bool:
    return bool(dtype.is_floating_point or dtype.is_complex)
