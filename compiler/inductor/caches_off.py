"""Turns torch's compile caches off if decisions are overridden.

Their keys do not include overrides: code compiled under other overrides would be served, and ours
would be stored for everybody. So a recording with overrides of Inductor's decisions, or one driven
by the user, neither reads nor writes them.
"""

from __future__ import annotations

from contextlib import ExitStack

from tcw.compiler.control.hooks import RecordingHook, Uninstall
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.engine.recording import current as listening
from tcw.compiler.protocol.decision import INDUCTOR, engine_of


def install(recorder: Recorder) -> Uninstall:
    gate = listening().gate
    overruled = any(engine_of(id) == INDUCTOR for id in gate.overrides)
    if not overruled and not gate.asks:
        return lambda: None
    if recorder.settings.cached:
        recorder.warn_once(
            "torch's caches are not used: what they hold was compiled without these overrides"
            if overruled
            else "torch's caches are not used: what they serve cannot be stepped through",
            asked=True,
        )
    return caches_off().close


def caches_off() -> ExitStack:
    """Until this is closed, torch neither reads nor writes its caches of compiled graphs."""
    import torch._functorch.config as functorch
    import torch._inductor.config as inductor

    stack = ExitStack()
    stack.enter_context(inductor.patch(fx_graph_cache=False, fx_graph_remote_cache=False))
    stack.enter_context(
        functorch.patch(enable_autograd_cache=False, enable_remote_autograd_cache=False)
    )
    return stack


HOOK = RecordingHook(
    name="caches under overrides",
    offers="no code from torch's caches where decisions are overruled",
    needs=(
        "torch._inductor.config:fx_graph_cache",
        "torch._inductor.config:fx_graph_remote_cache",
        "torch._functorch.config:enable_autograd_cache",
        "torch._functorch.config:enable_remote_autograd_cache",
    ),
    install=install,
    stage="autograd",
    test="inductor/test_overrule_caches.py",
)
