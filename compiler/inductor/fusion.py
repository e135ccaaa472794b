"""Fusion: every pair that the scheduler considers, with verdict and reason, and the final groups.

torch/_inductor/scheduler.py tests a pair up to twice per round. It screens all pairs that share a
buffer (`get_possible_fusions`), and tests one again before it commits to it (`_try_fusion_pairs`),
since an earlier fusion may have changed either side. `can_fuse` gives the verdict, `WhyNoFuse` the
reason, and `score_fusion_memory` the shared bytes. Nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tcw.compiler.control.hooks import (
    RecordingHook,
    Uninstall,
    after_call,
    around_call,
    before_call,
    during,
    patch,
    undo_all,
)
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.engine.recording import current as listening
from tcw.compiler.inductor.forced_fusion import LoopStates, heuristics_off
from tcw.compiler.inductor.fusion_attempts import Attempt, InductorFusion, attempts, fusions
from tcw.compiler.inductor.fusion_names import names_between
from tcw.compiler.inductor.fusion_overrides import Overruling
from tcw.compiler.inductor.fusion_rules import rule_of
from tcw.compiler.inductor.lowered_graphs import lowering_of
from tcw.compiler.inductor.scheduler_nodes import group_of
from tcw.compiler.inductor.shared_buffers import shared_words
from tcw.compiler.protocol.decision import MOST_BETWEEN
from tcw.compiler.trace.records import FusionGroups, FusionRound


def install(recorder: Recorder) -> Uninstall:
    import torch._inductor.scheduler as scheduler

    owner = scheduler.Scheduler
    safely = Safely(recorder, HOOK.name, even_quiet=True)
    return undo_all(
        patch(owner, "can_fuse", _can_fuse(owner.can_fuse, recorder, safely)),
        after_call(owner, "score_fusion_memory", _shared),
        after_call(owner, "score_fusion_key", _score),
        patch(owner, "get_possible_fusions", _screen(owner.get_possible_fusions, recorder, safely)),
        around_call(owner, "fuse_nodes_once", partial(_round, recorder, safely)),
        around_call(owner, "fuse_two_nodes", partial(_fuse, recorder, safely)),
        after_call(owner, "will_fusion_create_cycle", _cycle),
        after_call(owner, "__init__", safely.guarded(_groups, recorder)),
        before_call(scheduler.WhyNoFuse, "__call__", _why),
    )


def _fusion(recorder: Recorder, scheduler: Any) -> InductorFusion:
    fusion = fusions.get(scheduler)
    if fusion is None or fusion.recorder is not recorder:
        from torch._inductor.virtualized import V

        lowering = lowering_of(recorder, V.graph)
        fusion = fusions[scheduler] = InductorFusion(
            recorder, lowering, Overruling(lowering, listening().gate)
        )
    return fusion


def _asleep(recorder: Recorder) -> bool:
    """Whether there is nothing to record and nothing to override."""
    return recorder.quiet and not listening().gate.overrides


def _depends(first: Any, second: Any) -> bool:
    """Whether `second` depends on `first`: Inductor's own test for a vertical fusion."""
    ancestors = second.ancestors
    return bool(ancestors) and any(name in ancestors for name in first.get_operation_names())


def _can_fuse(
    original: Callable[..., bool], recorder: Recorder, safely: Safely
) -> Callable[..., bool]:
    def can_fuse(self: Any, node1: Any, node2: Any, *args: Any, **kwargs: Any) -> bool:
        attempt = None if _asleep(recorder) else safely(_begin, recorder, self, node1, node2)
        if attempt is None:
            return original(self, node1, node2, *args, **kwargs)
        fusion = _fusion(recorder, self)
        decides = (
            attempt.outer is None
            and node1 is not node2
            and not fusion.fusing
            and not fusion.overruling.idle
        )
        loops = LoopStates(node1, node2) if decides else None

        def test(attempt: Attempt) -> None:
            attempts.stack.append(attempt)
            try:
                attempt.fused = bool(original(self, node1, node2, *args, **kwargs))
            finally:
                attempts.stack.remove(attempt)
            if not attempt.fused:
                safely(_unsaid, fusion, self, node1, node2, attempt)

        def retest() -> Attempt:
            """Repeat the test from the same loops with Inductor's heuristics switched off."""
            assert loops is not None
            loops.again()
            again = Attempt(attempt.id, attempt.first, attempt.second, attempt.vertical, None)
            with heuristics_off(self):
                test(again)
            attempts.stack.append(again)
            try:
                if again.fused and self.will_fusion_create_cycle(node1, node2):
                    again.fused = False
            finally:
                attempts.stack.remove(again)
            return again

        try:
            test(attempt)
            if decides:
                names = fusion.pair(node1, node2)
                safely(fusion.overruling.consider, names, node1, node2, attempt, retest)
        finally:
            if loops is not None:
                loops.end(keep=attempt.fused)
        safely(_settle, fusion, node1, node2, attempt)
        return attempt.fused

    return can_fuse


def _begin(recorder: Recorder, scheduler: Any, node1: Any, node2: Any) -> Attempt:
    outer = attempts.stack[-1] if attempts.stack else None
    fusion = _fusion(recorder, scheduler)
    if outer is None:
        fusion.write_last()
    id = fusion.id_of(node1, node2)
    return Attempt(id, node1.get_name(), node2.get_name(), _depends(node1, node2), outer)


def _unsaid(
    fusion: InductorFusion, scheduler: Any, node1: Any, node2: Any, attempt: Attempt
) -> None:
    """Complete the reason of a rejection that Inductor left out, or gave without names."""
    if attempt.said is not None:
        rule = rule_of(attempt.said[0])
        if rule in ("no-shared-data", "indexing-mismatch"):
            attempt.shares = shared_words(node1, node2)
        elif rule == "between":
            most = MOST_BETWEEN + 1
            attempt.between = names_between(scheduler, node1, node2, fusion.lowering, most)
    elif attempt.silent is None and not attempt.cycle:
        attempt.silent = _silent(scheduler, node1, node2, attempt)


def _settle(fusion: InductorFusion, node1: Any, node2: Any, attempt: Attempt) -> None:
    """Write a rejected pair now; a pair that may fuse waits for its score or outcome."""
    if attempt.fused:
        attempt.said = attempt.silent = None
        if attempt.outer is not None:
            fusion.write(attempt)
        elif fusion.phase == "screen":
            fusion.screened[id(node1), id(node2)] = attempt
        else:
            attempts.last = attempt
        return
    if attempt.outer is not None:
        attempt.outer.rejected_member = attempt.id
    fusion.write(attempt)


def _silent(scheduler: Any, node1: Any, node2: Any, attempt: Attempt) -> tuple[str, str] | None:
    """The check of `Scheduler._can_fuse` that rejected without a reason, if it is certain."""
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


def _why(_self: Any, reason: str, *args: Any) -> None:
    attempt = attempts.stack[-1] if attempts.stack else attempts.last
    if attempt is not None:
        attempt.said = (reason, args)
        attempt.silent = None


def _shared(found: Any, scheduler: Any, *args: Any, **kwargs: Any) -> None:
    if attempts.stack and kwargs.get("count_bytes", True) and len(args) == 2:
        if isinstance(found, tuple):
            attempts.stack[-1].mixed = len(found) > 2 and bool(found[2])
        elif isinstance(found, int):
            attempts.stack[-1].shared = found


def _score(found: Any, scheduler: Any, nodes: Any) -> None:
    fusion = fusions.get(scheduler)
    if fusion is not None:
        attempt = fusion.screened.get((id(nodes[0]), id(nodes[1])))
        if attempt is not None:
            attempt.score = found


def _screen(original: Callable[..., Any], recorder: Recorder, safely: Safely) -> Callable[..., Any]:
    def get_possible_fusions(self: Any, nodes: Any, *args: Any, **kwargs: Any) -> Any:
        fusion = None if _asleep(recorder) else safely(_fusion, recorder, self)
        if fusion is None:
            return original(self, nodes, *args, **kwargs)
        fusion.phase = "screen"
        try:
            found = original(self, nodes, *args, **kwargs)
            return safely(_with_forced, fusion, self, nodes, found, args, kwargs) or found
        finally:
            fusion.phase = "commit"
            safely(fusion.write_screened)

    return get_possible_fusions


def _with_forced(
    fusion: InductorFusion,
    scheduler: Any,
    nodes: Any,
    found: list[tuple[Any, Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> list[tuple[Any, Any]]:
    """The pairs that Inductor tries in this round, forced ones first: Inductor tests only pairs
    that touch a common buffer, and another fusion might get in first."""
    forced: list[tuple[Any, Any]] = []
    there = {(id(one), id(two)): (one, two) for one, two in found}
    for override in fusion.overruling.forced():
        for one, two in override.pairs(nodes):
            if one.get_operation_names() & two.ancestors or not (
                two.get_operation_names() & one.ancestors
            ):
                pair = (one, two)
            else:
                pair = (two, one)
            tested = (id(pair[0]), id(pair[1])) in there
            if tested or scheduler.can_fuse(*pair, *args, **kwargs):
                forced.append(pair)
    first = {(id(one), id(two)) for one, two in forced}
    return [*forced, *(pair for pair in found if (id(pair[0]), id(pair[1])) not in first)]


@contextmanager
def _round(
    recorder: Recorder, safely: Safely, scheduler: Any, *_: Any, **__: Any
) -> Iterator[None]:
    fusion = None if _asleep(recorder) else safely(_fusion, recorder, scheduler)
    if fusion is None:
        yield
        return
    fusion.round += 1
    fusion.fused.clear()
    yield
    safely(fusion.write_last)
    if not recorder.quiet:
        graph, fused = fusion.lowering.id, tuple(fusion.fused)
        recorder.emit(FusionRound(graph=graph, round=fusion.round, fused=fused))


@contextmanager
def _fuse(
    recorder: Recorder, safely: Safely, scheduler: Any, node1: Any, node2: Any, *_: Any, **__: Any
) -> Iterator[Callable[[Any], object] | None]:
    fusion = None if _asleep(recorder) else safely(_fusion, recorder, scheduler)
    if fusion is None:
        yield None
        return
    fused = fusion.fused

    def keep(result: Any) -> None:
        fused.append((node1.get_name(), node2.get_name(), result.get_name()))

    with during(patch(fusion, "fusing", True)):
        yield safely.guarded(keep)


def _nests(node: Any) -> list[set[str]]:
    """The scheduler nodes of each loop nest of a final node; a list of kernels has several."""
    apart = node.is_foreach() or type(node).__name__ == "GroupedSchedulerNode"
    parts = node.snodes if apart else [node]
    return [{member.get_name() for member in part.get_nodes()} for part in parts]


def _cycle(found: bool, *_: Any, **__: Any) -> None:
    attempt = attempts.stack[-1] if attempts.stack else attempts.last
    if found and attempt is not None:
        attempt.cycle = True


def _groups(recorder: Recorder, _result: None, scheduler: Any, *_: Any, **__: Any) -> None:
    if _asleep(recorder):
        return
    fusion = _fusion(recorder, scheduler)
    lowering = fusion.lowering
    if not fusion.overruling.idle:
        fusion.overruling.finish([nest for node in scheduler.nodes for nest in _nests(node)])
    groups = tuple(group_of(node, lowering) for node in scheduler.nodes)
    if not recorder.quiet:
        recorder.emit(FusionGroups(graph=lowering.id, groups=groups))


_SCHEDULER = "torch._inductor.scheduler:Scheduler"

HOOK = RecordingHook(
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
    test="inductor/test_fusion.py",
)
