"""The planted faults (`python -m tests.faults`) fit the product as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import FAULTS
from tests.faults.__main__ import MISSED, found_by
from tests.faults.fault import Fault

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.subject for fault in FAULTS])
def test_a_fault_can_be_planted_and_looked_for(fault: Fault) -> None:
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    assert text.count(fault.old) == 1, f"{fault.file} has it {text.count(fault.old)} times"
    assert fault.new != fault.old
    compile(text.replace(fault.old, fault.new), fault.file, "exec")
    assert fault.tests
    assert [name for name in fault.tests if not (ROOT / name).is_file()] == []


def test_no_two_faults_have_one_subject() -> None:
    assert len({fault.subject for fault in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ("2 * x", "3 * x", "tests/test_it.py::test_double"),
        ("2 * x", "x * 2", MISSED),
        ("5 * x", "6 * x", f"{MISSED}: without it, tests/test_other.py::test_five fails too"),
        ("x", "y", "its text is not in the file exactly once"),
    ],
)
def test_a_fault_is_found_by_a_test_that_passes_without_it(
    old: str, new: str, verdict: str, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    (tree / "tests").mkdir(parents=True)
    product = "def double(x): return 2 * x\ndef five(x): return 5 * x\n"
    (tree / "product.py").write_text(product)
    (tree / "tests" / "test_it.py").write_text(
        "import product\ndef test_double(): assert product.double(3) == 6\n"
    )
    (tree / "tests" / "test_other.py").write_text(
        "import product\ndef test_five(): assert product.five(3) == 30\n"
    )
    tests = ("tests/test_other.py",) if "5" in old else ("tests/test_it.py",)
    assert found_by(Fault("a factor", "product.py", old, new, tests), tree) == verdict
    assert (tree / "product.py").read_text() == product
