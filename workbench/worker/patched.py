"""torch.compile as the user's file left it: replaced, or called by its own script."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._dynamo import eval_frame

from tcw.compiler.control.describe import describe
from tcw.compiler.control.hooks import during, patch
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.trace.records import Warned
from tcw.workbench.worker.backends import torch_compile
from tcw.workbench.worker.notes import WorkerRecorder


def warn_if_replaced(recorder: Recorder) -> None:
    """Note that the user's file has replaced torch.compile."""
    if torch.compile is torch_compile:
        return
    code = getattr(torch.compile, "__code__", None)
    place = (
        f" at {code.co_filename}:{code.co_firstlineno}"
        if code is not None
        else f" by {describe(torch.compile)}"
    )
    recorder.emit(
        Warned(message=f"torch.compile is replaced{place}; the recording used torch's own")
    )


@contextmanager
def counting_calls(recorder: WorkerRecorder) -> Iterator[None]:
    """Number the calls of whatever a script has compiled, in `recorder.call`.

    Every compiled callable gets its callback from `_callback_from_stance`
    (torch/_dynamo/eval_frame.py) when it starts, outside what Dynamo traces, so nothing of the
    script has to be wrapped. If a torch lacks this function, all calls have the number 0.
    """
    original = getattr(eval_frame, "_callback_from_stance", None)
    if original is None:
        yield
        return

    def counted(callback: Any, *arguments: Any, **options: Any) -> Any:
        if callback is not None and callback is not False:
            recorder.begin_call()
        return original(callback, *arguments, **options)

    with during(patch(eval_frame, "_callback_from_stance", counted)):
        yield
