"""Without a working C++ compiler, graphs run on ATen: one warning says why and what to do."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch

from tcw.compiler.engine import failures
from tcw.compiler.engine.backend import backend


def warned(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    """The warnings while a model is compiled twice, forward and backward."""
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("TCW_STRICT", "")
    monkeypatch.setenv("TCW_CACHE_DIR", str(folder))
    monkeypatch.setattr(failures, "_said", set())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for rows in (3, 4):
            torch._dynamo.reset()
            x = torch.ones(rows, 5, requires_grad=True)
            result = torch.compile(lambda x: torch.softmax(x, -1).mean(), backend=backend)(x)
            torch.testing.assert_close(result, torch.tensor(0.2))
            result.backward()
    return [str(one.message) for one in caught if "tcw" in str(one.message)]


def test_one_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", "/nonexistent/g++")
    (message,) = warned(monkeypatch, tmp_path / "cache")
    assert "runs on ATen" in message
    assert "CXX names /nonexistent/g++, which does not run; set it to a C++ compiler" in message


def test_none_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    (message,) = warned(monkeypatch, tmp_path / "cache")
    assert "install g++" in message


def test_one_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "g++"
    broken.write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo 'g++ 12' && exit 0\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    (message,) = warned(monkeypatch, tmp_path / "cache")
    assert "BuildFailed" in message
    assert "g++ ended with code 1" in message
