"""Findings are grouped by cause, then site, never by record, and ranked by what they cost."""

from __future__ import annotations

import msgspec
import pytest

from tcw.compiler.trace.records import (
    Advice,
    AliasDifference,
    AnyRecord,
    Crossing,
    Decided,
    EagerFallback,
    End,
    FrameEnd,
    FrameStart,
    FusionRound,
    Graph,
    Location,
    Numerics,
    OutputError,
    Partition,
    Phase,
    RandomOperation,
    SavedValue,
    WrongStage,
)
from tcw.viewers.markdown.report import report
from tcw.viewers.recording import Recording
from tcw.viewers.summary import Summary, summarise
from tcw.viewers.summary.findings import findings_of_both
from tcw.viewers.summary.numerics import numerics_words
from tcw.viewers.text.explain import explain
from tcw.viewers.text.lines import to_text
from tests.block_trace import block_trace
from tests.decided import pair_test
from tests.no_torch import traces


def summary(records: list[AnyRecord]) -> Summary:
    return summarise(Recording(records))


@pytest.fixture(scope="module")
def block() -> Summary:
    return summary(block_trace())


def test_a_break_compiled_three_times_is_one_site(block: Summary) -> None:
    printed, branched = block.breaks
    assert (printed.gb, printed.count, printed.compile_ids) == ("GB0059", 3, ("0/0", "0/1", "0/2"))
    assert (branched.gb, branched.count) == ("GB0170", 2)
    assert [site.extra_graphs for site in block.breaks] == [1, 1]
    assert branched.crossings.bytes == (512 << 10) * 2 + 1
    assert branched.host_waits
    assert not printed.host_waits


def test_ranked_by_measured_cost(block: Summary) -> None:
    costs = [(finding.kind, finding.cost) for finding in block.findings]
    assert costs == [
        ("recompile", "12.8 s"),
        ("recompile", "7.3 s"),
        ("break", "+1 graph"),
        ("break", "+1 graph"),
    ]
    assert [finding.title for finding in block.findings[2:]] == [
        "branch on tensor data (GB0170)",
        "print() (GB0059)",
    ]


def test_counts(block: Summary) -> None:
    assert (block.graphs, block.compiles) == (3, 7)
    assert block.guards == 69 + 34 + 46
    assert block.cut is not None
    assert [piece.compile_id for piece in block.cut.pieces] == ["0/0", "1/0", "2/0"]
    assert [piece.resumes_at for piece in block.cut.pieces] == [None, 24, 26]
    assert [call.hits for call in block.calls] == [
        (),
        ("1/0", "2/0"),
        ("0/1", "1/0", "2/0"),
        (),
    ]
    assert block.calls[2].arguments["x"] == "4×128×256"
    assert block.calls[3].changed == {"x": "6×128×256"}


def test_what_timing_compiles_is_no_cut_of_the_model() -> None:
    """Recompiles outside the calls come after them, and say nothing about graph breaks."""
    place = Location(file="/w/m.py", line=1, function="forward")
    again = [
        FrameStart(
            compile_id=f"0/{n}", attempt=0, function="forward", location=place, call=0, at=9.0
        )
        for n in (1, 2)
    ]
    first = FrameStart(
        compile_id="0/0", attempt=0, function="forward", location=place, call=1, at=2.0
    )
    found = summary([msgspec.structs.replace(traces.call(), at=1.0), first, *again])
    assert [call.number for call in found.calls] == [1, 0]
    assert found.cut is not None
    assert found.cut.number == 1
    early = summary([again[0], msgspec.structs.replace(traces.call(), at=10.0)])
    assert [call.number for call in early.calls] == [0, 1]


def test_wrong_results_come_first() -> None:
    found = summary([*traces.slower()[:-1], traces.graph_break(), traces.end()]).findings
    assert [one.kind for one in found] == ["numerics", "slower", "break"]


def test_a_slower_result_is_a_finding() -> None:
    records = [*traces.clean()[:-3], traces.speed(1.0, 2.0), traces.end()]
    (finding,) = summary(records).findings
    assert (finding.kind, finding.cost) == ("slower", "+1.00 ms")
    assert "tcw profile" in finding.code
    eager = EagerFallback(reason="unsupported", kind="other", function="forward", call=1)
    explained = summary([*records[:-1], eager, traces.end()]).findings
    assert [one.kind for one in explained] == ["fallback"]


def test_a_slower_result_names_what_its_code_does_badly() -> None:
    again = SavedValue(node="exp", choice="recomputed", bytes=1 << 20, location=traces.at(7))
    split = Partition(
        compile_id="0/0", joint="0/0/joint", forward="0/0/forward", backward="0/0/backward",
        values=(again,),
    )  # fmt: skip
    records = [*traces.clean()[:-3], split, traces.speed(1.0, 2.0), traces.end()]
    (finding,) = summary(records).findings
    assert "computes exp of the forward again" in finding.title
    assert finding.place is not None
    assert finding.place.line == 7


def test_calls_that_compile_again_while_they_are_timed_need_attention() -> None:
    again = msgspec.structs.replace(traces.speed(1.0, 2.0), compiled_again=3)
    (finding,) = summary([*traces.clean()[:-3], again, traces.end()]).findings
    assert (finding.kind, finding.cost) == ("slower", "again")


def test_a_difference_lost_in_the_noise_of_a_busy_machine_is_not_measured() -> None:
    found = summary([*traces.clean()[:-3], traces.speed(2.36, 1.0, noise=2.58), traces.end()])
    assert found.verdict.text == (
        "Speed not measured: the machine is busy: eager 2.36 ms, compiled 1.00 ms, ±258% (40 pairs)"
    )


def test_two_breaks_of_one_line_share_no_graph() -> None:
    first = traces.graph_break(gb="GB0294")
    second = traces.graph_break(gb="GB0156", compile_id="1/0")
    before = Graph(id="0/0", kind="captured", compile_id="0/0", nodes=(), ops=2)
    graph = Graph(id="2/0", kind="captured", compile_id="2/0", nodes=(), ops=2)
    records = [
        *traces.opening(),
        first,
        before,
        traces.resumed("1/0"),
        second,
        traces.resumed("2/0"),
        graph,
        traces.end(),
    ]
    both = summary(records)
    assert [site.extra_graphs for site in both.breaks] == [0, 1]
    (finding,) = both.findings
    assert (finding.cost, finding.compile_ids) == ("+1 graph", ("1/0", "0/0"))
    assert finding.notes[-1].startswith("also breaks there: ")
    assert finding.notes[-1].endswith("(GB0294)")


def test_a_restart_does_not_resume_after_its_own_break() -> None:
    """As of `print(x.item())`: what resumes after `item` starts again when it meets `print`."""
    item = Advice(text="Keep it a tensor", code="print(x)")
    logged = Advice(text="Allow it to be moved", code="add(print)")
    started = traces.resumed("1/0")
    records = [
        *traces.opening(),
        traces.graph_break(gb="GB0124", advice=(item,)),
        Graph(id="0/0", kind="captured", compile_id="0/0", nodes=(), ops=2),
        started,
        traces.graph_break(gb="GB0059", compile_id="1/0", advice=(logged,)),
        msgspec.structs.replace(started, attempt=1),
        traces.resumed("2/0"),
        Graph(id="2/0", kind="captured", compile_id="2/0", nodes=(), ops=2),
        traces.end(),
    ]
    both = summary(records)
    assert [site.more_graphs for site in both.breaks] == [0, 1]
    (finding,) = both.findings
    assert finding.cost == "+1 graph"
    assert "no graph precedes it" not in finding.notes
    shown = to_text(explain(Recording(records)), 100)
    assert "idea  add(print)" in shown
    assert "and   print(x)" in shown, "each needs its own"
    assert "print(x)" in report(Recording(records)).partition("<details>")[0]


@pytest.mark.parametrize(
    ("eager", "compiled", "noise", "words"),
    [
        (1.0, 10.0, 2.0, "At least 3.33x slower than eager: "),
        (10.0, 1.0, 0.6, "At least 4.00x faster: "),
        (10.0, 1.0, 0.1, "10.00x faster: "),
    ],
)
def test_a_factor_with_much_noise_is_given_as_what_is_certain(
    eager: float, compiled: float, noise: float, words: str
) -> None:
    speed = traces.speed(eager, compiled, noise=noise)
    found = summary([*traces.clean()[:-3], speed, traces.end()])
    assert found.verdict.text.startswith(words)
    costs = [finding.cost for finding in found.findings if finding.kind == "slower"]
    assert costs == (["slower"] if compiled > eager else []), "no figure that is not certain"


def test_a_backend_that_fails_is_one_finding() -> None:
    """torch reports a graph break where it falls back to eager."""
    place = traces.at(7)
    eager = EagerFallback(
        reason="it failed", kind="backend", function="forward", call=1, compile_id="0/0",
        location=place,
    )  # fmt: skip
    failed = traces.graph_break(gb="GB0219", location=place)
    (finding,) = summary([*traces.opening(), failed, eager, traces.end()]).findings
    assert finding.kind == "fallback"
    other = traces.graph_break(gb="GB0219", location=place, compile_id="1/0")
    kinds = [
        one.kind
        for one in summary([*traces.opening(), failed, other, eager, traces.end()]).findings
    ]
    assert kinds == ["fallback", "break"]


def test_breaks_of_different_kinds_with_one_fix_are_one_finding() -> None:
    """As in DistributedDataParallel's forward, where Dynamo stops at one function after another."""
    fix = (Advice(text="Compile it before", code="model = Wrapper(torch.compile(model))"),)
    first = traces.graph_break(gb="GB0156", advice=fix)
    second = traces.graph_break(gb="GB0007", location=traces.at(9), advice=fix)
    (finding,) = summary([*traces.opening(), first, second, traces.end()]).findings
    assert finding.notes[-1].startswith("also breaks at norm.py:9: ")
    assert finding.notes[-1].endswith("(GB0007)")
    other = msgspec.structs.replace(second, gb="GB0156")
    assert len(summary([*traces.opening(), first, other, traces.end()]).findings) == 2


def test_a_break_that_a_library_asks_for_is_one_finding() -> None:
    """As an optimizer's step: in the user's graph, and when torch compiles the step by itself."""
    asked = Location(file="/torch/optim/optimizer.py", line=79)
    first = traces.graph_break(gb="GB0025", inside=asked)
    second = traces.graph_break(gb="GB0025", location=asked, compile_id="1/0")
    (finding,) = summary([*traces.opening(), first, second, traces.end()]).findings
    assert finding.place is not None
    assert finding.place.line == first.location.line
    assert finding.compile_ids == ("0/0", "1/0")
    assert finding.notes[-1] == "torch reports it at optimizer.py:79"
    third = msgspec.structs.replace(first, location=traces.at(9))
    (finding,) = summary([*traces.opening(), first, second, third, traces.end()]).findings
    assert finding.notes[-1].startswith("also breaks at norm.py:9: ")
    other = msgspec.structs.replace(second, location=Location(file=asked.file, line=80))
    assert len(summary([*traces.opening(), first, other, traces.end()]).findings) == 2


def test_a_break_before_all_operations_adds_no_graph() -> None:
    rest = Graph(id="1/0", kind="captured", compile_id="1/0", nodes=(), ops=2)
    records = [*traces.opening(), traces.graph_break(), traces.resumed("1/0"), rest, traces.end()]
    (finding,) = summary(records).findings
    assert (finding.cost, finding.notes[0]) == ("cut", "no graph precedes it")
    before = Graph(id="0/0", kind="captured", compile_id="0/0", nodes=(), ops=2)
    (finding,) = summary([*records[:-1], before, records[-1]]).findings
    assert finding.cost == "+1 graph"


def test_a_break_whose_rest_compiles_to_nothing_adds_no_graph() -> None:
    records = [*traces.opening(), *traces.frame(), traces.graph_break(), traces.end()]
    (finding,) = summary(records).findings
    assert (finding.cost, finding.notes[0]) == ("cut", "no graph follows it")
    growing = traces.without(records, End)
    assert summary(growing).findings[0].cost == "cut"


def test_a_break_in_an_inlined_function_is_linked_by_the_callers_line() -> None:
    stack = (traces.at(8), Location(file="/home/ada/other.py", line=70))
    deep = traces.graph_break(location=stack[1], stack=stack)
    rest = msgspec.structs.replace(traces.resumed("1/0"), resumes_at=8)
    graph = Graph(id="1/0", kind="captured", compile_id="1/0", nodes=(), ops=2)
    (site,) = summary([*traces.opening(), deep, rest, graph, traces.end()]).breaks
    assert site.extra_graphs == 1


def test_a_skipped_frame_runs_eagerly() -> None:
    (finding,) = summary(
        [traces.frame()[0], traces.graph_break(outcome="skip-frame"), traces.end()]
    ).findings
    assert finding.cost == "eager"
    assert "the whole function runs in Python" in finding.notes


def test_symbolic_crossings_have_no_bytes() -> None:
    symbolic = msgspec.structs.replace(traces.X, shape=("s0", 8), bytes=None)
    crossing = (Crossing(name="x", tensor=traces.X), Crossing(name="y", tensor=symbolic))
    (finding,) = summary([traces.graph_break(crossing=crossing)]).findings
    assert "x, y cross (size unknown)" in finding.notes


def test_our_advice_comes_before_torchs() -> None:
    (finding,) = summary([traces.graph_break()]).findings
    assert [fix.by for fix in finding.fixes] == ["tcw", "torch"]
    assert finding.code == "torch.where(…)"


def test_columns_are_characters_not_bytes() -> None:
    """torch counts bytes of UTF-8."""
    line = '    größe = "ä"; if gain.sum() > 0: pass'
    start = line.encode().index(b"gain")
    record = traces.graph_break(
        source_line=line, location=Location(file="a.py", line=9, column=start, end_column=start + 4)
    )
    place = summary([record]).breaks[0].place
    assert line[place.column : place.end_column] == "gain"


def pair(
    number: int, rule: str = "", round_: int = 1, fused: bool = False, graph: str = "g"
) -> Decided:
    return pair_test(
        id=f"inductor/g/fuse/{number}",
        graph=graph,
        round=round_,
        phase="screen",
        first=f"op{number}",
        second=f"op{number + 1}",
        fused=fused,
        rule=rule,
        reason="no shared data",
    )


def test_a_pair_tested_again_each_round_is_one_pair() -> None:
    records: list[AnyRecord] = [
        pair(number, "no-shared-data", round_) for round_ in (1, 2, 3) for number in range(1000)
    ]
    records += [pair(2000, fused=True), pair(3000, fused=True), pair(2000, fused=True, round_=2)]
    records.append(FusionRound(graph="g", round=1, fused=(("op2001", "op2000", "f"),)))
    fusion = summary(records).fusion
    assert fusion.fused == 1
    assert fusion.rejected == {"no-shared-data": 1000}
    verdicts = {one.id: (one.verdict, one.tests) for one in fusion.graphs[0].pairs}
    assert verdicts["inductor/g/fuse/7"] == ("rejected", 3)
    assert verdicts["inductor/g/fuse/2000"] == ("fused", 2)
    assert verdicts["inductor/g/fuse/3000"] == ("passed", 1)


def test_predictions_are_no_part_of_the_sums() -> None:
    """What was compiled for a GPU that is not there is not what runs."""
    predicted = pair(1, "between", graph="0/0/forward@sm_90/lowered")
    phases = [
        Phase(id=1, name="dynamo", start=0, seconds=10),
        Phase(id=2, name="predict sm_90", start=1, seconds=6, parent=1),
        Phase(id=3, name="GraphLowering.run", start=2, seconds=4, parent=2),
    ]
    found = summary([predicted, *phases])
    assert found.fusion.rejected == {}
    assert [(stage.stage, stage.seconds) for stage in found.stages] == [("capture", 4)]


def test_build_threads_are_kept_apart() -> None:
    phases = [
        Phase(id=1, name="dynamo", start=0, seconds=10, thread=1),
        Phase(id=2, name="async_compile.wait", start=1, seconds=6, parent=1, thread=1),
        Phase(id=3, name="compile_file", start=1, seconds=9, thread=2),
    ]
    found = summary(list(phases))
    assert [(stage.stage, stage.seconds) for stage in found.stages] == [
        ("build", 6),
        ("capture", 4),
    ]
    built = {phase.name: phase for phase in found.phases}["compile_file"]
    assert (built.self_seconds, built.beside_seconds) == (0, 9)


def test_own_time_of_phases_adds_up() -> None:
    """A phase in one of its own name is not counted twice."""
    phases = [
        Phase(id=1, name="compile", start=0, seconds=10),
        Phase(id=2, name="pass", start=1, seconds=6, parent=1),
        Phase(id=3, name="pass", start=2, seconds=4, parent=2),
        Phase(id=4, name="g++", start=3, seconds=1, parent=3),
    ]
    found = {phase.name: phase for phase in summary(list(phases)).phases}
    assert (found["pass"].seconds, found["pass"].self_seconds, found["pass"].count) == (6, 5, 2)
    assert sum(one.self_seconds for one in found.values()) == 10


def test_an_empty_trace_has_a_summary() -> None:
    empty = summary([])
    assert (empty.graphs, empty.findings, empty.status) == (0, (), "incomplete")


def test_every_prefix_of_a_recording_has_a_summary() -> None:
    """A recording that grows is shown as it grows."""
    records = block_trace()
    for size in range(0, len(records), 23):
        summary(records[:size])


def test_a_backward_compiled_later_is_part_of_what_was_waited_for() -> None:
    """torch compiles it at the first backward call, behind the frame."""
    records = [
        traces.size_change("0/1", "x", 4, 6),
        FrameEnd(compile_id="0/1", status="compiled", seconds=2.0),
        Phase(id=1, name="dynamo", start=0, seconds=2, compile_id="0/1"),
        Phase(id=2, name="entire_backward_compile", start=1, seconds=1, parent=1, compile_id="0/1"),
        Phase(id=3, name="entire_backward_compile", start=3, seconds=7, compile_id="0/1"),
        Phase(id=4, name="predict sm_90", start=4, seconds=3, parent=3, compile_id="0/1"),
        Phase(id=5, name="predict sm_90", start=5, seconds=1, parent=4, compile_id="0/1"),
        Phase(id=6, name="entire_backward_compile", start=3, seconds=9, compile_id="0/0"),
    ]
    assert summary(list(records)).recompiles[0].seconds == pytest.approx(2 + 7 - 3)


def test_advice_may_be_missing() -> None:
    bare = traces.graph_break(advice=())
    assert summary([bare]).findings[0].fixes == ()
    torch_only = traces.graph_break(advice=(Advice(text="a", by="torch"),))
    assert summary([torch_only]).findings[0].code == ""


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("out", "in the output of call 2:"),
        ("out[0].logits", "in output[0].logits of call 2:"),
        ("grad fc1.weight", "in the gradient of fc1.weight of call 2:"),
    ],
)
def test_where_results_differ_is_a_sentence(path: str, words: str) -> None:
    worst = OutputError(call=2, path=path, max_abs=0.5, max_rel=0.2)
    numbers = Numerics(compared=1, max_abs=0.5, max_rel=0.2, within=False, worst=(worst,))
    (finding,) = [one for one in summary([numbers]).findings if one.kind == "numerics"]
    assert f"differ from eager {words} max error 0.5" in finding.title


def test_random_numbers_that_are_drawn_again_come_first() -> None:
    place = Location(file="/home/me/model.py", line=10)
    partition = Partition(
        compile_id="0/0",
        joint="0/0/joint",
        forward="0/0/forward",
        backward="0/0/backward",
        drawn_again=(RandomOperation(name="dropout", location=place),),
        values=(),
    )
    wrong = Numerics(compared=1, max_abs=0.5, max_rel=0.2, within=False)
    first, second = summary([partition, wrong]).findings
    assert first.source == partition
    assert first.place is not None
    assert first.place.line == 10
    assert "dropout" in first.title
    assert second.source == wrong


@pytest.mark.parametrize("within", [True, None, False])
def test_other_shared_memory_is_a_finding_although_values_are_equal(within: bool | None) -> None:
    shared = AliasDifference(call=1, path="out", other="inputs[0]", compiled="memory", eager="")
    numbers = Numerics(
        compared=1, max_abs=0.0, max_rel=0.0, within=within, equal=True, aliases=(shared,)
    )
    (finding,) = [one for one in summary([numbers]).findings if one.kind == "numerics"]
    said = " ".join((finding.title, *finding.notes))
    assert "out shares memory with inputs[0], not in eager" in said
    assert numerics_words(numbers) != "results equal bit for bit"


@pytest.mark.parametrize(
    ("found", "words", "line"),
    [
        ({"stage": "capture", "node": "z_1", "operation": "operator.mul", "graph": "0/0"},
         "is of operator.mul (z_1 of 0/0)", 24),
        ({"stage": "autograd", "node": "mul_2", "operation": "aten.gelu.default"},
         "is of gelu (mul_2", 24),
        ({"stage": "capture", "reason": "no graph is wrong"}, "no graph is wrong", 24),
        ({"stage": "kernels", "kernel": "k4", "location": None}, "kernel k4 (", 18),
        ({"reason": "not found within 20 s", "right": ("capture",), "location": None},
         "capture right; which stage is wrong was not found: not found within 20 s", None),
    ],
)  # fmt: skip
def test_wrong_results_name_the_stage_and_the_line(
    found: dict[str, object], words: str, line: int | None
) -> None:
    file = Recording(block_trace()).settings
    assert file is not None
    about = {"location": Location(file=file.file, line=24), **found}
    stage = WrongStage(call=2, engine="inductor", result="out", **about)  # type: ignore[arg-type]
    worst = OutputError(call=2, path="out", max_abs=0.5, max_rel=0.2)
    numbers = Numerics(compared=1, max_abs=0.5, max_rel=0.2, within=False, worst=(worst,))
    (finding,) = [
        one for one in summary([*block_trace(), numbers, stage]).findings if one.kind == "numerics"
    ]
    assert words in finding.notes[0]
    assert (finding.place.line if finding.place else None) == line
    codes = [fix.code for fix in finding.fixes]
    assert codes == ([] if line is None else [f"{codes[0].partition(' --call')[0]} --call 2"])
    assert not codes or codes[0].startswith("tcw repro ")


@pytest.mark.parametrize(
    ("type", "context", "title"),
    [
        ("Data-dependent branching", "attempted to jump with TensorVariable()", "tensor data"),
        ("Data-dependent branching", "attempted to jump with NumpyNdarrayVariable()", "NumPy"),
        ("Observed exception", "raised exception KeyError('a\\n b')", "observed KeyError: a b"),
        ("Observed exception", "raised exception E(ConstantVariable(str: 'a'))", "observed E"),
        ("Observed exception", "raised exception E()", "observed E"),
        ("Observed exception", "", "Observed exception"),
    ],
)
def test_a_break_says_what_stopped_it(type: str, context: str, title: str) -> None:
    (site,) = summary([traces.graph_break(type=type, context=context)]).breaks
    assert title in site.title


@pytest.mark.parametrize("within", [True, False])
def test_both_distances_from_float64_are_said(within: bool) -> None:
    numbers = Numerics(
        compared=1, max_abs=0.5, max_rel=0.2, within=within, compiled_off=0.25, eager_off=0.125
    )
    found = summary([numbers])
    words = "off float64 by 0.25, eager by 0.12"
    assert [f"assert_close; {words}" in finding.notes[0] for finding in found.findings] == [
        True
    ] * (not within)
    assert (numerics_words(numbers) == f"max error 0.5 ({words})") is within


def test_two_lines_with_one_title_stay_two_findings() -> None:
    """Of one recording, and of two engines."""
    sites = [traces.graph_break(location=traces.at(line)) for line in (6, 8)]
    records = [*traces.opening(), *traces.frame()[:1], *sites, *traces.frame()[1:], traces.end()]
    found = summary(records).findings
    assert len({one.title for one in found}) < len(found) == 2
    assert findings_of_both(found, found) == found
    assert findings_of_both(found, found[::-1]) == found, "ranked by the costs that are shown"
    assert findings_of_both(found[1:], found) == found
    assert "2 findings" in report(Recording(records))
