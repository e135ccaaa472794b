"""Fusion: every pair that the scheduler considers, with its verdict and reason, and the groups.

torch/_inductor/scheduler.py tests a pair up to twice a round: when it screens all pairs that share
a buffer (`get_possible_fusions`), and again before it commits to one (`_try_fusion_pairs`), since
an earlier fusion may have changed either side. `can_fuse` gives the verdict, `WhyNoFuse` the
reason, `score_fusion_memory` the shared bytes that it worked with; nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compiler.control.hooks import Hook, Uninstall, patch, undo_all
from compiler.control.recorder import Recorder
from compiler.control.safely import Safely
from compiler.inductor.fusion_attempts import Attempt, Fusion, fusions, running
from compiler.inductor.lowerings import lowering_of
from compiler.inductor.scheduler_nodes import group_of
from compiler.trace.records import FusionGroups, FusionRound


def install(recorder: Recorder) -> Uninstall:
    import torch._inductor.scheduler as scheduler

    owner = scheduler.Scheduler
    safely = Safely(recorder, HOOK.name)
    undo = [
        patch(owner, "can_fuse", _can_fuse(owner.can_fuse, recorder, safely)),
        patch(owner, "score_fusion_memory", _shared(owner.score_fusion_memory)),
        patch(owner, "score_fusion_key", _score(owner.score_fusion_key)),
        patch(owner, "get_possible_fusions", _screen(owner.get_possible_fusions, recorder, safely)),
        patch(owner, "fuse_nodes_once", _round(owner.fuse_nodes_once, recorder, safely)),
        patch(owner, "fuse_two_nodes", _fuse(owner.fuse_two_nodes, recorder, safely)),
        patch(owner, "will_fusion_create_cycle", _cycle(owner.will_fusion_create_cycle)),
        patch(owner, "__init__", _groups(owner.__init__, recorder, safely)),
        patch(scheduler.WhyNoFuse, "__call__", _why(scheduler.WhyNoFuse.__call__)),
    ]

    return undo_all(undo)


def _fusion(recorder: Recorder, scheduler: Any) -> Fusion:
    found = fusions.get(scheduler)
    if found is None or found.recorder is not recorder:
        from torch._inductor.virtualized import V

        found = fusions[scheduler] = Fusion(recorder, lowering_of(recorder, V.graph))
    return found


def _depends(first: Any, second: Any) -> bool:
    """Whether `second` comes after `first` in the data flow: Inductor's own test of vertical."""
    ancestors = second.ancestors
    return bool(ancestors) and any(name in ancestors for name in first.get_operation_names())


def _can_fuse(
    original: Callable[..., bool], recorder: Recorder, safely: Safely
) -> Callable[..., bool]:
    def can_fuse(self: Any, node1: Any, node2: Any, *args: Any, **kwargs: Any) -> bool:
        attempt = safely(_begin, recorder, self, node1, node2)
        if attempt is None:
            return original(self, node1, node2, *args, **kwargs)
        running.stack.append(attempt)
        try:
            answer = original(self, node1, node2, *args, **kwargs)
        finally:
            running.stack.remove(attempt)
        attempt.fused = bool(answer)
        safely(_settle, _fusion(recorder, self), self, node1, node2, attempt)
        return answer

    return can_fuse


def _begin(recorder: Recorder, scheduler: Any, node1: Any, node2: Any) -> Attempt:
    outer = running.stack[-1] if running.stack else None
    fusion = _fusion(recorder, scheduler)
    if outer is None:
        fusion.write_last()
    attempt = Attempt(node1.get_name(), node2.get_name(), _depends(node1, node2), outer)
    fusion.id_of(attempt.first, attempt.second)
    return attempt


def _settle(fusion: Fusion, scheduler: Any, node1: Any, node2: Any, attempt: Attempt) -> None:
    """Write a rejected pair now; a pair that may fuse waits for its score or its fate."""
    if attempt.fused:
        attempt.said = attempt.silent = None
        if attempt.outer is not None:
            fusion.write(attempt)
        elif fusion.phase == "screen":
            fusion.screened[id(node1), id(node2)] = attempt
        else:
            running.last = attempt
        return
    if attempt.said is None and attempt.silent is None and not attempt.cycle:
        attempt.silent = _silent(scheduler, node1, node2, attempt)
    if attempt.outer is not None:
        attempt.outer.rejected_member = fusion.id_of(attempt.first, attempt.second)
    fusion.write(attempt)


def _silent(scheduler: Any, node1: Any, node2: Any, attempt: Attempt) -> tuple[str, str] | None:
    """The check of `Scheduler._can_fuse` that answers no without a reason, where it is certain."""
    function = "Scheduler.can_fuse"
    if node1 is node2:
        return "already-fused", function
    streams = getattr(scheduler, "node_to_stream", {})
    first, second = streams.get(node1), streams.get(node2)
    if first is not None and second is not None and first != second:
        return "stream", function
    kinds = {type(node1).__name__, type(node2).__name__}
    if attempt.rejected_member:
        return None
    if "FusedNestedReductions" in kinds:
        return "nested-reduction", function
    if "FusedMixOrderReductions" in kinds:
        return "mix-order", function
    return None


def _why(original: Callable[..., None]) -> Callable[..., None]:
    def why(self: Any, reason: str, *args: Any) -> None:
        attempt = running.stack[-1] if running.stack else running.last
        if attempt is not None:
            attempt.said = (reason, args)
            attempt.silent = None
        original(self, reason, *args)

    return why


def _shared(original: Callable[..., Any]) -> Callable[..., Any]:
    def score_fusion_memory(self: Any, *args: Any, **kwargs: Any) -> Any:
        answer = original(self, *args, **kwargs)
        if running.stack and kwargs.get("count_bytes", True) and len(args) == 2:
            if isinstance(answer, tuple):
                running.stack[-1].mixed = len(answer) > 2 and bool(answer[2])
            elif isinstance(answer, int):
                running.stack[-1].shared = answer
        return answer

    return score_fusion_memory


def _score(original: Callable[..., Any]) -> Callable[..., Any]:
    def score_fusion_key(self: Any, nodes: Any) -> Any:
        answer = original(self, nodes)
        fusion = fusions.get(self)
        if fusion is not None:
            attempt = fusion.screened.get((id(nodes[0]), id(nodes[1])))
            if attempt is not None:
                attempt.score = answer
        return answer

    return score_fusion_key


def _screen(original: Callable[..., Any], recorder: Recorder, safely: Safely) -> Callable[..., Any]:
    def get_possible_fusions(self: Any, *args: Any, **kwargs: Any) -> Any:
        fusion = safely(_fusion, recorder, self)
        if fusion is None:
            return original(self, *args, **kwargs)
        fusion.phase = "screen"
        try:
            return original(self, *args, **kwargs)
        finally:
            fusion.phase = "commit"
            safely(fusion.write_screened)

    return get_possible_fusions


def _round(original: Callable[..., Any], recorder: Recorder, safely: Safely) -> Callable[..., Any]:
    def fuse_nodes_once(self: Any, nodes: Any, *args: Any, **kwargs: Any) -> Any:
        fusion = safely(_fusion, recorder, self)
        if fusion is None:
            return original(self, nodes, *args, **kwargs)
        fusion.round += 1
        fusion.fused.clear()
        before = len(nodes)
        after = original(self, nodes, *args, **kwargs)
        safely(fusion.write_last)
        recorder.emit(
            FusionRound(
                graph=fusion.lowering.id,
                round=fusion.round,
                nodes_before=before,
                nodes_after=len(after),
                fused=tuple(fusion.fused),
            )
        )
        return after

    return fuse_nodes_once


def _fuse(original: Callable[..., Any], recorder: Recorder, safely: Safely) -> Callable[..., Any]:
    def keep(scheduler: Any, first: Any, second: Any, fused: Any) -> None:
        names = (first.get_name(), second.get_name(), fused.get_name())
        _fusion(recorder, scheduler).fused.append(names)

    def fuse_two_nodes(self: Any, node1: Any, node2: Any, *args: Any, **kwargs: Any) -> Any:
        answer = original(self, node1, node2, *args, **kwargs)
        safely(keep, self, node1, node2, answer)
        return answer

    return fuse_two_nodes


def _cycle(original: Callable[..., bool]) -> Callable[..., bool]:
    def will_fusion_create_cycle(self: Any, *args: Any, **kwargs: Any) -> bool:
        answer = original(self, *args, **kwargs)
        if answer:
            attempt = running.stack[-1] if running.stack else running.last
            if attempt is not None:
                attempt.cycle = True
        return answer

    return will_fusion_create_cycle


def _groups(
    original: Callable[..., None], recorder: Recorder, safely: Safely
) -> Callable[..., None]:
    def write(scheduler: Any) -> None:
        lowering = _fusion(recorder, scheduler).lowering
        groups = tuple(group_of(node, lowering) for node in scheduler.nodes)
        recorder.emit(FusionGroups(graph=lowering.id, groups=groups))

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        safely(write, self)

    return init


_SCHEDULER = "torch._inductor.scheduler:Scheduler"

HOOK = Hook(
    name="fusion",
    offers="every pair that the scheduler considered, its verdict and reason, and the final groups",
    needs=(
        f"{_SCHEDULER}.can_fuse",
        f"{_SCHEDULER}.score_fusion_memory",
        f"{_SCHEDULER}.score_fusion_key",
        f"{_SCHEDULER}.get_possible_fusions",
        f"{_SCHEDULER}.fuse_nodes_once",
        f"{_SCHEDULER}.fuse_two_nodes",
        f"{_SCHEDULER}.will_fusion_create_cycle",
        "torch._inductor.scheduler:WhyNoFuse.__call__",
    ),
    install=install,
    stage="fusion",
    tried_on=("2.11.0", "2.12.0", "2.13.0", "2.14.0", "2.15.0"),
)
