"""What measurements need of torch besides a recording's hooks, checked before use."""

from __future__ import annotations

from tcw.compiler.control.hooks import Hook
from tcw.compiler.measure.compiled import guard_cost, inductor_graphs
from tcw.compiler.trace.records import HookStatus
from tcw.workbench.worker import backends, forget, results

WHAT_IFS: tuple[Hook, ...] = (backends.HOOK, forget.HOOK, inductor_graphs.HOOK)
"""What timing one run against another needs."""
HOOKS: tuple[Hook, ...] = (*WHAT_IFS, guard_cost.HOOK, results.HOOK)


def statuses() -> tuple[HookStatus, ...]:
    """What this torch offers, by hook. Imports torch."""
    return tuple(hook.check() for hook in HOOKS)


def missing() -> str:
    """Why runs cannot be timed against each other with this torch; "" if they can."""
    return next((reason for hook in WHAT_IFS if (reason := hook.missing())), "")
