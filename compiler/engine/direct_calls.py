"""Which graphs AOTAutograd calls without its runtime wrapper: those for which it does nothing.

The wrapper (`RuntimeWrapper` in torch/_functorch/_aot_autograd/runtime_wrappers.py) turns autograd
off around ATen calls, writes mutated inputs back and makes views of outputs. For one C++ function
that returns new tensors that is a microsecond a call for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch

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


def provides_for_nothing(metadata: Any) -> bool:
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
        or not provides_for_nothing(metadata)
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
