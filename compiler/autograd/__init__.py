"""AOTAutograd, recorded: joint, forward and backward graphs, what is saved and why."""

from __future__ import annotations

from tcw.compiler.autograd import failed_cut, graphs, partition
from tcw.compiler.control.hooks import RecordingHook

HOOKS: tuple[RecordingHook, ...] = (failed_cut.HOOK, graphs.HOOK, partition.HOOK)
