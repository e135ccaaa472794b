from __future__ import annotations

import pytest

from compiler.trace.provenance import Provenance
from compiler.trace.records import AnyRecord
from tests.block_trace import block_trace
from viewers.panes.view import Derived, View
from viewers.recording import Recording
from viewers.timeline import Track


def view_of(records: list[AnyRecord], compile_id: str = "0/0") -> View:
    facts = Derived(Recording(records), Provenance(records))
    return View(facts, compile_id=compile_id, track=Track(records))


@pytest.fixture(scope="session")
def block_records() -> list[AnyRecord]:
    return block_trace()


@pytest.fixture
def block(block_records: list[AnyRecord]) -> View:
    return view_of(block_records)
