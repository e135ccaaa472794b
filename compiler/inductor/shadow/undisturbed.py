"""Isolates the real compile from the shadow: torch's counters and learned state are restored.

Lowering a graph a second time adds to torch's counters and metrics, adds guards and values to the
symbolic shapes, and writes to torch's structured trace.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, MutableSet, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch._dynamo import utils as dynamo_utils
from torch._inductor import debug, metrics

from tcw.compiler.control.hooks import patch

Restore = Callable[[], None]
PLAIN = (bool, int, float, str, tuple, frozenset, type(None))
DEPTH = 4
"""The depth to which containers are remembered: counters are dicts of counters."""


@contextmanager
def undisturbed(inputs: Sequence[Any]) -> Iterator[None]:
    """After the block, torch's counters, metrics and symbolic shapes are as before it."""
    with ExitStack() as undo:
        for container in (
            dynamo_utils.counters,
            dynamo_utils.compilation_time_metrics,
            dynamo_utils.cumulative_time_spent_ns,
        ):
            undo.callback(_remember(container, DEPTH))
        for module in (metrics, debug):
            undo.callback(_remember_variables(vars(module)))
        context = dynamo_utils.get_metrics_context()
        undo.callback(_remember_variables(vars(context)))
        for shapes in _shape_environments(inputs):
            undo.callback(_renew, shapes)
            undo.callback(_remember_variables(vars(shapes)))
        undo.callback(patch(logging.getLogger("torch.__trace"), "handlers", []))
        with torch.random.fork_rng(devices=[]):
            yield


def _shape_environments(inputs: Sequence[Any]) -> list[Any]:
    """The distinct shape environments of the inputs' symbolic sizes and fake modes."""
    found: dict[int, Any] = {}
    for value in inputs:
        mode = getattr(value, "fake_mode", None)
        node = getattr(value, "node", None)
        for owner in (mode, node):
            environment = getattr(owner, "shape_env", None)
            if environment is not None:
                found[id(environment)] = environment
    context = torch._guards.TracingContext.try_get()
    environment = getattr(getattr(context, "fake_mode", None), "shape_env", None)
    if environment is not None:
        found[id(environment)] = environment
    return list(found.values())


def _renew(shapes: Any) -> None:
    """Invalidate what the environment cached during the shadow compile."""
    for counter in ("_version_counter", "_replacements_version_counter"):
        if hasattr(shapes, counter):
            setattr(shapes, counter, getattr(shapes, counter) + 1)


def _remember_variables(namespace: dict[str, Any]) -> Restore:
    """Remember the plain values and containers of a module or object, but not its functions."""
    kept = {
        name: value
        for name, value in namespace.items()
        if not name.startswith("__")
        and not name.endswith("_version_counter")
        and isinstance(value, (*PLAIN, dict, list, MutableSet))
    }
    inside = [_remember(value, DEPTH) for value in kept.values()]

    def restore() -> None:
        for each in inside:
            each()
        namespace.update(kept)

    return restore


def _remember(value: Any, depth: int) -> Restore:
    """Remember a container's contents; `restore` puts them back into the same object."""
    if depth == 0 or not isinstance(value, (dict, list, MutableSet)):
        return lambda: None
    held: Any = dict(value) if isinstance(value, dict) else list(value)
    inside = [
        _remember(each, depth - 1)
        for each in (held.values() if isinstance(held, dict) else held)
        if isinstance(each, (dict, list, MutableSet))
    ]

    def restore() -> None:
        for each in inside:
            each()
        if isinstance(value, dict):
            value.clear()
            value.update(held)
        elif isinstance(value, list):
            value[:] = held
        else:
            value.clear()
            for each in held:
                value.add(each)

    return restore
