"""The rows of the modes table, of recordings that are made up."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec import structs

from tcw.compiler.trace.records import (
    AnyRecord,
    End,
    Failure,
    Kernel,
    ModeRow,
    Settings,
    Speed,
    Warned,
)
from tcw.workbench.cli.modes import WAYS, OnRecord, modes, pays_after

OK = End(status="ok", seconds=1.0)


def _speed(eager: float, compiled: float, device: str = "cpu", noise: float = 0.01) -> Speed:
    ratio = eager / compiled
    return Speed(
        eager_ms=eager,
        compiled_ms=compiled,
        eager_mad_ms=0.0,
        compiled_mad_ms=compiled / 10,
        speedup=ratio,
        noise=noise,
        pairs=20,
        in_noise=abs(ratio - 1) <= noise * ratio,
        compile_seconds=1.0,
        compile_cpu_seconds=2.0,
        device=device,
        eager_peak_bytes=300,
        compiled_peak_bytes=200,
    )


def _kernel(text: str) -> Kernel:
    return Kernel(id="k0", graph="0/0/forward", name="k", label="k", language="cpp", text=text)


class Worker:
    """Gives each way what is written down for it."""

    def __init__(self, found: dict[str, tuple[list[AnyRecord], End]]) -> None:
        self.found = found
        self.settings: list[Settings] = []

    def __call__(
        self,
        settings: Settings,
        *,
        trace: Path | None,
        on_record: OnRecord,
        stop: threading.Event | None = None,
    ) -> End:
        self.settings.append(settings)
        records, end = self.found[f"{settings.engine} {settings.mode}".strip()]
        for record in [*records, end]:
            on_record(record)
        return end


def _rows(worker: Worker, ways: Iterable[str] = ()) -> list[ModeRow]:
    chosen = [way for way in WAYS if not ways or way.name in ways]
    settings = Settings(file="model.py", profile=True, cached=True, mode="max-autotune")
    return list(modes(settings, record=worker, ways=chosen))


def test_each_way_is_recorded_for_itself_and_eager_comes_from_the_first() -> None:
    worker = Worker(
        {
            "inductor": ([_kernel("a"), _speed(10.0, 5.0, "cuda")], OK),
            "inductor reduce-overhead": ([_kernel("a"), _speed(10.0, 4.0, "cuda")], OK),
            "inductor max-autotune": ([_kernel("b"), _speed(10.0, 2.0, "cuda")], OK),
            "tcw": ([_speed(10.0, 10.0, "cuda")], OK),
            "tcw reduce-overhead": ([_speed(10.0, 5.0, "cuda")], OK),
        }
    )
    rows = _rows(worker)
    assert [row.name for row in rows] == ["eager", *(way.name for way in WAYS)]
    assert [row.pays_after for row in rows] == [None, 200, 167, 125, None, 200]
    assert rows[0].peak_bytes == 300
    assert {row.peak_bytes for row in rows[1:]} == {200}
    assert not any(row.note or row.reason for row in rows)
    assert not any(setting.profile or setting.cached for setting in worker.settings)
    assert all(setting.memory for setting in worker.settings)


def test_cuda_graphs_are_not_tried_on_a_cpu_and_an_unchanged_max_autotune_is_told() -> None:
    worker = Worker(
        {
            "inductor": ([_kernel("a"), _speed(10.0, 5.0)], OK),
            "inductor max-autotune": ([_kernel("a"), _speed(10.0, 5.0)], OK),
            "tcw": ([_speed(10.0, 5.0)], OK),
        }
    )
    _, _, overhead, tuned, _, ours = _rows(worker)
    for one in (overhead, ours):
        assert one.time is None
        assert "the model runs on the CPU" in one.reason
    assert tuned.time is not None
    assert "the default mode" in tuned.note
    assert len(worker.settings) == 3


def test_a_way_that_fails_says_why_and_the_next_one_is_tried() -> None:
    failure = Failure(doing="compiling 0/0", type="BackendCompilerFailed", message="no\nmore")
    worker = Worker(
        {
            "inductor": ([failure], End(status="failed", seconds=1.0)),
            "tcw": ([_speed(10.0, 5.0)], OK),
        }
    )
    first, eager, second = _rows(worker, ["inductor", "tcw"])
    assert first.reason == "compiling 0/0: BackendCompilerFailed: no"
    assert (eager.name, second.pays_after) == ("eager", 200)


@pytest.mark.parametrize(
    ("records", "end", "words"),
    [
        ([], End(status="timeout", seconds=9.0, reason="after 9 s"), "timeout after 9 s"),
        ([], OK, "a script"),
        (
            [structs.replace(_speed(10.0, 5.0), compiled_again=2)],
            OK,
            "2 graphs compiled while it was timed",
        ),
        (
            [Warned(message="a repeated call raised X", code="not timed")],
            OK,
            "a repeated call raised X",
        ),
    ],
)
def test_a_row_without_figures_has_its_reason(
    records: list[AnyRecord], end: End, words: str
) -> None:
    (row,) = _rows(Worker({"inductor": (records, end)}), ["inductor"])
    assert row.time is None
    assert words in row.reason


def test_options_of_the_file_s_own_are_no_mode_of_ours() -> None:
    own = Warned(message="its options are used", code="own options")
    found: dict[str, tuple[list[AnyRecord], End]] = {
        "inductor": ([_speed(10.0, 5.0)], OK),
        "inductor max-autotune": ([own, _speed(10.0, 5.0)], OK),
    }
    *_, row = _rows(Worker(found), list(found))
    assert row.time is None
    assert row.reason == own.message


def test_an_interruption_ends_it() -> None:
    assert _rows(Worker({"inductor": ([], End(status="interrupted", seconds=1.0))})) == []


@pytest.mark.parametrize(
    ("eager", "compiled", "noise", "calls"),
    [(10.0, 9.0, 0.01, 1000), (10.0, 9.0, 0.5, None), (9.0, 10.0, 0.01, None)],
)
def test_compiling_pays_only_where_it_wins(
    eager: float, compiled: float, noise: float, calls: int | None
) -> None:
    assert pays_after(_speed(eager, compiled, noise=noise)) == calls
