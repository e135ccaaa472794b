"""The product keeps to its size: `tcw.size.toml`."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

from benchmarks.code_size import (
    Size,
    budget_text,
    folder_of,
    measured,
    outgrown,
    read_budget,
    size_of,
)

PYTHON = '''"""What it is."""

import os  # a comment beside code

# alone

LIMIT = 3
"""What the limit
is for."""
TEXT = """two lines
of a value"""


def run() -> None:
    """Runs."""
    os.getcwd()
'''


def test_no_folder_is_larger_than_accepted() -> None:
    if not (Path(__file__).parents[2] / ".git").exists():
        pytest.skip("not a checkout")
    grown = outgrown(measured(), read_budget())
    assert not grown, "\n".join(grown)


def test_documentation_is_no_code() -> None:
    assert size_of("a.py", PYTHON) == Size(code=6, documentation=5, all=16)
    style = "/* two\n   lines */\nbody { }\n\n// one\nrun(); // beside\n"
    assert size_of("a.css", style) == Size(code=2, documentation=3, all=6)


def test_growth_is_named_and_accepting_it_silences_it(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    file = tmp_path / "compiler" / "capture" / "breaks.py"
    file.parent.mkdir(parents=True)
    file.write_text("one = 1\n")
    budget = tomllib.loads(budget_text(measured(tmp_path)))["lines"]
    assert budget == {"product": 1, "compiler/capture": 1}
    assert outgrown(measured(tmp_path), budget) == []

    file.write_text("one = 1\ntwo = 2\n")
    folder, product = outgrown(measured(tmp_path), budget)
    assert folder.startswith("compiler/capture: 2 lines of code, 1 more than accepted")
    assert product.startswith("product: 2 lines, 1 more than accepted")
    assert "raise it in this commit and say why in the message" in folder

    (tmp_path / "viewers").mkdir()
    (tmp_path / "viewers" / "new.py").write_text("three = 3\n")
    assert any(words.startswith("viewers: ") for words in outgrown(measured(tmp_path), budget))


def test_a_file_belongs_to_the_folder_below_the_top() -> None:
    assert folder_of(Path("compiler/codegen/cpp/emit.py")) == "compiler/codegen"
    assert folder_of(Path("viewers/words.py")) == "viewers"
