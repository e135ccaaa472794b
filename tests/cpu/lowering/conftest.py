"""Fixtures of the lowering tests."""

from __future__ import annotations

import pytest

from tests.cpu.lowering import harness


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations reach the lowering as they are: nothing is taken apart before."""
    monkeypatch.setattr(harness, "decompositions", dict)
