"""Dynamo's symbolic values, described without making Dynamo evaluate anything.

A lazy variable must stay lazy: accessing it the usual way would install guards
(torch/_dynamo/variables/lazy.py). So only instance dictionaries are read, never properties.
"""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch

from tcw.compiler.graphs.tensors import dtype_name, tensor_meta
from tcw.compiler.trace.records import Crossing, StackValue, TensorMeta

_MAX = 200
_PLAIN = (bool, int, float, complex, type(None), torch.dtype, torch.device)
_WORDS = {
    kind: word
    for word, kinds in {
        "module": "NNModule UnspecializedNNModule UnspecializedBuiltinNNModule FSDPManagedNNModule",
        "function": "UserFunction NestedUserFunction SkipFunction Builtin TorchInGraphFunction",
        "method": "UserMethod",
        "symbolic number": "SymNode",
        "null": "Null",
        "list": "List",
        "tuple": "Tuple",
        "torch.Size": "Size",
        "dict": "ConstDict",
        "set": "Set",
        "cell": "Cell",
        "context manager": "WithExitFunction GenericContextWrapping",
        "Python module": "PythonModule",
    }.items()
    for kind in kinds.split()
}


def unwrapped(variable: Any) -> Any:
    """The realised variable behind a lazy variable; the lazy variable itself until then."""
    cache = vars(variable).get("_cache")
    realized = getattr(cache, "vt", None)
    return variable if realized is None else realized


def pending_value(variable: Any) -> tuple[bool, object]:
    """(True, the Python value) of a lazy variable not yet realised, else (False, None)."""
    cache = vars(variable).get("_cache")
    if cache is None or getattr(cache, "vt", None) is not None or not hasattr(cache, "value"):
        return False, None
    return True, cache.value


def kind(variable: Any) -> str:
    """Class of the variable without its suffix: `Tensor`, `NNModule`, `Constant`."""
    return type(variable).__name__.removesuffix("Tracker").removesuffix("Variable")


def fx_node(variable: Any) -> Any | None:
    """The FX node that computes the variable; None if there is none."""
    return getattr(vars(unwrapped(variable)).get("proxy"), "node", None)


def node(variable: Any) -> str:
    """Name of the FX node that computes the variable; "" if there is none."""
    return str(getattr(fx_node(variable), "name", ""))


def source(variable: Any) -> str:
    """torch's source expression, `L['x']`; "" for a value created while tracing."""
    found = vars(variable).get("source")
    if found is None:
        return ""
    try:
        name = found.name
        return str(name() if callable(name) else name)[:_MAX]
    except NotImplementedError:  # synthetic sources have no name
        return ""


def constant_text(value: object) -> str:
    """A constant as Python writes it, truncated to 200 characters; else the class name only."""
    if type(value) is str:
        return repr(value[:_MAX]) if len(value) <= _MAX else repr(value[:_MAX]) + "…"
    if type(value) in _PLAIN:
        return repr(value)[:_MAX]
    return type(value).__name__


def value(variable: Any) -> str:
    """The value of a constant or an unrealised lazy variable, by `constant_text`; else ""."""
    lazy, found = pending_value(variable)
    if lazy:
        return constant_text(found)
    members = vars(variable)
    if kind(variable) == "Constant" and "value" in members:
        return constant_text(members["value"])
    return ""


def stack_value(variable: Any) -> StackValue:
    variable = unwrapped(variable)
    return StackValue(
        kind=kind(variable), node=node(variable), source=source(variable), value=value(variable)
    )


def tensor_meta_of(variable: Any) -> TensorMeta | None:
    """The metadata of a variable's tensor; None if it is not a tensor."""
    variable = unwrapped(variable)
    lazy, pending = pending_value(variable)
    if lazy:
        return tensor_meta(pending)
    found = fx_node(variable)
    return tensor_meta(found.meta.get("example_value")) if found is not None else None


def kind_in_words(variable: Any) -> str:
    """The kind of a non-tensor value: `module`, `int 3`, `list`, `Config`."""
    variable = unwrapped(variable)
    lazy, found = pending_value(variable)
    if lazy:
        return _object_in_words(found)
    members = vars(variable)
    name = kind(variable)
    if name == "Constant":
        return _object_in_words(members.get("value"))
    if name in _WORDS:
        return _WORDS[name]
    if name.startswith("UserDefined") and "value" in members:
        return type(members["value"]).__name__
    return name


def _object_in_words(found: object) -> str:
    if isinstance(found, torch.nn.Module):
        return "module"
    if found is None:
        return "None"
    if isinstance(found, (FunctionType, BuiltinFunctionType)):
        return "function"
    if type(found) in (bool, int, float):
        return f"{type(found).__name__} {found}"
    return type(found).__name__


def crossing(name: str, variable: Any, words: str = "") -> Crossing:
    tensor = tensor_meta_of(variable)
    return Crossing(
        name=name,
        tensor=tensor,
        kind=words or ("" if tensor is not None else kind_in_words(variable)),
    )


def tensor_locals(tx: Any) -> tuple[tuple[str, str], ...]:
    """(name, dtype) of each local that is known to hold a tensor."""
    found = []
    for name, variable in tx.symbolic_locals.items():
        variable = unwrapped(variable)
        lazy, pending = pending_value(variable)
        dtype = getattr(pending, "dtype", None) if lazy else vars(variable).get("dtype")
        if isinstance(dtype, torch.dtype):
            found.append((name, dtype_name(dtype)))
    return tuple(found)
