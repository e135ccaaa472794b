"""What a profile needs of torch, hook by hook."""

from __future__ import annotations

from tcw.compiler.control.hooks import Hook
from tcw.compiler.measure.precision import stages
from tcw.compiler.measure.probes import device_clock, eager_probe, kernel_nests

HOOKS: tuple[Hook, ...] = (eager_probe.HOOK, device_clock.HOOK, kernel_nests.HOOK, stages.HOOK)
