"""Testing a pair with Inductor's profitability heuristics switched off: is it legal at all?

What remains is needed for correctness: the dependencies (`Scheduler._can_fuse`), cycles, and the
backend's own test. The heuristics are in `InductorChoices.can_fuse*` ("heuristics here should not
be needed for correctness", torch/_inductor/choices.py) and in a few settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from tcw.compiler.control.hooks import patch

_SETTINGS = {
    "cpp.max_horizontal_fusion_size": 1 << 30,
    "triton.tiling_prevents_pointwise_fusion": False,
    "triton.tiling_prevents_reduction_fusion": False,
}


class _Lenient:
    """torch's choices (or the user's), except that every fusion counts as profitable."""

    def __init__(self, choices: Any) -> None:
        self._choices = choices

    def __getattr__(self, name: str) -> Any:
        return getattr(self._choices, name)

    def can_fuse(self, *_args: Any, **_kwargs: Any) -> bool:
        return True

    can_fuse_vertical = can_fuse_horizontal = can_fuse


@contextmanager
def heuristics_off(scheduler: Any) -> Iterator[None]:
    """Inside the block, `scheduler.can_fuse` tests legality, not profitability."""
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
    """The current loops of two nodes, which Inductor's test may reorder.

    torch rolls its changes back if the test fails (`_LoopMutationTracker`, since 2.13). If the
    result is overridden, we have to. Before 2.13 torch leaves the loops changed either way.
    """

    def __init__(self, *nodes: Any) -> None:
        import torch._inductor.scheduler as scheduler

        tracker = getattr(scheduler, "_LoopMutationTracker", None)
        self._new = (lambda: None) if tracker is None else partial(tracker.create, nodes)
        self._tracker = self._new()

    def again(self) -> None:
        """Restore the loops, and start tracking again."""
        self.end(keep=False)
        self._tracker = self._new()

    def end(self, *, keep: bool) -> None:
        """Keep the loops as they are now, or restore them."""
        tracker, self._tracker = self._tracker, None
        if tracker is not None:
            tracker.finish(rollback=not keep)
