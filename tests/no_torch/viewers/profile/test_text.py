from __future__ import annotations

import io
import json

import pytest
from msgspec import structs
from rich.cells import cell_len

from tcw.compiler.trace.provenance import Provenance
from tcw.compiler.trace.records import AnyRecord, CallProfile, Ceilings, EnginePart, Region, Timed
from tcw.viewers import json_report
from tcw.viewers.chrome_trace import chrome_trace
from tcw.viewers.file_names import FileNames
from tcw.viewers.json_text import json_text
from tcw.viewers.kit.spans import Span, words_of
from tcw.viewers.panes import account
from tcw.viewers.panes.view import Derived, View
from tcw.viewers.recording import Recording
from tcw.viewers.summary.profile import profiles_of
from tcw.viewers.tables.region_lines import HEADS, LINE, RegionColumn, RegionLines
from tcw.viewers.text.lines import to_text, write
from tcw.viewers.text.profile import causes_lines, profile
from tcw.viewers.words import seconds_text
from tests.conftest import Golden
from tests.no_torch import profiles, traces
from tests.no_torch.hostile import How, hostile
from tests.no_torch.profile_building import Call
from tests.no_torch.profiles import on_a_busy_machine

WIDTHS = {"masked_attention": (80, 120), "training": (100,), "trials": (100,), "modes": (120,)}


def with_call(records: list[AnyRecord], **fields: object) -> list[AnyRecord]:
    """The records with other fields in the profile of the call."""
    return [
        structs.replace(record, **fields) if isinstance(record, CallProfile) else record
        for record in records
    ]


@pytest.mark.parametrize("name", profiles.EVERY)
def test_text(name: str, golden: Golden) -> None:
    recording = Recording(profiles.EVERY[name]())
    for width in WIDTHS.get(name, (100,)):
        text = to_text(profile(recording, width, 40, trace="run.tcw"), width)
        golden(f"profile/{name}-{width}.txt", text)


@pytest.mark.parametrize("name", profiles.EVERY)
@pytest.mark.parametrize("width", [80, 97, 120, 200])
def test_nothing_is_wider_than_the_terminal(name: str, width: int) -> None:
    text = to_text(profile(Recording(profiles.EVERY[name]()), width), width)
    assert max(cell_len(row) for row in text.splitlines()) <= width


def test_it_says_which_differences_are_between_the_same_calls() -> None:
    records = [
        structs.replace(one, same="calls") if isinstance(one, Region) else one
        for one in profiles.masked_attention()
    ]
    assert "6 in noise, 6 the same calls" in to_text(profile(Recording(records), 120), 120)


@pytest.mark.parametrize("name", ["masked_attention", "graph_break"])
def test_on_a_busy_machine_there_are_the_times_of_whole_calls(name: str) -> None:
    records = on_a_busy_machine(profiles.EVERY[name]())
    text = to_text(profile(Recording(records), 120), 120)
    head = next(record for record in records if isinstance(record, CallProfile))
    assert text.startswith("Speed not measured: the machine is busy")
    assert f"eager {seconds_text(head.eager.median)}" in text
    assert "whole calls were timed, and no part of them" in text
    assert "host and rest" not in text
    assert "no cause was found" not in text
    assert "account" not in text
    assert ("graph break" in text) is (name == "graph_break")


def test_the_first_line_names_the_cause_and_the_line() -> None:
    for name, words in (
        ("masked_attention", "block.py:21 fused attention became 2 products and a softmax"),
        ("graph_break", "block.py:27 graph break (branch on tensor data)"),
        ("float_argument", "block.py:24 each call recompiles for a different temperature"),
    ):
        assert words in profile(Recording(profiles.EVERY[name]()))[0].text


def test_parts_that_come_to_far_more_than_the_call_are_not_shown() -> None:
    """Whatever the reason: the whole call was measured, and its account would be nonsense."""
    records = [
        structs.replace(record, contended=False, exceeded=3.16)
        if isinstance(record, CallProfile)
        else record
        for record in on_a_busy_machine(profiles.block_profile())
    ]
    text = "\n".join(line.text for line in profile(Recording(records)))
    assert not text.startswith("Speed not measured"), "the whole call is"
    assert "came to 3.16x of it" in text
    assert "remainder" not in text


def test_a_recompile_is_not_what_makes_a_call_slower() -> None:
    slower = with_call(profiles.float_argument(), speedup=0.25, noise=0.02)
    first = profile(Recording(slower))[0].text
    assert first.startswith("4.00x slower than eager, and block.py:24 each call recompiles")


def test_top_and_sort() -> None:
    recording = Recording(profiles.block_profile())
    text = to_text(profile(recording, 100, sort="line", top=2), 100)
    table = text.partition("\n\n")[2].partition("why")[0]
    assert "layer norm" in table
    assert "gelu" not in table
    assert "… 2 more" in table


def test_causes_beyond_the_screen_are_counted() -> None:
    recording = Recording(profiles.block_profile())
    causes = profiles_of(recording)[0].causes[:1] * 9
    lines = causes_lines(causes, FileNames(), 100, 1, None, both=False)
    assert lines[-1].text == "…  5 more: --top 9"


def test_both_engines() -> None:
    first, second = profiles.block_profile(), profiles.masked_attention()
    records = [
        EnginePart(engine="inductor"),
        *first[4:-1],
        EnginePart(engine="tcw"),
        *(one for one in second[4:] if not isinstance(one, Ceilings)),
    ]
    text = to_text(profile(Recording([*first[:4], *records]), 100), 100)
    rows = text.splitlines()
    assert rows[0].startswith("inductor  1.05x faster than eager, but block.py:29")
    assert text.count("ceilings  AMD EPYC 9B14") == 2
    assert not any(row.endswith("--engine tcw") for row in rows)
    assert any(row.startswith("tcw  1.32x slower than eager: block.py:21") for row in rows)


def test_without_a_profile() -> None:
    text = to_text(profile(Recording(traces.clean())), 100)
    assert text.startswith("No call was profiled")
    text = to_text(profile(Recording(traces.failed())), 100)
    assert "RuntimeError" in text


@pytest.mark.parametrize("how", ["added", "replaced", "long"])
@pytest.mark.parametrize("name", profiles.EVERY)
def test_hostile(how: How, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    recording = Recording(hostile(profiles.EVERY[name](), how))
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", newline="")
    write(profile(recording, 100), stream, 100)
    stream.flush()
    assert all(row.isprintable() for row in raw.getvalue().decode("ascii").split("\n"))
    assert json.loads(json_text(json_report.report(recording)))
    assert json.loads(json.dumps(chrome_trace(recording)))


def test_what_runs_between_graphs_has_its_lines_the_costliest_first() -> None:
    call = Call()
    slow = call.between("aten.sort.default", 40.0)
    call.region("sort", [slow], [call.operation("aten.sort.default", 28, 41.0)], 2.0)
    quick = call.between("aten.mean.default", 3.0)
    call.region("mean", [quick], [call.operation("aten.mean.default", 27, 4.0)], 2.0)
    records = call.done()
    words = "outside all graphs at block.py:28, 27"
    assert words in to_text(profile(Recording(records), 120), 120)
    view = View(Derived(Recording(records), Provenance(records)))
    assert any(words in row.text for row in account.content(view, 120).rows)


def test_a_label_without_a_line_takes_the_room_of_the_line() -> None:
    texts = ["▸ 7 in noise, 7 the same calls", "1.0", "2.0", "+1.0", "0.5"]
    cells: dict[str, Span] = {
        head: (text, "dim") for head, text in zip(HEADS[1:], texts, strict=True)
    }
    sizes = [2, 16, 20, 8, 8, 8, 5]
    table = RegionLines(tuple(map(RegionColumn, ["", *HEADS], sizes)), None, 0)
    whole = words_of(table.line({LINE: ("", "dim"), **cells}))
    assert "▸ 7 in noise, 7 the same calls" in whole
    beside = words_of(table.line({LINE: ("17–20", "dim"), **cells}))
    assert "▸ 7 in noise, 7 the›" in beside
    assert len(whole) == len(beside)


@pytest.mark.parametrize("width", [80, 97, 100, 120, 200])
def test_a_sum_in_noise_says_so_at_every_width(width: int) -> None:
    wide = Timed(median=123456.7e-6, spread=1.0, runs=30)
    records = [
        structs.replace(one, eager=wide, compiled=wide, noise=2.0, speedup=1.0)
        if isinstance(one, CallProfile)
        else one
        for one in profiles.block_profile()
    ]
    lines = to_text(profile(Recording(records), width), width).splitlines()
    place = next(number for number, line in enumerate(lines) if line.strip().startswith("sum"))
    said = "\n".join(lines[place : place + 2])
    assert "in noise" in said
    assert "›" not in said


def test_noise_as_large_as_the_times_is_no_equality() -> None:
    records = with_call(profiles.block_profile(), noise=1.7)
    assert profile(Recording(records))[0].text.startswith("Speed not measured: the machine is busy")


def test_what_was_found_is_no_contrast_to_a_busy_machine() -> None:
    records = with_call(profiles.float_argument(), noise=1.7)
    words = "Speed not measured: the machine is busy; block.py:24 each call recompiles"
    assert profile(Recording(records))[0].text.startswith(words)


def test_a_call_that_was_compiled_again_is_no_equality_either() -> None:
    records = with_call(profiles.block_profile(), compiled_again=1, noise=1.7)
    first = profile(Recording(records))[0].text
    assert first.startswith("Recompiled during timing: 1 graph compiled, for a reason")
