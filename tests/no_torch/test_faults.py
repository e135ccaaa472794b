"""The planted faults (`python -m tests.faults`) fit the product as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import FAULTS
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
