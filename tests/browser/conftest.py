from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.no_torch.tui.conftest import open_trace

__all__ = ["open_trace"]

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=4000",
)

Dump = Callable[[Path], str]


@pytest.fixture(scope="session")
def program() -> str:
    """Chromium's."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if found is None:
        pytest.skip("no Chromium on this machine")
    return found


@pytest.fixture(scope="session")
def dump(tmp_path_factory: pytest.TempPathFactory, program: str) -> Dump:
    """The document of a page after its scripts ran, as Chromium has it."""
    profile = tmp_path_factory.mktemp("profile")

    def dumped(page: Path) -> str:
        command = [program, *FLAGS, f"--user-data-dir={profile}", "--dump-dom", page.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        return done.stdout

    return dumped
