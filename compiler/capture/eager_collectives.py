"""Collective operations that the program starts outside compiled graphs.

`torch.distributed` and FSDP2 start each through a method of `ProcessGroup`; what DDP's reducer
starts in C++ is not seen here, `DdpBuckets` has its buckets. A training loop starts the same ones
in each step: of each (operation, sizes, line), the first are recorded, then the 32nd, the 64th, ….
"""

from __future__ import annotations

import functools
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch

from tcw.compiler.control.hooks import RecordingHook, Uninstall, patch, undo_all
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.lines import outside_torch
from tcw.compiler.graphs.tensors import tensor_meta
from tcw.compiler.trace.records import EagerCollective, Location

METHODS = {
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce_coalesced",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "allgather": "all_gather",
    "allgather_coalesced": "all_gather_coalesced",
    "_allgather_base": "all_gather_into_tensor",
    "all_gather_single": "all_gather_into_tensor",
    "allgather_into_tensor_coalesced": "all_gather_into_tensor_coalesced",
    "all_gather_single_coalesced": "all_gather_into_tensor_coalesced",
    "reduce_scatter": "reduce_scatter",
    "_reduce_scatter_base": "reduce_scatter_tensor",
    "reduce_scatter_single": "reduce_scatter_tensor",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_tensor_coalesced",
    "reduce_scatter_single_coalesced": "reduce_scatter_tensor_coalesced",
    "alltoall": "all_to_all",
    "alltoall_base": "all_to_all_single",
    "all_to_all_single": "all_to_all_single",
    "gather": "gather",
    "scatter": "scatter",
    "barrier": "barrier",
}
"""Methods of `ProcessGroup`, which not every torch has, and the names in `torch.distributed`."""
UNEVEN = ("gather", "scatter")
"""Operations to which ranks give different tensors."""
EACH = 16
"""At most this many of the same operation at the same line are recorded, then each 2^n-th."""
_DEEPEST = 60


@dataclass
class _Seen:
    """The operations of one recording so far."""

    total: int = 0
    counts: dict[Hashable, int] = field(default_factory=lambda: defaultdict(int))
    lock: threading.Lock = field(default_factory=threading.Lock)

    def tell(self, key: Hashable) -> tuple[int, int]:
        """How many there were in all, and of these."""
        with self.lock:
            self.total += 1
            self.counts[key] += 1
            return self.total, self.counts[key]


def install(recorder: Recorder) -> Uninstall:
    from torch._C._distributed_c10d import ProcessGroup
    from torch._dynamo.eval_frame import set_eval_frame, skip_code

    safely = Safely(recorder, HOOK.name)
    seen = _Seen()

    def told(operation: str, group: Any, arguments: tuple[Any, ...], frame: FrameType) -> None:
        tensors = () if operation in UNEVEN else tuple(_tensors(arguments))
        caller = _user_frame(frame)
        key = (
            operation,
            tuple((tensor.shape, tensor.dtype) for tensor in tensors),
            (caller.f_code, caller.f_lineno) if caller is not None else None,
        )
        number, count = seen.tell(key)
        if count > EACH and count & (count - 1):
            return
        recorder.emit(
            EagerCollective(
                operation=operation,
                tensors=tuple(filter(None, (tensor_meta(tensor.detach()) for tensor in tensors))),
                ranks=int(group.size()),
                group=str(group.group_name),
                number=number,
                count=count,
                location=_location(caller, recorder),
                call=recorder.call,
            )
        )

    def counted(original: Callable[..., Any], operation: str) -> Callable[..., Any]:
        def start(self: Any, *args: Any, **kwargs: Any) -> Any:
            before = set_eval_frame(None)  # or Dynamo, where it is active, would compile our code
            try:
                safely(told, operation, self, args, sys._getframe(1))
            finally:
                set_eval_frame(before)
            return original(self, *args, **kwargs)

        functools.update_wrapper(start, original)
        skip_code(start.__code__)
        return start

    return undo_all(
        *(
            patch(ProcessGroup, name, counted(getattr(ProcessGroup, name), operation))
            for name, operation in METHODS.items()
            if hasattr(ProcessGroup, name)
        )
    )


def _tensors(arguments: tuple[Any, ...]) -> list[torch.Tensor]:
    """The tensors that this rank gives: if there are two arguments, the first has the outputs."""
    given = [
        argument for argument in arguments[:2] if isinstance(argument, (torch.Tensor, list, tuple))
    ]
    found: list[torch.Tensor] = []
    _collect(given[-1:], found)
    return found[:64]


def _collect(value: Any, found: list[torch.Tensor]) -> None:
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for one in value:
            _collect(one, found)


def _user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the program; deprecated functions of torch run in one of
    typing_extensions."""
    for _ in range(_DEEPEST):
        if frame is None:
            return None
        file = frame.f_code.co_filename
        if outside_torch(file) and not file.endswith("typing_extensions.py"):
            return frame
        frame = frame.f_back
    return None


def _location(frame: FrameType | None, recorder: Recorder) -> Location | None:
    if frame is None:
        return None
    recorder.source(frame.f_code.co_filename)
    return Location(
        file=frame.f_code.co_filename, line=frame.f_lineno, function=frame.f_code.co_name
    )


HOOK = RecordingHook(
    name="eager collectives",
    offers="collective operations outside graphs, with sizes and lines",
    needs=(
        "torch._C._distributed_c10d:ProcessGroup.allreduce",
        "torch._dynamo.eval_frame:skip_code",
        "torch._dynamo.eval_frame:set_eval_frame",
    ),
    install=install,
    stage="capture",
    test="capture/test_eager_collectives.py",
)
