"""The C++ backend's fusion checks, which reject without a reason: exactly which check it was.

torch/_inductor/codegen/cpp.py: `CppScheduling.can_fuse_vertical` and `can_fuse_horizontal` run
last. Both rely on `_can_fuse_horizontal_impl`, whose result is noted here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tcw.compiler.control.hooks import RecordingHook, Uninstall, after_call, patch, undo_all
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.inductor.fusion_attempts import attempts


def install(recorder: Recorder) -> Uninstall:
    from torch._inductor.codegen.cpp import CppScheduling

    same_loops: dict[int, bool] = {}
    """Result of `_can_fuse_horizontal_impl` in the running attempt, by `id` of the attempt."""

    def keep(result: Any, *_: Any, **__: Any) -> None:
        if attempts.stack:
            same_loops[id(attempts.stack[-1])] = bool(result)

    def name(function: str, rule: Callable[[Any, Any, bool | None], str]) -> Uninstall:
        original = getattr(CppScheduling, function)

        def check(self: Any, node1: Any, node2: Any, *args: Any, **kwargs: Any) -> Any:
            if not attempts.stack:
                return original(self, node1, node2, *args, **kwargs)
            attempt = attempts.stack[-1]
            same_loops.pop(id(attempt), None)
            said = attempt.said
            result = original(self, node1, node2, *args, **kwargs)
            known = same_loops.pop(id(attempt), None)
            if not result and attempt.said is said:
                attempt.silent = (rule(node1, node2, known), f"CppScheduling.{function}")
            return result

        return patch(CppScheduling, function, check)

    return undo_all(
        after_call(CppScheduling, "_can_fuse_horizontal_impl", keep),
        name("can_fuse_horizontal", _horizontal),
        name("can_fuse_vertical", _vertical),
    )


def _at_outer_loop(node1: Any, node2: Any) -> bool:
    return any(type(node).__name__ == "OuterLoopFusedSchedulerNode" for node in (node1, node2))


def _horizontal(node1: Any, node2: Any, same_loops: bool | None) -> str:
    if node1.is_template() or node2.is_template():
        return "template"
    if same_loops is None:
        return "max-horizontal"
    return "outer-loop" if _at_outer_loop(node1, node2) else "domain"


def _vertical(node1: Any, node2: Any, same_loops: bool | None) -> str:
    if node1.is_template() or node2.is_template():
        return "template"
    if same_loops:
        return "after-reduction"
    return "outer-loop" if _at_outer_loop(node1, node2) else "domain"


_CPP = "torch._inductor.codegen.cpp:CppScheduling"

HOOK = RecordingHook(
    name="fusion checks of the C++ backend",
    offers="which check of the C++ backend rejected a pair for which Inductor gives no reason",
    needs=(
        f"{_CPP}._can_fuse_horizontal_impl",
        f"{_CPP}.can_fuse_horizontal",
        f"{_CPP}.can_fuse_vertical",
    ),
    install=install,
    stage="fusion",
    test="inductor/test_fusion.py",
)
