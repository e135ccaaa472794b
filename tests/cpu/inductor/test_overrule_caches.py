"""Under overrides, nothing is served from torch's caches and nothing is stored in them."""

from __future__ import annotations

import pytest
import torch._functorch.config as functorch
import torch._inductor.config as inductor

from tcw.compiler.inductor.caches_off import HOOK
from tcw.compiler.protocol.decision import FUSE
from tests.cpu.inductor.recorded import recording

OVERRIDE = {"inductor/0/0/inference/fuse/op0-op1": FUSE}


def on() -> tuple[bool, bool]:
    return bool(inductor.fx_graph_cache), bool(functorch.enable_autograd_cache)


@pytest.mark.parametrize("overrides", [{}, OVERRIDE])
def test_caches_are_off_while_decisions_are_overridden(overrides: dict[str, str]) -> None:
    with (
        inductor.patch(fx_graph_cache=True),
        functorch.patch(enable_autograd_cache=True),
    ):
        with recording(hooks=[HOOK], overrides=overrides):
            assert on() == ((False, False) if overrides else (True, True))
        assert on() == (True, True)


def test_caches_are_off_while_a_user_decides() -> None:
    with (
        inductor.patch(fx_graph_cache=True),
        functorch.patch(enable_autograd_cache=True),
        recording(hooks=[HOOK], ask=lambda decision: decision.default),
    ):
        assert on() == (False, False)
