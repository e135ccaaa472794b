"""AOTAutograd, recorded: joint, forward and backward graphs, what is saved and why."""

from __future__ import annotations

from tcw.compiler.autograd import autograd_graphs, failed_cut, partition
from tcw.compiler.control.hooks import RecordingHook

HOOKS: tuple[RecordingHook, ...] = (failed_cut.HOOK, autograd_graphs.HOOK, partition.HOOK)
