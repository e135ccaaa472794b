"""Testing a pair with Inductor's judgement of what pays switched off: is it legal at all?

What is left is what correctness needs: the dependencies (`Scheduler._can_fuse`), cycles, and the
backend's own test. The judgement sits in `InductorChoices.can_fuse*` ("heuristics here should not
be needed for correctness", torch/_inductor/choices.py) and in a few settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from compiler.control.hooks import patch

_SETTINGS = {
    "cpp.max_horizontal_fusion_size": 1 << 30,
    "triton.tiling_prevents_pointwise_fusion": False,
    "triton.tiling_prevents_reduction_fusion": False,
}


class _Lenient:
    """torch's choices (or the user's), with yes to every question whether a fusion pays."""

    def __init__(self, choices: Any) -> None:
        self._choices = choices

    def __getattr__(self, name: str) -> Any:
        return getattr(self._choices, name)

    def can_fuse(self, *_args: Any, **_kwargs: Any) -> bool:
        return True

    can_fuse_vertical = can_fuse_horizontal = can_fuse


@contextmanager
def judgement_off(scheduler: Any) -> Iterator[None]:
    """Inside the block `scheduler.can_fuse` says whether a fusion is legal, not whether it pays."""
    from torch._inductor import config
    from torch._inductor.virtualized import V

    with ExitStack() as stack:
        stack.enter_context(V.set_choices_handler(_Lenient(V.choices)))
        stack.enter_context(config.patch(_SETTINGS))
        memory = getattr(scheduler, "_fusion_memory_state", None)  # torch 2.15
        if memory is not None:
            stack.callback(patch(memory, "peak_limit", float("inf")))
        yield


class LoopStates:
    """The loops of two nodes as they are now: a test of Inductor may reorder them.

    torch takes its changes back where the answer is no (`_LoopMutationTracker`, since 2.13); where
    the answer is overruled, that is ours to do. Before 2.13 torch leaves them changed either way.
    """

    def __init__(self, *nodes: Any) -> None:
        import torch._inductor.scheduler as scheduler

        tracker = getattr(scheduler, "_LoopMutationTracker", None)
        self._nodes = nodes
        self._new: Callable[[], Any] | None = None if tracker is None else self._watch(tracker)
        self._tracker = self._new() if self._new is not None else None

    def _watch(self, tracker: Any) -> Callable[[], Any]:
        return lambda: tracker.create(self._nodes)

    def again(self) -> None:
        """Put them back, and watch on."""
        self.end(keep=False)
        self._tracker = self._new() if self._new is not None else None

    def end(self, *, keep: bool) -> None:
        """Leave them as they are now, or put them back."""
        tracker, self._tracker = self._tracker, None
        if tracker is not None:
            tracker.finish(rollback=not keep)
