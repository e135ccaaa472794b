"""Fixtures of the lowering tests."""

from __future__ import annotations

import pytest

from tests.cpu.lowering import harness


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations reach the lowering unchanged, without decomposition."""
    monkeypatch.setattr(harness, "decompositions", dict)
