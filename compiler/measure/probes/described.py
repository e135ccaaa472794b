"""Arguments and results of one ATen call: as metadata, and as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tcw.compiler.graphs.tensors import tensor_meta
from tcw.compiler.graphs.text import short_type
from tcw.compiler.trace.records import TensorMeta

_MAX_ARGUMENTS = 400
_MAX_ITEMS = 16


class Described:
    """Arguments with tensors as `TensorMeta`: one object per tensor, however often it is passed.

    Call it with the arguments of one operation.
    """

    def __init__(self) -> None:
        self._known: dict[int, TensorMeta | None] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in self._known:
                self._known[id(value)] = tensor_meta(value)
            return self._known[id(value)]
        if isinstance(value, (list, tuple)):
            return [self(item) for item in value]
        if isinstance(value, dict):
            return {key: self(item) for key, item in value.items()}
        return value

    def tensors(self) -> tuple[TensorMeta, ...]:
        """The tensors seen so far: distinct, in order."""
        return tuple(meta for meta in self._known.values() if meta is not None)


def results_of(value: Any) -> list[TensorMeta | None]:
    """The results of an operation, with lists of tensors flattened; None for a non-tensor."""
    if isinstance(value, (list, tuple)):
        return [meta for item in value for meta in results_of(item)]
    return [tensor_meta(value)]


def format_value(value: Any) -> str:
    """One argument as text: tensors as `f32[4, 128]`."""
    if isinstance(value, torch.Tensor):
        return short_type(value)
    if isinstance(value, (list, tuple)):
        items = [format_value(item) for item in value[:_MAX_ITEMS]]
        if len(value) > _MAX_ITEMS:
            items.append(f"… {len(value) - _MAX_ITEMS} more")
        return f"[{', '.join(items)}]"
    if isinstance(value, str):
        return repr(value[:80])
    try:
        return str(value)[:80]
    except Exception:
        return f"<{type(value).__name__}>"


def format_call(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """`f32[512, 64], None, dim=-1`, truncated to 400 characters."""
    parts = [format_value(value) for value in args]
    parts += [f"{name}={format_value(value)}" for name, value in kwargs.items()]
    text = ", ".join(parts)
    return text if len(text) <= _MAX_ARGUMENTS else text[: _MAX_ARGUMENTS - 1] + "…"
