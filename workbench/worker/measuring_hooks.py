"""What measurements need of torch beyond a recording's hooks, checked before any of it is used."""

from __future__ import annotations

from compiler.control.hooks import Hook
from compiler.measure.compiled import inductor_graphs
from compiler.trace.records import HookStatus
from workbench.worker import forget

HOOKS: tuple[Hook, ...] = (forget.HOOK, inductor_graphs.HOOK)


def statuses() -> tuple[HookStatus, ...]:
    """What this torch offers, hook by hook. Imports torch."""
    return tuple(hook.check() for hook in HOOKS)


def missing() -> str:
    """Why runs cannot be timed against each other with this torch; "" where they can."""
    return next((one.reason for one in statuses() if not one.available), "")
