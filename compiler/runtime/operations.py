"""ATen operations, looked up by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from tcw.compiler.control.hooks import Hook
from tcw.compiler.loops.graph import DRAWS, HIGHER_ORDER
from tcw.compiler.runtime.draws import distribution

PLAIN = {
    "aten.mm.default": "mm",
    "aten.bmm.default": "bmm",
    "aten.addmm.default": "addmm",
    "aten.baddbmm.default": "baddbmm",
    "aten.convolution.default": "convolution",
}
"""Operations that torch also offers as functions with the same arguments. Calling these skips
overload resolution, which saves 0.5 to 1.5 µs."""


HOOK = Hook(
    name="calls into ATen",
    offers="ATen's operations called without a Python function around each",
    needs=("torch:ops.aten.mm.default._op", "torch._ops:OpOverload"),
    test="runtime/test_wrapper.py",
)


class UnknownOperation(Exception):
    """This process has no operation of that name; custom operations must be registered first."""


def operation(name: str) -> Callable[..., Any]:
    """The callable for a name such as `aten.mm.default`. Raises `UnknownOperation`.

    `run_with_rng_state:aten.rand.default` is that operation inside the higher-order one,
    `torch.ops.higher_order.cond` one that runs subgraphs, and `tcw.normal.default` one of
    `tcw.compiler.runtime.draws`.
    """
    if name.startswith(HIGHER_ORDER):
        return _apart(_overload(name.removeprefix("torch.ops.")))
    if name.startswith(DRAWS):
        return distribution(name.removeprefix(DRAWS).removesuffix(".default"))
    around, inside, target = name.rpartition(":")
    if inside:
        return _AROUND[around](_overload(target))
    plain = PLAIN.get(name)
    if plain is not None and hasattr(torch, plain):
        return getattr(torch, plain)  # type: ignore[no-any-return]
    called: Callable[..., Any] = _function_of(_overload(name))
    return called


def _overload(name: str) -> Callable[..., Any]:
    found: Any = torch.ops
    try:
        for part in name.split("."):
            found = getattr(found, part)
        return found  # type: ignore[no-any-return]
    except AttributeError as error:
        raise UnknownOperation(f"there is no operation {name}: {error}") from error


def _function_of(found: Any) -> Any:
    """The built-in function to which `__call__` of an overload, a Python function, forwards."""
    if HOOK.missing() or type(found) is not torch._ops.OpOverload:
        return found
    return found._op


def _apart(target: Callable[..., Any]) -> Callable[..., Any]:
    """Returns each tensor in plain memory of its own: the plan counts on it, and a subgraph may
    return an operand."""

    def run(*arguments: Any, **keywords: Any) -> Any:
        held = {_memory(tensor) for tensor in _tensors((arguments, keywords))}

        def own(item: Any) -> Any:
            if isinstance(item, (list, tuple)):
                return [own(one) for one in item]
            if not isinstance(item, torch.Tensor):
                return item
            made = item.resolve_conj().resolve_neg()
            if _memory(made) in held:
                made = made.clone()
            held.add(_memory(made))
            return made

        return own(target(*arguments, **keywords))

    return run


def _tensors(arguments: Any) -> Iterator[torch.Tensor]:
    if isinstance(arguments, torch.Tensor):
        yield arguments
    elif isinstance(arguments, (list, tuple)):
        for argument in arguments:
            yield from _tensors(argument)
    elif isinstance(arguments, dict):
        yield from _tensors(tuple(arguments.values()))


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata  # type: ignore[no-any-return]


def _saving(target: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the RNG state before the operation, followed by its results, as a flat tuple."""

    def run(*arguments: Any, **keywords: Any) -> tuple[Any, ...]:
        saves = torch.ops.higher_order.run_and_save_rng_state
        state, found = saves(target, *arguments, **keywords)
        return (state, *found) if isinstance(found, (list, tuple)) else (state, found)

    return run


def _restoring(target: Callable[..., Any]) -> Callable[..., Any]:
    """Takes an RNG state before the operation's own arguments."""

    def run(state: Any, *arguments: Any, **keywords: Any) -> Any:
        restores = torch.ops.higher_order.run_with_rng_state
        return restores(state, target, *arguments, **keywords)

    return run


_AROUND = {"run_and_save_rng_state": _saving, "run_with_rng_state": _restoring}
