"""The time of one check of a compiled frame's guards, by torch's own measurement.

`CheckFunctionManager` (torch/_dynamo/guards.py) measures its guards once after building them, with
`profile_guard_manager` on the locals of the call. It empties the caches before each check, as a
call that works on much memory does. Here that measurement is repeated, and the checks are also made
with warm caches, as in short repeated calls. All this happens at that moment, because later nothing
holds those locals.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from tcw.compiler.capture.compile_guards import CHECKS, warm_checks
from tcw.compiler.control.hooks import Hook, after_call, during
from tcw.compiler.graphs.current import current_compile_id
from tcw.compiler.measure.rounds.noise import timed
from tcw.compiler.trace.records import Timed

HOOK = Hook(
    name="guard cost",
    offers="profile: how long each frame's guards take to check",
    needs=(
        "torch._dynamo.guards:profile_guard_manager",
        "torch._dynamo.guards:CheckFunctionManager",
        "torch._guards:CompileContext.current_compile_id",
    ),
    test="measure/compiled/test_guard_cost.py",
)

_SECONDS = 0.2
"""Time for all measurements of one frame's guards with cold caches."""
_WARM_SECONDS = 0.02
"""The same with warm ones."""
_LEAST, _MOST = 5, 60
"""Minimum and maximum number of measurements."""


@dataclass
class GuardCosts:
    """Compile id -> time of a check of its guards."""

    found: dict[str, Timed] = field(default_factory=dict)
    """With cold caches."""
    warm: dict[str, Timed] = field(default_factory=dict)
    missing: str = ""
    """Why nothing is measured; "" if it is."""


@contextmanager
def guard_costs() -> Iterator[GuardCosts]:
    """The guard costs of all frames compiled inside the block."""
    costs = GuardCosts(missing=HOOK.missing())
    if costs.missing:
        yield costs
        return
    from torch._dynamo import guards as torch_guards

    original = torch_guards.profile_guard_manager

    def profiled(_latency: float, root: Any, scope: Any, *_: Any, **__: Any) -> None:
        try:
            name = current_compile_id()
            costs.found[name] = _measured(original, root, scope)
            costs.warm[name] = _warm(root, scope, costs.found[name].median)
        except Exception as error:  # our measurement must never break the user's compile
            costs.missing = f"{type(error).__name__}: {str(error)[:200]}"

    with during(after_call(torch_guards, "profile_guard_manager", profiled)):
        yield costs


def _measured(profile: Any, root: Any, scope: Any) -> Timed:
    """Seconds of one check: the median of several measurements, each of which empties the caches:
    milliseconds."""
    found: list[float] = []
    end = perf_counter() + _SECONDS
    while len(found) < _LEAST or (len(found) < _MOST and perf_counter() < end):
        found.append(float(profile(root, scope, CHECKS)) * 1e-6)
    return timed(found)


def _warm(root: Any, scope: Any, cold: float) -> Timed:
    """Seconds of one check with warm caches: checks in sequence."""
    count = max(_LEAST, min(_MOST, int(_WARM_SECONDS / max(cold * CHECKS, 1e-7))))
    return timed(warm_checks(root, scope, count))
