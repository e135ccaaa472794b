"""Short descriptions of the user's values, made without running user code.

Only values of built-in types are printed. A user's `__repr__`, which may lie, hang or print, is
never called.
"""

from __future__ import annotations

import enum
import types

import torch

from tcw.compiler.graphs.tensors import tensor_meta
from tcw.compiler.trace.dtypes import short_dtype
from tcw.compiler.trace.records import TensorMeta

_MAX_LENGTH = 200
_MAX_ITEMS = 8
_MAX_DEPTH = 3

_PRINTED: tuple[object, ...] = (
    *(int, float, complex, bool, type(None), type(Ellipsis), slice, range, torch.dtype),
    *(torch.device, torch.Size, torch.layout, torch.memory_format),
)
"""Types whose `__repr__` is Python's or torch's own, and short."""


def describe_value(value: object) -> str:
    """`f32[8, 32] stride (32, 1) cpu`, `0.5`, `'relu'`, `torch.nn.Linear`; at most 200 characters.

    Never raises, and never calls a `__repr__` that is not torch's or Python's own.
    """
    try:
        text = _describe(value, 0)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 1] + "…"


def describe_tensor(meta: TensorMeta) -> str:
    """`f32[8, 32] stride (32, 1) cpu requires_grad`."""
    shape = ", ".join(map(str, meta.shape))
    words = [f"{short_dtype(meta.dtype)}[{shape}]"]
    if meta.stride is not None and meta.shape:
        comma = "," if len(meta.stride) == 1 else ""
        words.append(f"stride ({', '.join(map(str, meta.stride))}{comma})")
    words.append(meta.device)
    if meta.requires_grad:
        words.append("requires_grad")
    return " ".join(words)


def _describe(value: object, depth: int) -> str:
    kind = type(value)
    if kind in _PRINTED:
        return repr(value)
    if kind in (str, bytes, bytearray) and isinstance(value, str | bytes | bytearray):
        return repr(value[:_MAX_LENGTH])
    if kind in (tuple, list, set, frozenset, dict):
        return _describe_container(value, depth)
    if issubclass(kind, torch.Tensor):
        meta = tensor_meta(value)
        if meta is not None:
            name = "" if kind in (torch.Tensor, torch.nn.Parameter) else f" {type_name(kind)}"
            return describe_tensor(meta) + name
    if issubclass(kind, enum.Enum):
        return f"{kind.__name__}.{object.__getattribute__(value, '_name_')}"
    if issubclass(kind, type):
        return f"class {type_name(value)}"
    if kind is types.ModuleType:
        return f"module {types.ModuleType.__getattribute__(value, '__name__')}"
    if issubclass(kind, types.FunctionType):
        code = value.__code__  # type: ignore[attr-defined]
        file = code.co_filename.rpartition("/")[2]
        return f"function {code.co_qualname} ({file}:{code.co_firstlineno})"
    if kind is types.BuiltinFunctionType:
        return f"function {value.__name__}"  # type: ignore[attr-defined]
    if kind is types.MethodType:
        return f"method {getattr(value, '__qualname__', '?')}"
    if kind is types.CodeType:
        return f"code of {getattr(value, 'co_name', '?')}"
    return type_name(kind)


def _describe_container(value: object, depth: int) -> str:
    assert isinstance(value, (tuple, list, set, frozenset, dict))
    name = type(value).__name__
    if not value:
        return repr(value)
    if depth >= _MAX_DEPTH or len(value) > _MAX_ITEMS:
        return f"{name} of {len(value)}"
    if isinstance(value, dict):
        pairs = (f"{_describe(k, depth + 1)}: {_describe(v, depth + 1)}" for k, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    items = ", ".join(_describe(item, depth + 1) for item in value)
    if isinstance(value, tuple):
        return f"({items},)" if len(value) == 1 else f"({items})"
    if isinstance(value, list):
        return f"[{items}]"
    return f"{{{items}}}" if isinstance(value, set) else f"frozenset({{{items}}})"


def type_name(kind: object) -> str:
    """`torch.nn.Linear` for torch's own deep modules, else `module.QualifiedName`."""
    module = type.__getattribute__(kind, "__module__") if isinstance(kind, type) else ""
    name = type.__getattribute__(kind, "__qualname__") if isinstance(kind, type) else "?"
    if module in ("builtins", "__main__"):
        return str(name)
    if module.startswith("torch.nn.modules."):
        return f"torch.nn.{name}"
    return f"{module}.{name}"
