"""The stages in order, on one screen: which hooks record each of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compiler.autograd import HOOKS as AUTOGRAD
from compiler.capture import HOOKS as CAPTURE
from compiler.control.hooks import Hook, install_all
from compiler.control.recorder import Recorder
from compiler.control.stages import reached
from compiler.inductor import HOOKS as INDUCTOR
from compiler.trace.records import HookStatus

HOOKS: tuple[Hook, ...] = (*CAPTURE, *AUTOGRAD, *INDUCTOR)


def statuses() -> tuple[HookStatus, ...]:
    """What this torch offers, hook by hook. Imports torch."""
    return tuple(hook.check() for hook in HOOKS)


@contextmanager
def recording(recorder: Recorder) -> Iterator[tuple[HookStatus, ...]]:
    """Every compile inside the block is recorded; torch is as before after it."""
    until = recorder.settings.until
    wanted = [hook for hook in HOOKS if reached(hook.stage, until)]
    installed, uninstall = install_all(wanted, recorder)
    try:
        yield tuple(installed)
    finally:
        uninstall()
