"""Either side of a graph break."""

from __future__ import annotations

from msgspec.structs import replace

from tcw.compiler.trace.records import GraphBreak
from tcw.viewers.panes import breaks
from tests.block_trace import block_trace
from tests.no_torch.viewers.panes.conftest import view_of


def test_nothing_crosses_where_the_whole_function_runs_in_python() -> None:
    records = [
        replace(one, outcome="skip-frame", crossing=()) if isinstance(one, GraphBreak) else one
        for one in block_trace()
    ]
    said = [row.text.strip() for row in breaks.sides(view_of(records), 60).rows]
    assert "crosses  nothing: the whole function runs in Python" in said
