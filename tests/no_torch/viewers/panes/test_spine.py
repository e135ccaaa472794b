"""The calls, with what was compiled in each."""

from __future__ import annotations

from tcw.compiler.trace.records import CallEnd, CallStart
from tcw.compiler.trace.records.session import Argument
from tcw.viewers.panes import chrome
from tests.no_torch.traces import X, opening
from tests.no_torch.viewers.panes.conftest import view_of


def test_a_call_has_its_arguments_then_those_that_changed() -> None:
    records = opening()
    for number, scales in enumerate(("[0.5, 1.0]", "[0.5, 2.0]"), start=1):
        given = Argument(name="x", tensor=X), Argument(name="scales", value=scales)
        records += [CallStart(call=number, arguments=given), CallEnd(call=number, seconds=0.1)]
    rows = [row.text for row in chrome.spine(view_of(records), 60).rows]
    sizes = "×".join(map(str, X.shape))
    assert rows[0].strip() == f"call 1  {sizes}  [0.5, 1.0]"
    assert rows[1].strip() == "call 2  scales [0.5, 2.0]"
