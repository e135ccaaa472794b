"""Fixtures of the lowering tests."""

from __future__ import annotations

import pytest

from compiler.engine.decompositions import decompositions
from compiler.lowering.families import load_families
from compiler.lowering.registry import lowering_of
from tests.cpu.lowering import harness


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations with a lowering reach it unchanged; the others are decomposed."""
    load_families()
    table = {one: found for one, found in decompositions().items() if lowering_of(one) is None}
    monkeypatch.setattr(harness, "decompositions", lambda: table)
