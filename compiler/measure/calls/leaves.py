"""Tensors and other values in a model's output, by path."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import torch

_DEPTH = 8


def leaves(value: Any, path: str = "out", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """(path, value) of everything in tuples, lists, mappings, dataclasses and plain objects."""
    if isinstance(value, torch.Tensor) or depth > _DEPTH:
        yield path, value
    elif isinstance(value, Mapping):
        # transformers' ModelOutput is shown by attribute, a dict by key
        attributes = type(value) is not dict
        for key, item in value.items():
            named = attributes and isinstance(key, str) and key.isidentifier()
            shown = repr(key) if type(key) in (str, int) else type(key).__name__
            yield from leaves(item, f"{path}.{key}" if named else f"{path}[{shown}]", depth + 1)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for name, item in zip(value._fields, value, strict=False):
            yield from leaves(item, f"{path}.{name}", depth + 1)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from leaves(item, f"{path}[{number}]", depth + 1)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from leaves(getattr(value, field.name, None), f"{path}.{field.name}", depth + 1)
    elif isinstance(value, bool | int | float | complex | str | bytes | None):
        yield path, value
    elif isinstance(getattr(value, "__dict__", None), dict) and not isinstance(value, type):
        # e.g. a key-value cache: only its tensors count
        for name, item in vars(value).items():
            if isinstance(item, torch.Tensor | list | tuple | dict):
                yield from leaves(item, f"{path}.{name}", depth + 1)
