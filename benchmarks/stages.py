"""CPU seconds of a compile: in a process of its own, and by the functions that run its stages."""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

Stage = tuple[str, str, str]
"""A stage, the module that calls its function, and the function's name there."""


def cpu_seconds() -> float:
    """Of this process, all threads, and of the children that it waited for."""
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def in_child(file: str, arguments: Sequence[str], environment: dict[str, str]) -> Any:
    """What a benchmark, run once more as `--child`, prints as its last line."""
    done = subprocess.run(
        [sys.executable, file, "--child", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}:\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.splitlines()[-1])


class Stages:
    """The seconds of each stage, with those of the stages below it taken off.

    Functions are patched for good: a process measures once. Seconds of other threads count for the
    stage that the patched functions' thread is in.
    """

    def __init__(self, first: str, stages: Sequence[Stage]) -> None:
        self.spent = dict.fromkeys((first, *(stage for stage, *_ in stages)), 0.0)
        self._open = [first]
        self._last = 0.0
        for stage, module, place in stages:
            holder: Any = importlib.import_module(module)
            *owner, attribute = place.split(".")
            for part in owner:
                holder = getattr(holder, part)
            setattr(holder, attribute, self._counted(stage, getattr(holder, attribute)))

    def start(self) -> None:
        self._last = cpu_seconds()

    def turn(self) -> None:
        """What was spent since the last turn belongs to the innermost open stage."""
        now = cpu_seconds()
        self.spent[self._open[-1]] += now - self._last
        self._last = now

    def _counted(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            self.turn()
            self._open.append(stage)
            try:
                return function(*arguments, **keywords)
            finally:
                self.turn()
                self._open.pop()

        return call
