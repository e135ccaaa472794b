"""Fixtures of the lowering tests."""

from __future__ import annotations

import pytest

from tcw.compiler.lowering.registry import load_families, lowering_of
from tcw.compiler.rewrites.decompositions import decompositions
from tests.cpu.lowering import harness


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations with a lowering reach it unchanged; the others are decomposed."""
    load_families()
    table = {
        one: decomposition
        for one, decomposition in decompositions().items()
        if lowering_of(one) is None
    }
    monkeypatch.setattr(harness, "decompositions", lambda: table)
