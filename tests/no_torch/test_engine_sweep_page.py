"""`docs/engine-sweep.md` is made from the rows of the sweep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.engine_sweep import forget, lines, read
from docs.make_engine_sweep import FIGURES, HEAD, PAGE, Sweep, page

RUN = {"run": "TCW_ISA=avx2 engine_sweep.py", "threads": 1, "machine": "M", "versions": "V"}


def row(case: str, eager: float, inductor: float, tcw: float) -> dict[str, Any]:
    times = {"eager": eager * 1e-6, "torch": 20e-6, "inductor": inductor * 1e-6, "tcw": tcw * 1e-6}
    return {"case": case, "threads": 1, **times}


def written(file: Path, *rows: dict[str, Any]) -> Path:
    file.write_text("".join(f"{json.dumps(line)}\n" for line in rows))
    return file


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    return written(
        tmp_path / "rows.jsonl",
        RUN | {"day": "2026-01-02"},
        row("abs float32 medium contiguous forward", 100, 40, 80),
        row("abs float32 medium contiguous forward", 100, 160, 80),
        row("floor division int8 large transposed backward", 200, 300, 400),
        row("sin float32 medium contiguous forward", 10, 50, 50),
        {"case": "cat bool small contiguous forward", "threads": 1, "failed": "eager"},
    )


def test_the_page_counts_the_last_row_of_each_case(sweep: Path) -> None:
    made = Sweep.of(sweep)
    assert made.name == "AVX2, one thread"
    figures = {label: figure(made) for label, figure in FIGURES}
    assert figures == {
        "cases": "3",
        "Inductor/tcw, geometric mean": "1.14",
        "… below 0.95 of Inductor": "1 (33.3%)",
        "… below 0.9 of Inductor": "1 (33.3%)",
        "… below 0.7 of Inductor": "0 (0.0%)",
        "… worst": "0.75",
        "cases of 50 µs or more in eager": "2",
        "eager/tcw, geometric mean": "0.79",
        "… below 0.95 of eager": "1 (50.0%)",
        "… and slower by more than `torch`": "1 (50.0%)",
    }
    text = page([made])
    assert "- `TCW_ISA=avx2 engine_sweep.py`: M, V, 2026-01-02" in text
    assert "| failed | 1 |" in text
    assert "| int8 | 0.75 of 1 |" in text


def test_a_file_of_several_numbers_of_threads_is_no_column(sweep: Path) -> None:
    with sweep.open("a") as stream:
        print(json.dumps(RUN | {"threads": 2}), file=stream)
    with pytest.raises(ValueError, match="rows of 2 numbers of threads"):
        Sweep.of(sweep)


def test_the_runs_stay_when_rows_are_forgotten(sweep: Path) -> None:
    forget(sweep, {"sin float32 medium contiguous forward"}, threads=1)
    assert len(read(sweep, 1)) == 3
    assert [line["run"] for line in lines(sweep) if "run" in line] == [RUN["run"]]


def test_the_page_in_the_repository_was_made_by_the_command() -> None:
    assert PAGE.read_text(encoding="utf-8").startswith(HEAD)
