"""Workers are forked from a process that has torch imported, unless their start is the subject.
Their cache has the machine's ceilings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

import msgspec
import pytest

from tcw.workbench.worker import child
from tests.cpu.warm import WarmStart
from tests.cpu.warm_server import stand_ins
from tests.no_torch import profile_building

_COLD = pytest.StashKey[bool]()
"""Whether the test that runs is marked `cold_start`."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.config.stash[_COLD] = item.get_closest_marker("cold_start") is not None


@pytest.fixture(scope="package")
def warm_start(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, _caches: None
) -> Iterator[WarmStart]:
    """Its servers are the run's, but where each process counts what it spends."""
    config = request.config
    folder = tmp_path_factory.getbasetemp()
    shared = "PYTEST_XDIST_WORKER" in os.environ and not config.pluginmanager.has_plugin(
        "tests.cpu_seconds"
    )
    always_cold = partial(config.stash.get, _COLD, False)
    warm = WarmStart(child.start_process, always_cold, folder.parent if shared else folder)
    yield warm
    warm.close(seconds=0.0 if shared else 10.0)


@pytest.fixture(scope="package", autouse=True)
def _warm_workers(warm_start: WarmStart, request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if not request.config.getoption("--cold-start"):
            patch.setattr(child, "start_process", warm_start.start)
        yield


@pytest.fixture(scope="package", autouse=True)
def _quick_compiles() -> Iterator[None]:
    """In this process as in its workers."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, name, stand_in in stand_ins():
            patch.setattr(owner, name, stand_in)
        yield


@pytest.fixture
def torchs_profile_of_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._C._dynamo.guards import profile_guard_manager  # type: ignore[import-not-found]
    from torch._dynamo import guards

    monkeypatch.setattr(guards, "profile_guard_manager", profile_guard_manager)


@pytest.fixture(scope="package", autouse=True)
def _known_ceilings(_caches: None) -> None:
    """In the cache folder before the first profile. To measure them takes two seconds of a
    processor, three where others use the machine, which keeps nothing of it: each profile would
    measure them again."""
    from tcw.compiler.measure.work import ceilings as measuring  # imports torch

    def known(kind: measuring.DeviceKind = "cpu") -> measuring.Ceilings:
        found = profile_building.ceilings(kind)
        return msgspec.structs.replace(found, device=measuring.device_name(kind), kept=False)

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TCW_CACHE_DIR", raising=False)
        patch.setattr(measuring, "measured", known)
        measuring.ceilings()
