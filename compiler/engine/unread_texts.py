"""No texts of AOTAutograd's graphs if nobody reads them.

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

from torch._functorch._aot_autograd import graph_compile
from torch._functorch._aot_autograd.schemas import AOTConfig
from torch._logging._internal import trace_log

from compiler.control.hooks import patch, undo_all

_WRITERS = ("_log_joint_graph", "_log_fw_bw_graphs")
_LOGS = ("aot_joint_log", "aot_graphs_log")


@contextmanager
def unread_texts_unwritten() -> Iterator[None]:
    """Inside, AOTAutograd traces as with `enable_log=False` what has neither a log nor a cache. A
    torch without these functions stays as it is."""
    undo = undo_all(
        [
            patch(graph_compile, name, _asking_first(getattr(graph_compile, name)))
            for name in _WRITERS
            if hasattr(graph_compile, name)
        ]
    )
    try:
        yield
    finally:
        undo()


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
    logs = (getattr(graph_compile, name, None) for name in _LOGS)
    return bool(trace_log.handlers) or any(
        log is None or log.isEnabledFor(logging.INFO) for log in logs
    )


def _unlogged(argument: Any) -> Any:
    if not isinstance(argument, AOTConfig) or getattr(argument, "cache_info", None) is not None:
        return argument
    return dataclasses.replace(argument, enable_log=False)
