"""Models under the tcw engine, with every error of ours raised."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    monkeypatch.setenv("TCW_STRICT", "1")
    monkeypatch.setenv("TCW_CACHE_DIR", str(cache(tmp_path_factory)))
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch._dynamo.reset()


def cache(factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests: the launcher is built once."""
    folder = factory.getbasetemp() / "engine-cache"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
