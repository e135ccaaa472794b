"""Decompositions of `_foreach` operations into one operation per tensor of the list.

Optimisers use them; fused, the whole update of a parameter becomes one loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tcw.compiler.control.hooks import Hook, Missing, resolve

_SCHEMAS = "torch._C:_jit_get_all_schemas"

HOOK = Hook(
    name="operations on lists",
    offers="an optimizer's update of a parameter in one loop",
    needs=(_SCHEMAS,),
    test="engine/test_backend.py",
)

PREFIX = "_foreach_"

_OTHER_NAMES = {
    ("maximum", "Scalar"): "clamp_min",
    ("maximum", "ScalarList"): "clamp_min",
    ("minimum", "Scalar"): "clamp_max",
    ("minimum", "ScalarList"): "clamp_max",
    ("norm", "Scalar"): "linalg_vector_norm",
}
"""(name, overload) -> the operation on one tensor, if it has another name."""

_KEPT = frozenset({"mm", "max", "powsum", "copy", "zero", "clone"})
"""Products, and operations whose single-tensor namesake means something else."""


def foreach_decompositions() -> dict[Any, Callable[..., list[torch.Tensor]]]:
    """A decomposition for each functional `_foreach` overload that this torch has."""
    table: dict[Any, Callable[..., list[torch.Tensor]]] = {}
    aten = torch.ops.aten
    for name in _names():
        packet = getattr(aten, PREFIX + name)
        for overload in packet.overloads():
            operation = getattr(aten, _OTHER_NAMES.get((name, overload), name), None)
            found = getattr(packet, overload)
            schema = found._schema
            if operation is not None and len(schema.returns) == 1 and not schema.is_mutable:
                table[found] = one_by_one(operation, schema)
    return table


def _names() -> list[str]:
    """Of all functional `_foreach` operations; none if torch does not list them, so that they
    stay ATen calls."""
    try:
        schemas_of_all: Any = resolve(_SCHEMAS)
    except Missing:
        return []
    schemas = schemas_of_all()
    found = {schema.name.removeprefix("aten::") for schema in schemas}
    return sorted(
        name.removeprefix(PREFIX)
        for name in found
        if name.startswith(PREFIX)
        and not name.endswith("_")
        and name.removeprefix(PREFIX) not in _KEPT
    )


def one_by_one(operation: Callable[..., Any], schema: Any) -> Callable[..., list[torch.Tensor]]:
    """A function that calls `operation` for each position of the lists in the arguments."""
    lists = {
        argument.name
        for argument in schema.arguments
        if str(argument.type) in ("List[Tensor]", "List[number]")
    }
    names = [argument.name for argument in schema.arguments]
    # a tensor of scalars holds one scalar per position
    spread = schema.overload_name == "Tensor" and "scalars" in names
    after = ("value",) if "addc" in schema.name else ()

    def decomposed(*args: Any, **kwargs: Any) -> list[torch.Tensor]:
        count = len(next(value for name, value in zip(names, args, strict=False) if name in lists))

        def at(name: str, value: Any, position: int) -> Any:
            if name in lists or (spread and name == "scalars"):
                return value[position]
            return value

        results = []
        for position in range(count):
            given = [at(n, value, position) for n, value in zip(names, args, strict=False)]
            named = {name: at(name, value, position) for name, value in kwargs.items()}
            if after and len(given) > 3:
                named["value"] = given.pop()
            elif "scalars" in named:
                named["value" if after else "other"] = named.pop("scalars")
            results.append(operation(*given, **named))
        return results

    return decomposed
