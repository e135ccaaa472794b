"""Between two runs in one process torch forgets what it compiled, so that all is decided again.

Compiled C++ stays in the recording's own cache folder: the same code is not built twice.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys

import torch
from torch._dynamo import convert_frame

from tcw.compiler.control.hooks import Hook
from tcw.compiler.control.recorder import Recorder

HOOK = Hook(
    name="forgetting",
    offers="runs again and what-if: the next run is decided from the start, and counts from 0",
    needs=(
        "torch._dynamo:reset_code_state",
        "torch._dynamo.convert_frame:FRAME_COMPILE_COUNTER.clear",
        "torch._dynamo.config:recompile_limit",
        "torch._functorch.aot_autograd:AOT_COUNTER",
        "torch._functorch._aot_autograd.autograd_cache:AOTAutogradCache.clear",
        "torch._inductor.codecache:FxGraphCache.clear",
        "torch._inductor.utils:clear_caches",
    ),
    test="worker/test_forget.py",
)

_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"


def caches_folder() -> str:
    """Where torch keeps what it compiles, by its own variable; "" for the default."""
    return os.environ.get(_VARIABLE, "")


def beside_what_is_compiled() -> None:
    """Make the next compile of a model count as the first, beside what was compiled before it.
    Sizes seen before do not count, and ids begin again, since overrides hold ids of compiles."""
    torch._dynamo.reset_code_state()
    convert_frame.FRAME_COMPILE_COUNTER.clear()


def forget_compiled(recorder: Recorder, own: str) -> None:
    """Reset torch as in a fresh process: ids count from 0, and no cache of graphs has entries.

    Only the recording's own caches are emptied; `own` is their folder, which `caches_folder`
    returned before the user's file ran. If the file has chosen another folder, that one is kept and
    reported.
    """
    torch._dynamo.reset()
    aot_autograd = sys.modules.get("torch._functorch.aot_autograd")
    if hasattr(aot_autograd, "AOT_COUNTER"):  # it is part of the code that Inductor writes
        aot_autograd.AOT_COUNTER = itertools.count()  # type: ignore[union-attr]
    inductor = sys.modules.get("torch._inductor.codecache")
    if inductor is None or recorder.settings.cached:
        return
    chosen = caches_folder()
    if not own or chosen != own:
        recorder.warn_once(
            f"the file keeps torch's caches in {chosen or 'their usual place'}: "
            "what they hold is not decided again in another run",
            asked=True,
        )
        return
    from torch._inductor.utils import clear_caches

    inductor.FxGraphCache.clear()
    with contextlib.suppress(ImportError):
        from torch._functorch._aot_autograd.autograd_cache import AOTAutogradCache

        AOTAutogradCache.clear()
    clear_caches()
