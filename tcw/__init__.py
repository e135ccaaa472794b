"""tcw, the debugger for torch.compile: `tcw.record`, `tcw.explain`, and `backend="tcw"`.

Nothing of tcw but this module is imported before one of the three is used.

In a checkout, `compiler/`, `viewers/`, `workbench/` and `sample_models/` stand at the top, and this
folder links to them; a wheel holds them in here. Links are what mypy, import-linter, pytest,
coverage and editors all follow; a `__path__` that is changed at run time is not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any


def backend(graph_module: Any, example_inputs: Sequence[Any], **options: Any) -> Any:
    """The backend `tcw` of torch.compile. Raises RuntimeError, with the name, if torch lacks a
    private one that our compiler cannot do without."""
    try:
        from tcw.compiler.engine.backend import backend as engine
    except (ImportError, AttributeError) as error:
        from tcw.compiler.engine.requirements import HOOK

        if missing := HOOK.missing():
            raise RuntimeError(f'backend="tcw" is {missing}') from error
        raise
    return engine(graph_module, example_inputs, **options)


backend.__name__ = "tcw"  # torch's messages use this name


def record(trace: str | os.PathLike[str] | None = None) -> AbstractContextManager[Any]:
    """Record what the block compiles: `with tcw.record("run.tcw") as recording: …`.

    The recording has `.graphs`, `.breaks`, `.recompiles`, `.kernels`, `.findings` and
    `.fused("softmax", "add")`; printed, it is the report of `tcw explain`. `trace` is a file for
    `tcw open`. Raises OSError if that cannot be written.
    """
    from tcw.workbench import library

    return library.record(trace, file=sys._getframe(1).f_code.co_filename)


def explain(model: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Compile `model`, call it once with these arguments, and return the recording.

    In this process, on the model itself; what was compiled before is dropped, as by
    `torch._dynamo.reset`. For other options of torch.compile pass `torch.compile(model, …)`. The
    recording is that of `record`: printed, or as the last line of a notebook's cell, it is the
    report. Nothing is timed. Raises what the call raises.
    """
    from tcw.workbench import library

    return library.explain(model, args, kwargs, file=sys._getframe(1).f_code.co_filename)
