"""Two recordings of the block: as it is, and with its `print` gone, no graph break, and a veto."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from tcw.compiler.trace.records import AnyRecord, GraphBreak, Source, Text
from tcw.compiler.trace.writer import text_hash
from tcw.viewers.panes.view import Derived
from tcw.viewers.reader import whole
from tcw.viewers.recording import Recording
from tests.block_trace import block_trace
from tests.no_torch.two_runs import vetoed_run
from tests.no_torch.viewers.test_alignment import changed

PRINT = "Failed to trace builtin operator"


def before() -> list[AnyRecord]:
    return block_trace()


def after() -> list[AnyRecord]:
    """What the lines below the deleted one had moves up with them."""
    records = vetoed_run()
    site = next(
        record for record in records if isinstance(record, GraphBreak) and record.type == PRINT
    )
    file, line = site.location.file, site.location.line
    source = next(
        record for record in records if isinstance(record, Source) and record.file == file
    )
    body = next(
        record.body for record in records if isinstance(record, Text) and record.hash == source.text
    )
    lines = body.split("\n")
    text = "\n".join([*lines[: line - 1], *lines[line:]])

    def change(kind: str, one: Any) -> Any:
        if kind == "Location" and one.file == file and one.line > line:
            end = one.end_line - 1 if one.end_line is not None else None
            return structs.replace(one, line=one.line - 1, end_line=end)
        if kind == "Source" and one.file == file:
            return structs.replace(one, text=text_hash(text))
        return one

    kept = [record for record in records if not isinstance(record, GraphBreak)]
    found = changed(kept, change)
    return [*found[:1], Text(hash=text_hash(text), body=text), *found[1:]]


def facts_before() -> Derived:
    return whole(Recording(before())).view.derived
