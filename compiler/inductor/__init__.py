"""PyTorch's Inductor, recorded: passes, lowering, fusion, memory, kernels, caches, phases."""

from __future__ import annotations

from compiler.control.hooks import Hook
from compiler.inductor.cached import HOOK as CACHED
from compiler.inductor.codegen import HOOK as CODEGEN
from compiler.inductor.fusion import HOOK as FUSION
from compiler.inductor.fusion_cpp import HOOK as FUSION_CPP
from compiler.inductor.kernel_lines import HOOK as KERNEL_LINES
from compiler.inductor.loop_origins import HOOK as LOOP_ORIGINS
from compiler.inductor.lowering import HOOK as LOWERING
from compiler.inductor.memory import HOOK as MEMORY
from compiler.inductor.replacements import HOOK as REPLACEMENTS
from compiler.inductor.scheduler_nodes import HOOK as SCHEDULER_NODES
from compiler.inductor.until import HOOK as UNTIL

HOOKS: tuple[Hook, ...] = (
    UNTIL,
    REPLACEMENTS,
    LOWERING,
    LOOP_ORIGINS,
    SCHEDULER_NODES,
    FUSION,
    FUSION_CPP,
    MEMORY,
    KERNEL_LINES,
    CODEGEN,
    CACHED,
)
