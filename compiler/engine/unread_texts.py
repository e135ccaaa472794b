"""Skips the texts of AOTAutograd's graphs if nothing reads them.

`_log_joint_graph` and `_log_fw_bw_graphs` (torch/_functorch/_aot_autograd/graph_compile.py) print
three graphs with all shapes before they ask whether there is a log or a cache for them.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from tcw.compiler.control.hooks import Hook, during, patch, resolve, undo_all

_MODULE = "torch._functorch._aot_autograd.graph_compile"
_WRITERS = ("_log_joint_graph", "_log_fw_bw_graphs")
_LOGS = ("aot_joint_log", "aot_graphs_log")
_CONFIG = "torch._functorch._aot_autograd.schemas:AOTConfig"
_TRACE = "torch._logging._internal:trace_log.handlers"

HOOK = Hook(
    name="unread texts",
    offers="no texts of AOTAutograd's graphs that nobody reads",
    needs=(*(f"{_MODULE}:{name}" for name in (*_WRITERS, *_LOGS)), f"{_CONFIG}.enable_log", _TRACE),
    test="engine/test_unread_texts.py",
)


@contextmanager
def without_unread_texts() -> Iterator[None]:
    """Inside, AOTAutograd traces as with `enable_log=False` what has neither a log nor a cache. A
    torch without these functions stays as it is."""
    if HOOK.missing():
        yield
        return
    module: Any = resolve(_MODULE)
    patches = [patch(module, name, _asking_first(getattr(module, name))) for name in _WRITERS]
    with during(undo_all(*patches)):
        yield


def _asking_first(write: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(write)
    def asking(*arguments: Any, **keywords: Any) -> Any:
        if not _logged():
            arguments = tuple(map(_unlogged, arguments))
            keywords = {name: _unlogged(value) for name, value in keywords.items()}
        return write(*arguments, **keywords)

    return asking


def _logged() -> bool:
    """Whether `TORCH_TRACE` or `TORCH_LOGS` gets these texts."""
    logs: list[Any] = [resolve(f"{_MODULE}:{name}") for name in _LOGS]
    return bool(resolve(_TRACE)) or any(log.isEnabledFor(logging.INFO) for log in logs)


def _unlogged(argument: Any) -> Any:
    config: Any = resolve(_CONFIG)
    if not isinstance(argument, config) or getattr(argument, "cache_info", None) is not None:
        return argument
    return dataclasses.replace(argument, enable_log=False)
