"""AOTAutograd's autograd function, without what a graph's metadata rules out.

A forward and backward of a compiled graph pass through `CompiledFunction`
(torch/_functorch/_aot_autograd/runtime_wrappers.py). It provides for subclasses, mutated inputs,
aliases, effect tokens and random states of the library at each call. A function that saves tensors
and calls two graphs takes 17 us less for one product, and 26 us less for a small network
(`benchmarks/engine_call.py`, torch 2.13). A graph that needs no more gets such a function. A call
that differs from the plain case goes through torch's own, whose context it shares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import repeat
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple

import torch

from tcw.compiler.control.hooks import Hook, during, patch, resolve

_ABSENT = (
    "num_mutated_inp_runtime_indices",
    "num_outputs_aliased",
    "num_intermediate_bases",
    "num_graphsafe_rng_states",
    "is_rng_op_functionalized",
    "tokens",
)
"""What torch's wrappers provide for beside calling a graph, as names of its metadata."""
_ABSENT_IN_INFERENCE = (
    "dynamic_outputs",
    "mutated_graph_handled_indices_seen_by_autograd",
)

_IDLE = (
    "EffectTokensWrapper.post_compile.<locals>.inner_fn",
    "FunctionalizedRngRuntimeWrapper.post_compile.<locals>.wrapper",
)
"""What torch 2.11 puts around graphs without tokens and random states, too."""


def needs_no_wrapper(metadata: Any) -> bool:
    """Whether torch has nothing to do before and after a call of the graph."""
    return not any(getattr(metadata, name, None) for name in _ABSENT)


def direct_call(
    wrapper: Any, function: Callable[..., Any], metadata: Any
) -> Callable[..., Any] | None:
    """The C++ function that an inference graph is, if it needs no wrapper: it makes no ATen call
    that could read the state of autograd or autocast."""
    if (
        wrapper.trace_joint
        or wrapper.disable_amp
        or not needs_no_wrapper(metadata)
        or any(getattr(metadata, name, None) for name in _ABSENT_IN_INFERENCE)
        or getattr(metadata, "grad_enabled_mutation", None) is not None
        or torch._functorch.config.debug_assert
    ):
        return None
    while isinstance(function, FunctionType) and function.__code__.co_qualname in _IDLE:
        function = function.__wrapped__  # type: ignore[attr-defined]
    if isinstance(function, partial) and isinstance(function.func, BuiltinFunctionType):
        return function
    return None


_MODULE = "torch._functorch._aot_autograd.runtime_wrappers"
_METADATA = "torch._functorch._aot_autograd.schemas:ViewAndMutationMeta"
_SAVED = (
    "tensors_saved_for_backwards_with_vc_check_slice",
    "tensors_saved_for_backwards_no_vc_check_slice",
    "symints_saved_for_backwards_slice",
)

HOOK = Hook(
    name="autograd function",
    offers="a short way from a compiled forward to its backward",
    needs=(
        # first: the other modules import each other in a circle that only this one opens
        "torch._dynamo:reset",
        f"{_MODULE}:RuntimeWrapper(trace_joint, disable_amp)",
        f"{_MODULE}:RuntimeWrapper.post_compile(compiled_fn, aot_config, runtime_metadata)",
        f"{_MODULE}:AOTDispatchAutograd.process_runtime_tangent(x, meta)",
        f"{_MODULE}:OutputType.unsafe_view_alias",
        *(f"{_METADATA}.{name}" for name in _SAVED),
        "torch._C:_DisableAutocast",
        "torch._C:_get_obj_in_tls",
        "torch._C:_is_key_in_tls",
        "torch._C._autograd:_get_current_graph_task_keep_graph",
        "torch._C._functorch:peek_interpreter_stack",
    ),
    test="engine/test_autograd_function.py",
)


class _Tangent(NamedTuple):
    """What the gradient of an output has to be like."""

    place: int
    """Among the gradients."""
    size: Sequence[int] | None
    """None where only a memory format is asked for."""
    stride: Sequence[int] | None
    meta: Any
    """torch's description of it."""


@contextmanager
def short_autograd_functions() -> Iterator[None]:
    """Inside, AOTAutograd makes functions with a short way, and calls inference graphs directly
    that need no wrapper. A torch without what this needs makes its own."""
    if HOOK.missing():
        yield
        return
    owner: Any = resolve(f"{_MODULE}:RuntimeWrapper")
    made = owner.post_compile

    def post_compile(
        self: Any, compiled_fn: Callable[..., Any], aot_config: Any, *, runtime_metadata: Any
    ) -> Any:
        direct = direct_call(self, compiled_fn, runtime_metadata)
        if direct is not None:
            return direct
        function = getattr(compiled_fn, "__self__", None)
        if isinstance(function, type) and _is_plain(function, runtime_metadata):
            _shorten(function, runtime_metadata, disable_amp=self.disable_amp)
        return made(self, compiled_fn, aot_config, runtime_metadata=runtime_metadata)

    with during(patch(owner, "post_compile", post_compile)):
        yield


def _is_plain(function: Any, metadata: Any) -> bool:
    """Whether a graph returns plain tensors and numbers, and changes nothing that autograd sees."""
    absent = (
        "num_backward_tokens",
        "num_opaque_objects_saved_for_bw",
        "dynamic_saved_tensors_idxs",
        "indices_of_inputs_that_requires_grad_with_mutations_in_bw",
    )
    return (
        hasattr(function, "compiled_fw")
        and function.maybe_subclass_metadata is None
        and needs_no_wrapper(metadata)
        and not any(getattr(metadata, name, None) for name in absent)
        and getattr(function.compiled_fw, "_boxed_call", False)
        and not torch._functorch.config.debug_assert
        and all(getattr(meta, "memory_format", None) for meta in metadata.subclass_tangent_meta)
        and len(_tangents(metadata)) == len(metadata.subclass_tangent_meta)
    )


def _tangents(metadata: Any) -> list[_Tangent]:
    kinds: Any = resolve(f"{_MODULE}:OutputType")
    differentiable = (kinds.non_alias, kinds.unsafe_view_alias, kinds.custom_function_view)
    places = [
        place
        for place, info in enumerate(metadata.output_info)
        if info.output_type in differentiable
        and issubclass(info.raw_type, torch.Tensor)
        and getattr(info, "requires_grad_for_backward", info.requires_grad)
    ]
    metas = metadata.subclass_tangent_meta
    return [
        _Tangent(place, meta.memory_format.size, meta.memory_format.stride, meta)
        for place, meta in zip(places, metas, strict=False)
    ]


def _shorten(function: Any, metadata: Any, *, disable_amp: bool) -> None:
    """Give torch's function shorter methods. Each passes a call that is not plain to torch's."""
    function.forward = staticmethod(_forward(function, metadata, disable_amp))
    function.backward = staticmethod(_backward(function, metadata, disable_amp))


def _without_autocast(function: Callable[..., Any]) -> Callable[..., Any]:
    """What was traced under autocast has its casts, and is called without it."""

    def call(arguments: list[Any]) -> Any:
        with torch._C._DisableAutocast():
            return function(arguments)

    return call


def _forward(function: Any, metadata: Any, disable_amp: bool) -> Callable[..., Any]:
    compiled, whole = function.compiled_fw, function.forward
    if disable_amp:
        compiled = _without_autocast(compiled)
    checked, unchecked, numbers = (getattr(metadata, name) for name in _SAVED)
    returned = metadata.num_forward_returns
    views = tuple(metadata.unsafe_view_out_indices)
    constant = [i for i, info in enumerate(metadata.output_info) if not info.requires_grad]
    inputs = getattr(metadata, "saved_tensor_is_graph_input", None)
    external = getattr(resolve(_MODULE), "index_to_external_object_weakref", ())
    unsafe_view = torch.ops.aten._unsafe_view.default

    def forward(ctx: Any, *arguments: Any) -> Any:
        if external:
            return whole(ctx, *arguments)
        results = compiled(list(arguments))
        saved, both = results[checked], (*results[checked], *results[unchecked])
        # a saved view would keep its base's graph alive; an input stays the user's own tensor
        kept = [
            one if own or not one._is_view() else one.detach()
            for one, own in zip(both, inputs or repeat(False, len(both)), strict=True)
        ]
        ctx.save_for_backward(*kept[: len(saved)])
        ctx._tensors_no_vc_check = kept[len(saved) :]
        ctx.symints = results[numbers]
        ctx.opaque_objects = ()
        outputs = list(results[:returned])
        for i in views:
            outputs[i] = unsafe_view(outputs[i], outputs[i].shape)
        if constant:
            tensors = (outputs[i] for i in constant)
            ctx.mark_non_differentiable(
                *(tensor for tensor in tensors if isinstance(tensor, torch.Tensor))
            )
        ctx._materialize_non_diff_grads = False
        return tuple(outputs)

    return forward


def _backward(function: Any, metadata: Any, disable_amp: bool) -> Callable[..., Any]:
    whole = function.backward
    boxed = getattr(function, "boxed_grads_call", False)
    expected = metadata.num_outputs
    nondeterministic = metadata.deterministic is False
    donated = bool(metadata.bw_donated_idxs)
    tangents = _tangents(metadata)
    coerced: Any = resolve(f"{_MODULE}:AOTDispatchAutograd.process_runtime_tangent")
    in_tls, of_tls = torch._C._is_key_in_tls, torch._C._get_obj_in_tls
    interpreters = torch._C._functorch.peek_interpreter_stack
    keeps_graph = torch._C._autograd._get_current_graph_task_keep_graph

    def as_traced(gradient: Any, tangent: _Tangent) -> Any:
        if (
            type(gradient) is torch.Tensor
            and gradient.shape == tangent.size
            and gradient.stride() == tangent.stride
        ):
            return gradient
        return coerced(gradient, tangent.meta)[0]

    def backward(ctx: Any, *given: Any) -> Any:
        compiled = function.compiled_bw
        gradients: Any = given[0] if boxed else given
        if (
            not getattr(compiled, "_boxed_call", False)
            or torch.is_grad_enabled()
            or len(gradients) != expected
            or getattr(ctx, "_external_objects", None)
            or interpreters() is not None
            or (donated and keeps_graph())
            or (nondeterministic and torch.are_deterministic_algorithms_enabled())
        ):
            return whole(ctx, *given)
        arguments = [*ctx.symints, *ctx.saved_tensors, *ctx._tensors_no_vc_check]
        arguments += [as_traced(gradients[tangent.place], tangent) for tangent in tangents]
        if boxed:
            gradients.clear()
        ctx.maybe_clear_saved_tensors()
        # autograd's threads have no context variables of their own
        context = of_tls("context") if in_tls("context") else None
        if context is not None:
            compiled = partial(context.copy().run, compiled)
        if disable_amp:
            compiled = _without_autocast(compiled)
        results = compiled(arguments)
        return tuple(results) if isinstance(results, (list, tuple)) else (results,)

    return backward
