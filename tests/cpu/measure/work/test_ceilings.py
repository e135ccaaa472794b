"""Ceilings are measured once, cached for this machine only, and rejected if damaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tcw.compiler.measure.work import ceilings as measuring
from tcw.compiler.measure.work.ceilings import DeviceKind, ceilings
from tcw.compiler.trace.records import Bandwidth, Ceilings


class Measuring:
    """Stands in for the machine."""

    def __init__(self) -> None:
        self.times = 0
        self.busy = False

    def __call__(self, kind: DeviceKind = "cpu") -> Ceilings | None:
        self.times += 1
        return (
            None
            if self.busy
            else Ceilings(
                device="a machine",
                kind=kind,
                threads=torch.get_num_threads(),
                bandwidth=(Bandwidth(bytes=1024, per_second=1e9 * self.times),),
                rates={"float32": 1e9},
                measured=1.0,
            )
        )


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Measuring:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = Measuring()
    monkeypatch.setattr(measuring, "measured", found)
    return found


@pytest.fixture
def threads() -> Iterator[int]:
    before = torch.get_num_threads()
    yield before
    torch.set_num_threads(before)


def kept(found: Ceilings | None) -> bool:
    assert found is not None
    return found.kept


def files(folder: Path) -> list[Path]:
    return [path for path in (folder / "tcw" / "ceilings" / "measured").iterdir() if path.is_file()]


def test_they_are_kept(machine: Measuring, tmp_path: Path) -> None:
    first, second = ceilings(), ceilings()
    assert (kept(first), kept(second), machine.times) == (False, True, 1)
    assert first is not None
    assert second is not None
    assert first.bandwidth == second.bandwidth
    assert (tmp_path / "tcw" / "ceilings").stat().st_mode & 0o077 == 0


def test_other_threads_and_precisions_are_another_machine(
    machine: Measuring, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ceilings()
    torch.set_num_threads(threads + 1)
    assert not kept(ceilings())
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "high")
    assert not kept(ceilings())
    assert machine.times == 3


def test_a_damaged_file_is_measured_again(machine: Measuring, tmp_path: Path) -> None:
    ceilings()
    (file,) = files(tmp_path)
    file.write_bytes(file.read_bytes()[:-5])
    assert not kept(ceilings())
    assert kept(ceilings())
    assert machine.times == 2


def test_a_folder_that_others_can_enter_is_not_used(machine: Measuring, tmp_path: Path) -> None:
    (tmp_path / "tcw").mkdir(mode=0o755)
    assert not kept(ceilings())
    assert not kept(ceilings())
    assert not (tmp_path / "tcw" / "ceilings").exists()


def test_a_busy_machine_has_none(machine: Measuring) -> None:
    machine.busy = True
    assert ceilings() is None
    machine.busy = False
    assert not kept(ceilings())
    assert kept(ceilings())


def test_what_is_measured_is_plausible(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "_COPY_SECONDS": 0.002,
        "_PRODUCT_SECONDS": 0.003,
        "_largest": lambda kind: 1 << 20,
    }.items():
        monkeypatch.setattr(measuring, name, value)
    state = torch.get_rng_state()
    found = measuring.measured()
    assert found is not None
    assert torch.equal(torch.get_rng_state(), state)
    assert found.kind == "cpu"
    assert found.threads == torch.get_num_threads()
    assert [one.bytes for one in found.bandwidth] == [1 << power for power in range(15, 21)]
    assert all(one.per_second > 0 for one in found.bandwidth)
    assert {"float32", "float64"} <= found.rates.keys()
    assert all(rate > 0 for rate in found.rates.values())


def test_the_largest_set_is_beyond_the_last_cache() -> None:
    largest = measuring._largest("cpu")
    assert largest <= measuring._free_memory()
    if measuring._free_memory() > 1 << 31:
        assert largest >= min(2 * measuring._last_cache(), 1 << 30)


def test_none_are_measured_while_others_use_the_processors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited = iter(range(100))
    monkeypatch.setattr(measuring, "waited_seconds", lambda: next(waited))
    monkeypatch.setattr(measuring, "_WAITING", 0.05)
    monkeypatch.setattr(measuring, "_PATIENCE", 0.0)
    monkeypatch.setattr(measuring, "_bandwidth", lambda timer, largest: ())
    monkeypatch.setattr(measuring, "_rates", lambda timer: {})
    assert measuring.measured() is None


def test_a_small_set_takes_no_longer_than_a_large_one() -> None:
    seconds = {1 << 18: 3e-6, 1 << 17: 2e-6, 1 << 16: 9e-3, 1 << 15: 1e-6}

    class Timer:
        device = "cpu"

        def best(self, action: object, _: float) -> float:
            return next(left)

        def empty(self, action: object) -> float:
            return 0.0

    left = iter(seconds.values())
    found = measuring._bandwidth(Timer(), 1 << 18)  # type: ignore[arg-type]
    assert [one.bytes for one in found] == sorted(seconds)
    assert found[1].per_second == pytest.approx((1 << 16) / 2e-6)
