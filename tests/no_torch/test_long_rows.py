"""`tests/README.md` lists each file with tests that plain `pytest` leaves out."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONG = re.compile(r"pytest\.mark\.long\b|\bmostly_long\(|\beach_(isa|width)\b")


def rows() -> list[str]:
    """The files in the first column of the table; a row names a folder once."""
    text = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
    table = text.partition("| file | the long part |")[2].partition("\n\n")[0]
    found = []
    for row in table.splitlines():
        folder = ""
        for name in re.findall(r"`([^`]+\.py)`", row.split("|")[1] if "|" in row else ""):
            folder = name.rpartition("/")[0] or folder
            found.append(f"{folder}/{name.rpartition('/')[2]}")
    return found


FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "tests").rglob("test_*.py")
    if path != Path(__file__) and LONG.search(path.read_text(encoding="utf-8"))
)


@pytest.mark.parametrize("file", FILES)
def test_a_file_with_long_tests_has_a_row(file: str) -> None:
    assert any(fnmatch(file, row) for row in rows())


def test_a_row_names_files_that_have_long_tests() -> None:
    assert [row for row in rows() if not any(fnmatch(file, row) for file in FILES)] == []
