"""The machine's part in a graph's key."""

from __future__ import annotations

import pytest

from tcw.compiler.runtime.graph_key import surroundings


def test_the_key_follows_the_instruction_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit for another instruction set must never be found under this one's key."""
    monkeypatch.setenv("TCW_ISA", "portable")
    portable = surroundings()
    monkeypatch.setenv("TCW_ISA", "avx2")
    wide = surroundings()
    assert (portable["instruction set"], wide["instruction set"]) == ("portable", "avx2")
    assert portable["flags"] != wide["flags"]
