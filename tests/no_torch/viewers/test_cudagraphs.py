"""CUDA graphs that torch did not use: findings, facts, and what a change does to them."""

from __future__ import annotations

from compiler.trace.records import CudagraphSkip, Location, Start
from tests.block_trace import block_trace
from viewers.json_diff import diff_report
from viewers.recording import Recording
from viewers.summary import summarise
from viewers.summary.budget import compare
from viewers.summary.differences import difference
from viewers.summary.facts import facts
from viewers.text.explain import explain
from viewers.text.lines import to_text

MUTATED = "mutated inputs (1 instances)"


def recordings() -> tuple[Recording, Recording]:
    """The block, and the block with a skip at its softmax and one without a line, twice."""
    records = block_trace()
    start = next(one for one in records if isinstance(one, Start))
    plain = Recording(records)
    file = start.settings.file
    line = next(n for n, text in enumerate(plain.source(file), 1) if "softmax" in text)
    at = Location(file=file, line=line, function="forward")
    skips = [
        CudagraphSkip(reason=MUTATED, compile_id="0/0", location=at),
        CudagraphSkip(reason="multiple devices"),
        CudagraphSkip(reason="multiple devices"),
    ]
    return plain, Recording([*records[:-1], *skips, records[-1]])


def test_each_reason_and_line_is_a_finding() -> None:
    plain, skipped = recordings()
    found = [one for one in summarise(skipped).findings if one.kind == "cudagraph"]
    assert [one.title for one in found] == [
        f"no CUDA graph: {MUTATED}", "no CUDA graph: multiple devices",
    ]  # fmt: skip
    first, second = found
    assert first.place is not None
    assert "softmax" in first.place.text
    assert (second.place, second.notes[1:]) == (None, ("2 times",))
    assert not [one for one in summarise(plain).findings if one.kind == "cudagraph"]
    text = to_text(explain(skipped, height=200), 100)
    assert f"no CUDA graph: {MUTATED}; kernels are launched one by one" in text


def test_each_is_a_fact_by_the_text_of_its_line() -> None:
    plain, skipped = recordings()
    before, after = (facts(one, summarise(one)) for one in (plain, skipped))
    own = {one.name: one.value for one in after if one.group == "cudagraph-skip"}
    assert own == {f"{MUTATED}: weights = torch.softmax(scores, dim=-1)": 1, "multiple devices": 2}
    worse = [one for one in compare({one.key: one.value for one in before}, after) if one.fails]
    assert {one.words for one in worse} == {
        f"a new skipped CUDA graph: {MUTATED}: weights = torch.softmax(scores, dim=-1)",
        "a new skipped CUDA graph: multiple devices ×2",
    }


def test_a_change_says_which_are_new_and_gone() -> None:
    plain, skipped = recordings()
    effects = [one for one in difference(plain, skipped).effects if one.kind == "cudagraph"]
    assert [(one.tone, one.words) for one in effects] == [
        ("bad", f"a CUDA graph is skipped: {MUTATED}"),
        ("bad", "a CUDA graph is skipped: multiple devices"),
    ]
    assert effects[0].place.startswith("block.py:")
    gone = [one for one in difference(skipped, plain).effects if one.kind == "cudagraph"]
    assert {one.tone for one in gone} == {"good"}
    assert "cudagraph" in {
        one.kind for one in diff_report(difference(plain, skipped), "a", "b").effects
    }
