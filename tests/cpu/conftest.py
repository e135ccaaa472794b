"""Workers are forked from a process that has torch imported, unless their start is the subject."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cpu.warm import WarmStart
from workbench.worker import child

_COLD = pytest.StashKey[bool]()
"""Whether the test that runs is marked `cold_start`."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.config.stash[_COLD] = item.get_closest_marker("cold_start") is not None


@pytest.fixture(scope="package", autouse=True)
def _warm_workers(request: pytest.FixtureRequest, _caches: None) -> Iterator[None]:
    config = request.config
    if config.getoption("--cold-start"):
        yield
        return
    warm = WarmStart(child.start_process, always_cold=lambda: config.stash[_COLD])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child, "start_process", warm.start)
        yield
    warm.close()
