"""What a function runs that torch left to Python: the operations of an eager call outside of all
functions that have compiled code, by the function that torch gave up on.

A skipped frame takes the functions that it calls along, and a graph break inside of what
`torch.utils.checkpoint` calls leaves all of that to Python; but torch compiles what else is called
there by itself, so the source does not say what runs eagerly.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, FrameType
from typing import Any

from tcw.compiler.capture.cache_entries import codes_with_entries
from tcw.compiler.measure.probes.eager_probe import ModeOfAll, composite, marks
from tcw.compiler.measure.probes.sites import caller
from tcw.compiler.trace.records import EagerShare, Location


def eager_shares(
    call: int, run: Callable[[], object], wanted: Sequence[tuple[str, Location]]
) -> Iterator[EagerShare]:
    """Make the call in eager, once. `wanted`: functions that torch may have left to Python."""
    mode = _ByFunction(wanted, frozenset(codes_with_entries()))
    with mode:
        run()
    whole = sum(mode.ns.values())
    for index, operations in mode.operations.items():
        function, location = wanted[index]
        share = mode.ns[index] / whole if whole else 0.0
        yield EagerShare(
            call=call, function=function, location=location, share=min(share, 1.0),
            operations=tuple(name for name, _ in operations.most_common()),
            count=operations.total(),
        )  # fmt: skip


class _ByFunction(ModeOfAll):
    """Sums operations by the wanted function that runs them."""

    def __init__(
        self, wanted: Sequence[tuple[str, Location]], compiled: frozenset[CodeType]
    ) -> None:
        super().__init__()
        self._wanted, self._compiled = wanted, compiled
        self._of: dict[CodeType, int | None] = {}
        self.ns: dict[int | None, int] = defaultdict(int)
        """Nanoseconds by index in `wanted`; None for all others."""
        self.operations: dict[int, Counter[str]] = defaultdict(Counter)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        if marks(func) or getattr(func, "is_view", False):
            return func(*args, **given)
        if composite(func):
            with self:
                return func.decompose(*args, **given)
        start = time.perf_counter_ns()
        result = func(*args, **given)
        took = time.perf_counter_ns() - start
        index = self._function(caller())
        self.ns[index] += took
        if index is not None:
            self.operations[index][str(func)] += 1
        return result

    def _function(self, frame: FrameType | None) -> int | None:
        """Index of the innermost wanted function, unless a compiled one is further inside."""
        while frame is not None:
            code = frame.f_code
            if code in self._compiled:
                return None
            if code not in self._of:
                self._of[code] = self._index(code)
            if (found := self._of[code]) is not None:
                return found
            frame = frame.f_back
        return None

    def _index(self, code: CodeType) -> int | None:
        last = max((line for _, _, line in code.co_lines() if line), default=0)
        for index, (function, location) in enumerate(self._wanted):
            inside = code.co_firstlineno <= location.line <= last
            if code.co_filename == location.file and code.co_name == function and inside:
                return index
        return None
