"""Hooks of modules that the compiled function registers or removes."""

from __future__ import annotations

import ast

from tcw.compiler.capture.advice.broken import Advised, Broken
from tcw.compiler.trace.records import Advice

REGISTERS = frozenset({
    "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook",
    "register_full_backward_pre_hook", "register_module_forward_hook",
})  # fmt: skip
HANDLE = "RemovableHandle"


def advise(broken: Broken) -> Advised:
    if HANDLE not in broken.context + broken.type and not _registers(broken.statement):
        return ()
    return (
        Advice(
            text="Register the hook once, before the first compiled call, and let it write to what "
            "the module keeps: torch cannot add or remove a hook in the compiled function"
        ),
        Advice(text="Or use the inner module's result itself, where it is called, without a hook"),
    )


def _registers(statement: ast.stmt | None) -> bool:
    return statement is not None and any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in REGISTERS
        for node in ast.walk(statement)
    )
