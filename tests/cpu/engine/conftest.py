"""Models with the tcw engine, which raises all its errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tcw.compiler.engine import compile as stages


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    monkeypatch.setenv("TCW_STRICT", "1")
    monkeypatch.setenv("TCW_CACHE_DIR", str(cache(tmp_path_factory)))
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch._dynamo.reset()


@pytest.fixture
def nothing_left_to_aten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph that is left entirely to ATen fails the test."""

    def left(module: Any, graph: str, records: Any) -> Any:
        raise AssertionError(f"graph {graph} is left to ATen")

    monkeypatch.setattr(stages, "_left_to_aten", left)


def cache(factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests: the launcher is built once."""
    folder = factory.getbasetemp() / "engine-cache"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
