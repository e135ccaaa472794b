"""Damaged traces open without a raw error, within ten times their size in memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tcw.compiler.trace.records import AnyRecord
from tcw.viewers.panes.arrangement import PANES
from tests.long import mostly_long
from tests.no_torch.fuzz import run
from tests.no_torch.fuzz.damage import BASES, Base, damaged, fields
from tests.no_torch.fuzz.everything import open_everything
from tests.no_torch.hostile import How, hostile

ROOT = Path(__file__).parents[3]


def failures(first: int, count: int) -> list[dict[str, object]]:
    """What a process of its own says of these traces."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.no_torch.fuzz.run", str(first), str(count)],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_damaged_traces_open() -> None:
    assert failures(0, 12) == []


@pytest.mark.long
@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("part", range(10))
def test_five_thousand_damaged_traces_open(part: int) -> None:
    assert failures(500 * part, 500) == []


def test_each_field_of_each_record_is_damaged() -> None:
    tags = {str(kind.__struct_config__.tag) for kind in AnyRecord.__args__}
    assert {field[0] for field in fields()} == tags
    assert len(fields()) > len(tags)


@pytest.mark.parametrize("how", mostly_long(("added", "replaced", "long"), ("added",)))
@pytest.mark.parametrize("base", BASES, ids=lambda base: base.__name__)
def test_no_text_reaches_a_screen_raw(base: Base, how: How, tmp_path: Path) -> None:
    path = tmp_path / "hostile.tcw"
    path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in hostile(base(), how)))
    open_everything(path, tmp_path)


def test_a_number_makes_the_same_trace_again() -> None:
    assert damaged(7) == damaged(7)
    assert damaged(7).data != damaged(8).data


def test_a_raw_error_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def content(*_: object) -> None:
        raise IndexError("planted")

    monkeypatch.setitem(PANES, "memory", content)
    found = (run.failure_of(number, tmp_path) for number in range(23))
    assert any(one is not None and "planted" in str(one["error"]) for one in found)
