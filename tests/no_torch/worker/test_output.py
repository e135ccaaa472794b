from __future__ import annotations

from tcw.compiler.trace.records import Output, OutputCapped, Record
from tcw.workbench.worker import output
from tcw.workbench.worker.output import OutputStream


def fed(*parts: bytes) -> list[Record]:
    emitted: list[Record] = []
    stream = OutputStream("stdout", emitted.append)
    for part in parts:
        stream.feed(part)
    stream.close()
    return emitted


def test_small_writes_are_gathered() -> None:
    assert fed(*[b"x"] * 1000) == [Output(stream="stdout", text="x" * 1000)]


def test_a_character_cut_in_two_stays_whole() -> None:
    data = "é€😀".encode() * 9000
    assert "".join(one.text for one in fed(*(data[n : n + 7] for n in range(0, len(data), 7)))) == (
        "é€😀" * 9000
    )


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert fed(b"a\xff\xfeb\xc3") == [Output(stream="stdout", text="a\ufffd\ufffdb\ufffd")]


def test_the_cap_is_said_once() -> None:
    emitted = fed(b"x" * (output.CAP_BYTES - 1), b"yy", b"z" * 10**6, b"z")
    assert sum(len(one.text) for one in emitted if isinstance(one, Output)) == output.CAP_BYTES
    assert emitted[-1] == OutputCapped(stream="stdout", cap_bytes=output.CAP_BYTES)
    assert sum(isinstance(one, OutputCapped) for one in emitted) == 1


def test_nothing_printed_is_no_record() -> None:
    assert fed() == []
