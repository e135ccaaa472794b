"""What a profile needs of torch, hook by hook."""

from __future__ import annotations

from compiler.control.hooks import Hook
from compiler.measure.probes import device_clock, eager_probe, nest_clocks

HOOKS: tuple[Hook, ...] = (eager_probe.HOOK, device_clock.HOOK, nest_clocks.HOOK)
