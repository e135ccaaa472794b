from __future__ import annotations

import pytest

from tcw.compiler.trace.provenance import Provenance
from tcw.compiler.trace.records import AnyRecord
from tcw.viewers.panes.view import Derived, View
from tcw.viewers.recording import Recording
from tcw.viewers.timeline import Track
from tests.block_trace import block_trace


def view_of(records: list[AnyRecord], compile_id: str = "0/0") -> View:
    facts = Derived(Recording(records), Provenance(records))
    return View(facts, compile_id=compile_id, track=Track(records))


@pytest.fixture(scope="session")
def block_records() -> list[AnyRecord]:
    return block_trace()


@pytest.fixture
def block(block_records: list[AnyRecord]) -> View:
    return view_of(block_records)
