"""Damaged logs open without a raw error, and every loss is said."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from tcw.compiler.trace.reader import TraceError
from tcw.compiler.trace.records import AnyRecord
from tcw.compiler.trace.torch_logs.decoder import LogDecoder
from tcw.compiler.trace.torch_logs.log_digests import digest_log
from tcw.viewers.losses import losses_sentences
from tcw.viewers.recording import Recording
from tests.no_torch.fuzz.everything import open_everything
from tests.no_torch.torch_logs.damage import damaged
from tests.no_torch.torch_logs.samples import log

decode = msgspec.json.Decoder(AnyRecord).decode


def decoded(data: bytes) -> tuple[list[AnyRecord], LogDecoder]:
    decoder = LogDecoder()
    records = [*decoder.feed(data), *decoder.finish()]
    return records, decoder


def opens(number: int, folder: Path, everything: bool) -> None:
    data = damaged(number)
    records, decoder = decoded(data)
    for record in records:  # every number has the bounds of its record
        decode(msgspec.json.encode(record))
    recording = Recording(records, decoder.losses)
    assert bool(decoder.losses) == bool(losses_sentences(recording))
    path = folder / "rank_0_.log"
    path.write_bytes(data)
    digest_log(path)
    if everything:
        try:
            open_everything(path, folder)
        except TraceError:
            assert not records


@pytest.mark.parametrize("number", range(16))
def test_damaged_logs_open(number: int, tmp_path: Path) -> None:
    opens(number, tmp_path, everything=number < 8)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(10))
def test_a_thousand_damaged_logs_open(part: int, tmp_path: Path) -> None:
    for number in range(100 * part, 100 * part + 100):
        opens(number, tmp_path, everything=number % 5 == 0)


def test_a_changed_payload_is_said_and_not_read() -> None:
    data = log("2.13")
    at = data.index(b"torch.softmax(")
    records, decoder = decoded(data[:at] + b"X" + data[at + 1 :])
    line = data.rindex(b"\nV", 0, at)
    assert decoder.losses.altered == 1
    assert decoder.losses.first_altered == [data.count(b"\n", 0, line + 1) + 1]
    assert len(records) < len(decoded(data)[0])
    (said,) = losses_sentences(Recording(records, decoder.losses))
    assert re.search(r"1 payload unlike its checksum \(line \d+\)", said)


def test_a_foreign_line_is_said_with_its_number() -> None:
    rows = log("2.13").split(b"\n")
    rows[100:100] = [b"Epoch 1: loss 0.5"]
    _, decoder = decoded(b"\n".join(rows))
    assert decoder.losses.damaged == 1
    assert decoder.losses.first_damaged == [101]
    assert decoder.losses.bytes == len("Epoch 1: loss 0.5")
    assert not decoder.losses.altered


def test_a_log_that_ends_in_a_compile_is_incomplete() -> None:
    data = log("2.13")
    at = data.index(b"compilation_metrics")
    records, _ = decoded(data[: data.rindex(b"\nV", 0, at) + 1])
    end = Recording(records).end
    assert end is not None
    assert end.status == "incomplete"
    assert "within the compile of 0/0" in end.reason
