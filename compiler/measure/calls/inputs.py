"""The arguments of a call, copied for each run of it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from tcw.compiler.control.describe import describe
from tcw.compiler.graphs.tensors import tensor_meta
from tcw.compiler.trace.records import Argument


@dataclass
class InputSet:
    """The arguments of one call, as the user gave them; `fresh` makes the copy that is used."""

    positional: tuple[Any, ...]
    keyword: dict[str, Any] = field(default_factory=dict)

    def fresh(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A deep copy: a model that changes its inputs in place cannot spoil the next run.

        Strides, shared storage and marks (`mark_dynamic`) stay. Parts that cannot be copied are
        shared.
        """
        memo: dict[int, Any] = {}
        _detach_copies((self.positional, self.keyword), memo, 0)
        return _deep_copy(self.positional, memo), {
            name: _deep_copy(value, memo) for name, value in self.keyword.items()
        }


def _detach_copies(value: Any, memo: dict[int, Any], depth: int) -> None:
    """Tensors that autograd made cannot be deep-copied: their detached copies go into the memo."""
    if isinstance(value, torch.Tensor):
        if value.requires_grad and not value.is_leaf:
            copied = copy.deepcopy(value.detach(), memo)
            memo[id(value)] = copied.requires_grad_(True)
    elif depth < 8:
        if isinstance(value, Mapping):
            value = list(value.values())
        if isinstance(value, list | tuple):
            for item in value:
                _detach_copies(item, memo, depth + 1)


def _deep_copy(value: Any, memo: dict[int, Any]) -> Any:
    try:
        return copy.deepcopy(value, memo)
    except Exception:
        if type(value) in (list, tuple):
            return type(value)(_deep_copy(item, memo) for item in value)
        if type(value) is dict:
            return {key: _deep_copy(item, memo) for key, item in value.items()}
        return value


def described_arguments(named: dict[str, Any]) -> tuple[Argument, ...]:
    """Arguments for the record of a call."""
    found = []
    for name, value in named.items():
        meta = tensor_meta(value)
        found.append(
            Argument(name=name, tensor=meta, value="" if meta is not None else describe(value))
        )
    return tuple(found)
