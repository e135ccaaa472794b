"""PyTorch's Inductor, recorded: passes, lowering, fusion, memory, kernels, caches, phases."""

from __future__ import annotations

from compiler.control.hooks import Hook
from compiler.inductor.fusion import HOOK as FUSION
from compiler.inductor.fusion_cpp import HOOK as FUSION_CPP
from compiler.inductor.scheduler_nodes import HOOK as SCHEDULER_NODES

HOOKS: tuple[Hook, ...] = (
    SCHEDULER_NODES,
    FUSION,
    FUSION_CPP,
)
