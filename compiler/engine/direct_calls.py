"""Which graphs AOTAutograd calls without its runtime wrapper: those for which it does nothing.

The wrapper (`RuntimeWrapper` in torch/_functorch/_aot_autograd/runtime_wrappers.py) turns autograd
off around ATen calls, writes mutated inputs back and makes views of outputs. For one C++ function
that returns new tensors that is a microsecond a call for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import BuiltinFunctionType
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


def provides_for_nothing(metadata: Any) -> bool:
    """Whether torch has nothing to do before and after a call of the graph."""
    return not any(getattr(metadata, name, None) for name in _ABSENT)


def is_direct(wrapper: Any, function: Callable[..., Any], metadata: Any) -> bool:
    """Whether an inference graph is one C++ function, without an ATen call that could read the
    state of autograd or autocast."""
    return (
        not wrapper.trace_joint
        and not wrapper.disable_amp
        and isinstance(function, partial)
        and isinstance(function.func, BuiltinFunctionType)
        and provides_for_nothing(metadata)
        and not any(getattr(metadata, name, None) for name in _ABSENT_IN_INFERENCE)
        and getattr(metadata, "grad_enabled_mutation", None) is None
        and not torch._functorch.config.debug_assert
    )
