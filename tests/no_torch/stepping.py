"""A recording of every instruction of an attention's forward, as torch 2.13 ran it: what is in
`attention.jsonl`, cut off where Dynamo ends the frame."""

from __future__ import annotations

from pathlib import Path

from tcw.compiler.trace.reader import TraceDecoder
from tcw.compiler.trace.records import AnyRecord, Graph, Step

FILE = Path(__file__).with_name("attention.jsonl")


def attention() -> list[AnyRecord]:
    """With the captured graph: shapes of nodes are known."""
    decoder = TraceDecoder()
    records = decoder.feed(FILE.read_bytes())
    assert not decoder.losses.total
    return records


def until(opcode: str, line: int, attempt: int = 1) -> list[AnyRecord]:
    """Up to the first such instruction of an attempt, as a driven compile would stand there."""
    records = [record for record in attention() if not isinstance(record, Graph)]
    for index, record in enumerate(records):
        if (
            isinstance(record, Step)
            and (record.opcode, record.location.line, record.attempt) == (opcode, line, attempt)
            and record.location.file.endswith("attention.py")
        ):
            return records[: index + 1]
    raise AssertionError("there is no such instruction")


def softmax(records: list[AnyRecord]) -> Step:
    """The step that calls softmax."""
    return next(
        record
        for record in records
        if isinstance(record, Step)
        and (record.opcode, record.location.line, record.attempt) == ("CALL", 16, 1)
    )
