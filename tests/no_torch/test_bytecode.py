"""What workers would compile is compiled before: by `write`, as pytest and Python read it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tests import bytecode


def test_workers_find_all_of_it(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    good = [folder / name for name in ("c.py", "conftest.py", "test_a.py", "test_z.py")]
    for file in good:
        file.write_text("def check(x):\n    assert x == 2\n")
    for name in ("a.py", "test_0.py"):  # among the others, whose compiles go on
        (folder / name).write_text("def check(\n")
    bytecode.write(pytestconfig, tmp_path)
    assert sorted(folder.rglob("*.pyc")) == sorted(map(bytecode.kept_in, good))
    helper, *tests = good
    assert importlib.util.cache_from_source(str(helper)) == str(bytecode.kept_in(helper))
    for file in tests:
        code = rewrite._read_pyc(file, bytecode.kept_in(file))
        assert code is not None
        assert "@py_builtins" in code.co_names, "asserts are pytest's"


def test_what_is_there_is_not_written_again(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    file = tmp_path / "compiler" / "one.py"
    file.parent.mkdir()
    file.write_text("1\n")
    kept = bytecode.kept_in(file)
    kept.parent.mkdir()
    kept.write_bytes(b"kept")
    bytecode.write(pytestconfig, tmp_path)
    assert kept.read_bytes() == b"kept"
