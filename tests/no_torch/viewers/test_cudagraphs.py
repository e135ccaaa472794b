"""CUDA graphs that were recorded, recorded again or not used: findings, facts, and what a change
does to them."""

from __future__ import annotations

from tcw.compiler.trace.cudagraph_reasons import NO_GPU
from tcw.compiler.trace.records import CudagraphRecording, CudagraphSkip, Location, Start
from tcw.viewers.json_diff import diff_report
from tcw.viewers.recording import Recording
from tcw.viewers.summary import summarise
from tcw.viewers.summary.budget import compare
from tcw.viewers.summary.cudagraphs import MANY_SIZES
from tcw.viewers.summary.differences import difference
from tcw.viewers.summary.facts import facts
from tcw.viewers.text.explain import explain
from tcw.viewers.text.lines import to_text
from tests.block_trace import block_trace

MUTATED = "mutated inputs (1 instances)"


def recordings() -> tuple[Recording, Recording]:
    """The block, and the block with a skip at its softmax and one without a line, twice."""
    records = block_trace()
    start = next(record for record in records if isinstance(record, Start))
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
    found = [finding for finding in summarise(skipped).findings if finding.kind == "cudagraph"]
    assert [one.title for one in found] == [
        f"no CUDA graph: {MUTATED}", "no CUDA graph: multiple devices",
    ]  # fmt: skip
    first, second = found
    assert first.place is not None
    assert "softmax" in first.place.text
    assert (second.place, second.notes[1:]) == (None, ("2 times",))
    assert not [finding for finding in summarise(plain).findings if finding.kind == "cudagraph"]
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
    effects = [
        effect for effect in difference(plain, skipped).effects if effect.kind == "cudagraph"
    ]
    assert [(effect.tone, effect.words) for effect in effects] == [
        ("bad", f"a new skipped CUDA graph: {MUTATED}"),
        ("bad", "a new skipped CUDA graph: multiple devices"),
    ]
    assert effects[0].place.startswith("block.py:")
    gone = [effect for effect in difference(skipped, plain).effects if effect.kind == "cudagraph"]
    assert {one.tone for one in gone} == {"good"}
    assert "cudagraph" in {
        effect.kind for effect in diff_report(difference(plain, skipped), "a", "b").effects
    }


STATIC = "static input data pointer changed"


def replayed() -> tuple[Recording, Recording]:
    """The block, and the block with two recorded graphs: one again in each of three calls, one for
    two further sizes, in two parts of which one is on the CPU."""
    records = block_trace()
    plain = Recording(records)
    start = next(record for record in records if isinstance(record, Start))
    line = next(
        n for n, text in enumerate(plain.source(start.settings.file), 1) if "softmax" in text
    )
    at = Location(file=start.settings.file, line=line, function="forward")

    def one(graph: str, call: int, **more: object) -> CudagraphRecording:
        fields = {"seconds": 0.25, "bytes": 1 << 20, **more}
        return CudagraphRecording(graph=graph, compile_id=graph[:3], call=call, **fields)

    made = [
        one("0/0/forward", 2),
        *(
            one("0/0/forward", call, again=call - 2, reason=STATIC, inputs=("primals_1",),
                location=at)
            for call in (3, 4, 5)
        ),
        *(
            one("1/0/inference", call, part=part, sizes=(size,))
            for call, size in ((2, 8), (3, 16), (4, 32))
            for part in ("partition_0", "partition_1")
        ),
        CudagraphSkip(reason="cpu ops", scope="part", compile_id="1/0", graph="1/0/inference",
                      location=at),
    ]  # fmt: skip
    return plain, Recording([*records[:-1], *made, records[-1]])


def test_recordings_that_are_made_again_are_findings() -> None:
    _, run = replayed()
    sizes, again, part = [
        finding for finding in summarise(run).findings if finding.kind == "cudagraph"
    ]
    assert (sizes.title, sizes.cost) == (
        "1 CUDA graph recorded again for 2 further sets of sizes", "1.0 s",
    )  # fmt: skip
    assert "cudagraph_skip_dynamic_graphs" in sizes.code
    assert again.cost == "750 ms", "the longest first"
    assert part.title == "a part of the graph is not in a CUDA graph: cpu ops"
    assert part.cost == "launches"
    assert part.place is not None


def test_a_graph_recorded_in_each_call() -> None:
    _, run = replayed()
    finding = next(finding for finding in summarise(run).findings if STATIC in finding.title)
    assert finding.title == f"1 CUDA graph recorded again 3 times: {STATIC} (primals_1)"
    assert finding.cost == "750 ms"
    assert finding.notes == ("in calls 3–5", "3.0 MB more memory")
    assert finding.place is not None
    assert "softmax" in finding.place.text
    text = to_text(explain(run, show=("cudagraphs",), height=200), 100)
    assert "replays  3 CUDA graphs recorded, 7 times again · 2.5 s · 10.0 MB" in text
    assert "1/0/inference partition_1  3 recordings" in text
    assert "for 3 sets of sizes" in text


def test_recordings_again_are_facts_and_effects() -> None:
    plain, run = replayed()
    found = {fact.name: fact.value for fact in facts(run, summarise(run))
             if fact.group == "cudagraph-again"}  # fmt: skip
    assert found == {STATIC: 3, MANY_SIZES: 4}
    before = {fact.key: fact.value for fact in facts(plain, summarise(plain))}
    worse = [one.words for one in compare(before, facts(run, summarise(run))) if one.fails]
    assert f"a new CUDA graph recorded again: {STATIC} ×3" in worse
    words = {
        effect.words for effect in difference(plain, run).effects if effect.kind == "cudagraph"
    }
    assert f"a new CUDA graph recorded again: {STATIC} (3 times)" in words
    gone = {effect.words for effect in difference(run, plain).effects if effect.kind == "cudagraph"}
    assert f"a CUDA graph recorded again gone: {STATIC}" in gone


def test_a_graph_without_a_gpu() -> None:
    """Torch counts a skip; nothing is launched on a GPU."""
    records = block_trace()
    run = Recording([*records[:-1], CudagraphSkip(reason=NO_GPU), records[-1]])
    (finding,) = [finding for finding in summarise(run).findings if finding.kind == "cudagraph"]
    assert finding.title == f"CUDA graphs are asked for, but {NO_GPU}"
    assert not finding.notes
