"""JSON that is safe to look at, valid in any encoding, and equal when it is parsed."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.trace.records import HookStatus
from tcw.viewers.chrome_trace import CHROME, chrome_trace
from tcw.viewers.json_report import failed_report
from tcw.viewers.json_text import json_text
from tcw.viewers.plain import plain
from tcw.viewers.recording import Recording
from tcw.workbench.cli.doctor import DoctorReport
from tests.no_torch import profiles

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
)


def is_safe(text: str) -> bool:
    return all(plain(line) == line for line in text.split("\n"))


def test_every_character_that_is_made_visible_is_escaped() -> None:
    every = "".join(map(chr, (*range(0xD800), *range(0xE000, sys.maxunicode + 1))))
    text = json_text(every)
    assert is_safe(text)
    assert json.loads(text) == every
    assert json_text("a\u202eb\x7f\x9b\u200b\xa0\U000e0001ä") == (
        '"a\\u202eb\\u007f\\u009b\\u200b\\u00a0\\udb40\\udc01ä"\n'
    )


@given(VALUES, st.sampled_from([0, 2]), st.sampled_from(["utf-8", "ascii", "latin-1", "none such"]))
def test_any_value_comes_back(value: Any, indent: int, encoding: str) -> None:
    text = json_text(value, indent, encoding)
    assert is_safe(text)
    assert json.loads(text) == value
    if encoding != "none such":
        text.encode(encoding)
    assert indent or text.count("\n") == 1


def test_what_json_cannot_carry() -> None:
    value = {"a": [math.nan, math.inf, -math.inf, "\ud800"], "\udfff": "\u202e"}
    assert json.loads(json_text(value)) == {"a": [None, None, None, "?"], "?": "\u202e"}


HOSTILE = "\u202e\x9b31m\x7f\u200b\u2028\ud800 name"


@pytest.mark.parametrize("what", ["report", "doctor", "chrome"])
def test_every_json_output_is_safe_to_look_at(what: str) -> None:
    if what == "report":
        text = json_text(failed_report("usage", HOSTILE, HOSTILE))
    elif what == "doctor":
        hook = HookStatus(name=HOSTILE, available=False, offers=HOSTILE)
        text = json_text(DoctorReport(ok=False, checks=(), hooks=(hook,)))
    else:
        records = profiles.masked_attention()
        hostile = msgspec.json.encode(records).replace(b"model.py", "\u202e\x7f.py".encode())
        found = msgspec.json.decode(hostile, type=list[Any])
        recording = Recording(msgspec.convert(found, type=list[profiles.AnyRecord]))
        text = json_text(chrome_trace(recording), 0)
        assert CHROME.begins(text.encode())
    assert is_safe(text)
    json.loads(text)
