from __future__ import annotations

from dataclasses import replace

import msgspec
from rich.cells import cell_len

from tcw.compiler.trace.records import Advice, AnyRecord, End, Failure, FrameEnd, Graph, Speed
from tcw.viewers.kit.spans import width_of
from tcw.viewers.panes import chrome, findings, overview
from tcw.viewers.panes.rows import text_rows
from tcw.viewers.panes.targets import ToView
from tcw.viewers.panes.view import View
from tcw.viewers.tables.findings import advice_lines
from tests.no_torch.viewers.panes.conftest import view_of
from tests.no_torch.viewers.test_recompile_causes import repeated_recompiles


def texts(view: View, width: int = 110) -> list[str]:
    return [row.text for row in overview.content(view, width).rows]


def test_the_answer_stands_first(block: View) -> None:
    lines = texts(block)
    assert lines[1].split("   ") == [
        " No measurable speed-up",
        "eager 6.55 ms → compiled 6.16 ms",
        "1.06x ±24% (60 pairs)",
    ]
    assert "20.1 s of recompiling on calls 2 and 4" in lines[2]
    assert "One forward pass is cut into 3 graphs" in lines[4]
    assert "✗ block.py:26  if h.abs().max() > 8:" in lines[9]


def test_a_slower_model_says_so_in_the_colour_of_loss(block_records: list[AnyRecord]) -> None:
    records = [
        msgspec.structs.replace(record, speedup=0.5, compiled_ms=13.1, in_noise=False)
        if isinstance(record, Speed)
        else record
        for record in block_records
    ]
    row = overview.content(view_of(records), 110).rows[1]
    assert ("2.00x slower than eager", "bad") in row.body
    assert "eager 6.55 ms → compiled 13.1 ms (±24%, 60 pairs)   compiled in 35.7 s" in row.text


def test_the_words_of_an_ending_are_shown_as_they_are(block_records: list[AnyRecord]) -> None:
    reason = "killed by SIGKILL, compiled code was running"
    ended = End(status="crashed", seconds=1.0, reason=reason)
    records = [ended if isinstance(record, End) else record for record in block_records]
    assert texts(view_of(records))[1] == f" crashed   {reason}"


def test_while_it_records_the_answer_is_what_it_does(block_records: list[AnyRecord]) -> None:
    view = view_of(block_records[:60])
    view.live = True
    assert texts(view)[1].startswith(" Recording   ")


def test_findings_by_cost_with_line_and_fix(block: View) -> None:
    wide = [row.text.strip() for row in findings.content(block, 110).rows]
    assert wide[0].startswith("↻    12.8 s  call 4 recompiled 3 frames")
    assert wide[1].startswith("block.py:22  def forward")
    assert wide[2].startswith("idea  torch.compile(model, dynamic=True)")
    narrow = [row.text for row in findings.content(block, 80).rows]
    assert narrow[1].strip() == ":22   torch.compile(model, dynamic=True)"
    assert len(narrow) == 9


def test_numbers_are_never_cut_on_a_narrow_screen(block: View) -> None:
    for width in (40, 60, 80):
        rows = overview.content(block, width).rows
        assert "".join(row.text for row in rows).count("±24%") == 1
        head = [row.text for row in rows[:8]]
        assert any("60 pairs" in line and cell_len(line) <= width for line in head)


def test_a_recording_that_was_cut_off_says_where(block_records: list[AnyRecord]) -> None:
    view = view_of(block_records[:60])
    assert overview.content(view, 110).rows[1].text.startswith(" Cut off in autograd after 2.0 s")
    assert overview.content(view_of([], ""), 110).rows[1].text.startswith(" Nothing was recorded")
    guards = [row.text for row in overview.content(view, 110).rows if "guard" in row.text]
    assert not any("no guards" in line for line in guards)


def test_a_message_keeps_its_lines_and_names_where_the_rest_is(
    block_records: list[AnyRecord],
) -> None:
    message = "no fake tensor\n  Explanation: none is registered\n\n" + "  Hint\n" * 6
    failure = Failure(doing="call 1", type="TorchRuntimeError", message=message)
    view = view_of([block_records[0], failure, End(status="failed", seconds=1.0)], "")
    lines = texts(view)
    at = lines.index(" TorchRuntimeError: no fake tensor")
    assert lines[at + 1] == " Explanation: none is registered"
    assert lines[at + 6] == " … 2 more lines, in the output"
    assert overview.content(view, 110).rows[at + 6].opens == ToView("output")


def test_no_graph_is_counted_where_capture_failed(block_records: list[AnyRecord]) -> None:
    records = [
        msgspec.structs.replace(record, status="failed", ops=0)
        if isinstance(record, FrameEnd)
        else record
        for record in block_records
        if not isinstance(record, Graph)
    ]
    lines = texts(view_of(records))
    assert " No graph was captured" in lines
    assert not any("is one graph" in line for line in lines)


def test_after_a_failure_nothing_is_said_to_be_in_order(block_records: list[AnyRecord]) -> None:
    failure = Failure(doing="reading inputs", type="NoInputs", message="long " * 60)
    view = view_of([block_records[0], failure, End(status="failed", seconds=1.0)], "")
    lines = [row.text for row in overview.content(view, 60).rows]
    assert lines[0].strip() == "failed while reading inputs"
    assert all(cell_len(line) <= 60 for line in lines)
    found = [row.text for row in findings.content(view, 110).rows]
    assert not any("nothing needs attention" in line for line in found)


def test_a_fix_without_code_is_wrapped() -> None:
    lines = advice_lines([Advice(text="make the list shorter " * 9)], 13, 101)
    rows = text_rows(lines, 102)
    assert " ".join(" ".join(row.text for row in rows).split()).count("shorter") == 9
    assert all(cell_len(row.text) <= 102 for row in rows)


def test_a_fix_is_told_in_full(block: View) -> None:
    words = " ".join(row.text for row in findings.content(block, 102).rows)
    told = " ".join(words.split())
    for finding in block.summary.findings:
        fix = finding.fixes[0]
        # the reason beside one line of code ends without a full stop, and is whole otherwise
        beside = len(fix.code.strip().splitlines()) == 1
        words = fix.text.removesuffix(".") if beside else fix.text
        assert " ".join(words.split()) in told


def test_a_name_of_wide_characters_is_cut_by_cells(block: View) -> None:
    piece = block.summary.calls[0].pieces[0]
    wide = replace(piece, function="注意力" * 10, resumes_at=None)
    short = replace(piece, function="f", resumes_at=None)
    starts = []
    for one in (wide, short):
        lead = overview._bar(one, most=1, ids=3, label=28).body[:3]
        starts.append(width_of(lead))
    assert starts[0] == starts[1]
    assert "›" in overview._bar(wide, most=1, ids=3, label=28).text


def test_a_long_cost_does_not_run_into_the_title(block_records: list[AnyRecord]) -> None:
    slow = [
        msgspec.structs.replace(record, seconds=4_985.0) if isinstance(record, FrameEnd) else record
        for record in block_records
    ]
    for width in (80, 120):
        rows = [row.text for row in findings.content(view_of(slow), width).rows]
        assert any("83 min 5 s  call" in row for row in rows), rows


def test_compiles_of_the_timing_are_told_where_no_call_compiled_again() -> None:
    view = view_of(repeated_recompiles())
    assert "of recompiling in the timed calls" in texts(view)[2]
    names = [row.text.strip() for row in chrome.spine(view, 60).rows]
    assert "timing" in names


def test_names_are_cut_only_for_want_of_room_and_the_columns_are_straight(block: View) -> None:
    name = "SwitchTransformersSparseMLP.forward"
    call = block.summary.cut
    assert call is not None
    pieces = tuple(
        replace(call.pieces[0], compile_id=id, function=name, resumes_at=None, cuts=(), ops=ops)
        for id, ops in (("0/0", 4), ("10/0", 0))
    )

    def bars(width: int) -> list[str]:
        rows = overview._cut(block, replace(call, pieces=pieces), width)[2:]
        return [row.text for row in rows]

    first, second = bars(110)
    assert name in first
    assert first.index(name) == second.index(name)
    assert first.index("█") + 1 == second.index("no ops")
    assert all(name[:27] + "›" in row for row in bars(78))
