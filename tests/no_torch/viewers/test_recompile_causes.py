"""Recompiles are grouped by cause: what changed, which guard says so, what to do."""

from __future__ import annotations

import msgspec
import pytest

from tcw.compiler.trace.records import (
    Advice,
    AnyRecord,
    Argument,
    CallStart,
    EagerFallback,
    FailedGuard,
    FrameEnd,
    FrameStart,
    Guard,
    Guards,
    Location,
    Recompile,
)
from tcw.viewers.recording import Recording
from tcw.viewers.summary import Summary, summarise
from tcw.viewers.summary.recompiles import UNEXPLAINED, change_of, recompile_causes
from tests.block_trace import block_trace
from tests.no_torch import traces


def summary(records: list[AnyRecord]) -> Summary:
    return summarise(Recording(records))


@pytest.fixture(scope="module")
def block() -> Summary:
    return summary(block_trace())


def test_one_changed_batch_is_one_cause(block: Summary) -> None:
    """Three frames were compiled again for it, under two names."""
    first, second = block.recompiles
    assert first.compile_ids == ("0/2", "1/1", "2/1")
    assert first.seconds == pytest.approx(7.4 + 2.5 + 2.9)
    assert (first.change.text, first.calls) == ("x.size(0) 4 → 6", (4,))
    assert second.compile_ids == ("0/1",)
    assert block.recompile_seconds == pytest.approx(20.1)


def test_a_value_that_changes_in_every_call_is_one_cause() -> None:
    found = summary(traces.recompile_limit())
    (cause,) = found.recompiles
    assert cause.calls == (2, 3, 4, 5, 6, 7, 8)
    assert cause.values == ("0", "1", "2", "3", "4", "5", "6", "7")
    assert [finding.kind for finding in found.findings] == ["fallback", "recompile"]
    assert found.findings[0].title == (
        "forward runs eagerly from call 9 on: the recompile limit was reached"
    )


def repeated_recompiles() -> list[AnyRecord]:
    """The call recompiles each time it is repeated to be timed."""
    again = [
        one
        for number in (1, 2, 3)
        for one in (traces.step_recompile(f"0/{number}", 0), *traces.frame(f"0/{number}", 0))
    ]
    slow = msgspec.structs.replace(traces.speed(1.0, 2.0), compiled_again=2)
    return [*traces.clean()[:-3], *again, slow, traces.end()]


def test_a_call_that_recompiles_when_it_is_repeated_is_no_all_clear() -> None:
    found = summary(repeated_recompiles())
    (finding,) = found.findings
    assert finding.title.startswith("the timed calls recompiled forward 3 times: step ")
    assert finding.place is not None
    assert found.verdict.headline == "Recompiled during timing"


def test_a_script_repeats_no_call() -> None:
    records = [
        recompile for recompile in repeated_recompiles() if not isinstance(recompile, CallStart)
    ]
    (finding,) = summary(records).findings
    assert finding.title.startswith("forward 3 times recompiled: step ")


def test_a_recompile_for_what_item_returned_belongs_to_the_break() -> None:
    site = traces.graph_break(
        gb="GB0124",
        type="Unsupported Tensor.item() call with capture_scalar_outputs=False",
        location=traces.at(6, 8, 20),
    )
    failed = FailedGuard(
        entry="1/0",
        guard="___stack0 == 2.5",
        name="___stack0",
        source="L['___stack0']",
        expected="2.5",
        seen="3.5",
    )
    again = Recompile(compile_id="1/1", call=2, failed=(failed,), function="forward")
    rest = msgspec.structs.replace(traces.frame("1/0")[0], resumes_at=6)
    records = [
        *traces.opening(),
        *traces.frame()[:1],
        site,
        *traces.frame()[1:],
        rest,
        *traces.frame("1/0")[1:],
        again,
        *traces.frame("1/1", 2, 2.0),
    ]
    found = summary(records)
    (finding,) = found.findings
    assert finding.kind == "break"
    assert finding.cost == "2.0 s"
    assert finding.notes[:2] == ("call 2 recompiled for its value", "+1 graph")
    assert finding.compile_ids == ("0/0", "1/1")
    assert len(found.recompiles) == 1
    another = msgspec.structs.replace(failed, name="y", source="L['y']")
    other = [msgspec.structs.replace(again, failed=(another,)) if record is again else record
             for record in records]  # fmt: skip
    assert [one.kind for one in summary(other).findings] == ["recompile", "break"]


def test_a_size_that_follows_from_another_is_the_same_cause() -> None:
    """Behind a break, the flattened batch is another number."""
    records = [
        *traces.opening(),
        traces.size_change("0/1", "x", 4, 6),
        traces.resumed("1/1"),
        traces.size_change("1/1", "flat", 512, 768),
    ]
    (cause,) = summary(records).recompiles
    assert cause.change.text == "x.size(0) 4 → 6"
    assert len(cause.frames) == 2


def test_the_entry_that_came_nearest_says_why() -> None:
    """The most recent entry is for another dtype; an older one held until the list grew."""
    recent = FailedGuard(
        entry="0/3",
        guard="dtype mismatch",
        source="L['x']",
        name="x.dtype",
        expected="float64",
        seen="float32",
    )
    older = FailedGuard(
        entry="0/2",
        guard="type=<class 'tuple'>",
        source="L['extras']",
        name="extras",
        expected="tuple",
        seen="list",
        advice=(Advice(text="give it one type"),),
    )
    needed = Guard(
        kind="SEQUENCE_LENGTH", name="extras", source="L['extras']", location=traces.at(8)
    )
    record = Recompile(
        compile_id="0/4",
        call=6,
        failed=(recent, older),
        location=traces.at(6),
        function="forward",
        advice=(Advice(text="convert x"),),
    )
    guards = Guards(compile_id="0/2", guards=(needed,))
    wide = msgspec.structs.replace(traces.X, dtype="float64")
    listed = Argument(name="extras", value="[tensor]")
    records = [
        *traces.opening(),
        CallStart(call=3, arguments=(Argument(name="x", tensor=traces.X),)),
        FrameStart(compile_id="0/2", attempt=0, function="f", location=traces.at(5), call=3),
        guards,
        CallStart(call=5, arguments=(Argument(name="x", tensor=wide),)),
        FrameStart(compile_id="0/3", attempt=0, function="f", location=traces.at(5), call=5),
        CallStart(call=6, arguments=(Argument(name="x", tensor=traces.X), listed)),
        record,
    ]
    (cause,) = summary(records).recompiles
    assert cause.change.text == "extras tuple → list"
    assert cause.place is not None
    assert cause.place.line == 8
    assert [one.text for one in cause.advice] == ["give it one type"]
    own = msgspec.structs.replace(older, location=traces.at(9), source_line="def forward")
    records[-1] = msgspec.structs.replace(record, failed=(recent, own))
    (cause,) = summary(records).recompiles
    assert cause.place is not None
    assert cause.place.line == 9


def test_a_range_that_was_left() -> None:
    failed = FailedGuard(
        entry="0/0",
        guard="2 <= ids.size(1) <= 8",
        name="ids.size(1)",
        expected="2 <= ids.size(1) <= 8",
        seen="ids.size(1) = 9",
    )
    record = Recompile(compile_id="0/1", call=2, failed=(failed,), function="forward")
    assert summary([record]).findings[0].title == (
        "call 2 recompiled forward: 2 <= ids.size(1) <= 8, seen 9"
    )


def test_a_condition_of_two_values_is_not_written_twice() -> None:
    both, seen = "n >= 0 and n <= x.size(0)", "n = 5, x.size(0) = 1"
    failed = FailedGuard(entry="0/0", guard=both, name="n, x.size(0)", expected=both, seen=seen)
    assert change_of(failed).text == f"{both}, seen {seen}"


def test_a_number_made_from_the_batch_follows_from_it() -> None:
    def number(name: str) -> Recompile:
        failed = FailedGuard(entry="2/0", guard="n == 4", name=name, expected="4", seen="6")
        return Recompile(compile_id="2/1", call=2, failed=(failed,), function="inner")

    own = Argument(name="steps", value="6")
    records = [CallStart(call=2, arguments=(own,)), traces.size_change("0/1", "x", 4, 6)]
    assert len(summary([*records, number("batch_size")]).recompiles) == 1
    assert len(summary([*records, number("steps")]).recompiles) == 2


def test_two_sizes_of_one_frame_are_two_causes() -> None:
    records = [
        *traces.opening(),
        traces.size_change("0/1", "x", 4, 6),
        traces.size_change("3/1", "y", 9, 8),
    ]
    assert len(summary(records).recompiles) == 2


def test_the_seconds_of_an_unfinished_recompile_are_unknown() -> None:
    records = [traces.size_change("0/1", "x", 4, 6)]
    assert summary(list(records)).recompiles[0].seconds is None
    done = FrameEnd(compile_id="0/1", status="compiled", seconds=2.0)
    assert summary([*records, done]).recompiles[0].seconds == 2.0


def test_of_two_pieces_of_advice_the_one_that_helps_all_frames_is_given() -> None:
    """The caller cannot mark what was made before a graph break: a mark would help one frame."""

    def advised(record: Recompile, code: str) -> Recompile:
        return msgspec.structs.replace(record, advice=(Advice(text="Do it", code=code),))

    mark, dynamic = "torch._dynamo.mark_dynamic(x, 0)", "torch.compile(model, dynamic=True)"
    before = advised(traces.size_change("0/1", "x", 4, 6), mark)
    behind = advised(traces.size_change("1/1", "h", 4, 6), dynamic)
    (cause,) = summary([*traces.opening(), before, traces.resumed("1/1"), behind]).recompiles
    assert [one.code for one in cause.advice] == [dynamic]
    (cause,) = summary([*traces.opening(), before]).recompiles
    assert [one.code for one in cause.advice] == [mark]
    inner = advised(traces.size_change("1/1", "h", 4, 6), "torch._dynamo.mark_dynamic(h, 0)")
    (cause,) = summary([*traces.opening(), before, inner]).recompiles
    assert [one.code for one in cause.advice] == [dynamic]
    same = advised(traces.size_change("1/1", "x", 4, 6), mark)
    (cause,) = summary([*traces.opening(), before, traces.resumed("1/1"), same]).recompiles
    assert [one.code for one in cause.advice] == [mark]


@pytest.mark.parametrize(
    ("name", "expected", "seen"),
    [("dtype", "float32", "float64"), ("requires_grad", "False", "True"), ("dim()", "2", "3")],
)
def test_what_a_computed_tensor_inherits_is_no_cause_of_its_own(
    name: str, expected: str, seen: str
) -> None:
    def change(compile_id: str, tensor: str, fix: str) -> Recompile:
        failed = FailedGuard(
            entry=f"{compile_id[0]}/0", guard="", name=f"{tensor}.{name}",
            source=f"L['{tensor}']", expected=expected, seen=seen,
            advice=(Advice(text="Do it", code=fix),),
        )  # fmt: skip
        return Recompile(compile_id=compile_id, call=2, failed=(failed,), function="forward")

    before, behind = change("0/1", "x", "x = …"), change("1/1", "y", "y = …")
    (cause,) = summary([*traces.opening(), before, traces.resumed("1/1"), behind]).recompiles
    assert cause.compile_ids == ("0/1", "1/1")
    assert [one.code for one in cause.advice] == ["x = …"]
    assert len(summary([*traces.opening(), before, behind]).recompiles) == 2


def _recompiled(*guards: str) -> str:
    """What is said of a recompile for which torch gave these reasons, the last entry first."""
    at = Location(file="/home/me/m.py", line=3, function="f")
    entries = [f"0/{number}" for number in reversed(range(len(guards)))]
    failed = tuple(
        FailedGuard(entry=entry, guard=guard, name="", expected="", seen="")
        for entry, guard in zip(entries, guards, strict=True)
    )
    reason = "\n".join(f"{entry}: {guard}" for entry, guard in zip(entries, guards, strict=True))
    again = Recompile(
        compile_id=f"0/{len(guards)}",
        call=0,
        failed=failed,
        location=at,
        source_line="",
        function="f",
        reason=reason,
    )
    (cause,) = recompile_causes(Recording([again]))
    assert not cause.advice
    return cause.change.text


def test_a_recompile_without_a_reason_is_no_cause_of_torchs_bug() -> None:
    """Threads that compile a function at once: torch looks for the reason when there is none."""
    unexpected = (
        "Unexpected recompilation: runtime guards failed even though they passed during "
        "recompilation-reason analysis. Please open an issue with a minimal repro: "
        "https://github.com/pytorch/pytorch"
    )
    assert _recompiled(unexpected) == UNEXPLAINED
    assert _recompiled() == UNEXPLAINED
    assert _recompiled(unexpected, "L['x'].size()[0] == 3") == "L['x'].size()[0] == 3"


def broken_append() -> list[AnyRecord]:
    """`seen.append(float(x))` breaks the graph: `append` and the number are on the stack."""
    line = "        seen.append(float(x))"
    site = traces.graph_break(
        gb="GB0124", location=traces.at(7, 20, 28), source_line=line,
        type="Unsupported Tensor.item() call with capture_scalar_outputs=False",
    )  # fmt: skip
    rest = traces.resumed("1/0")
    stack = Guards(
        compile_id="1/0",
        guards=tuple(
            Guard(kind="ID_MATCH", name=f"___stack{index}", source=f"L['___stack{index}']")
            for index in (0, 1)
        ),
        function="forward",
    )
    return [*traces.opening(), *traces.frame()[:1], site, *traces.frame()[1:], rest,
            *traces.frame("1/0")[1:2], stack, *traces.frame("1/0")[3:]]  # fmt: skip


@pytest.mark.parametrize(
    ("index", "expected", "seen", "name"),
    [(0, "alive", "deallocated", "seen.append"), (1, "2.5", "3.5", "float(x)")],
)
def test_a_value_on_the_stack_is_named_by_its_expression(
    index: int, expected: str, seen: str, name: str
) -> None:
    failed = FailedGuard(
        entry="1/0", guard="", source=f"L['___stack{index}']", name=f"___stack{index}",
        expected=expected, seen=seen,
    )  # fmt: skip
    again = Recompile(compile_id="1/1", call=2, failed=(failed,), function="forward")
    (cause,) = recompile_causes(Recording([*broken_append(), again]))
    assert cause.change.text == f"{name} {expected} → {seen}"


def test_attributes_that_change_alike_are_two_causes() -> None:
    """Two counters of one module are two things to fix, though both go from 3 to 4."""
    again = [
        Recompile(
            compile_id=f"0/{number}", call=2, function="forward",
            failed=(FailedGuard(entry="0/0", guard="", name=name, source=source, expected="3",
                                seen="4"),),
        )
        for number, (name, source) in enumerate(
            [("self.step", "L['self'].step"), ("len(self.seen)", "L['self'].seen")], 1
        )
    ]  # fmt: skip
    causes = recompile_causes(Recording([*traces.opening(), *again]))
    assert [cause.change.name for cause in causes] == ["self.step", "len(self.seen)"]
    passed = msgspec.structs.replace(
        again[1], failed=(msgspec.structs.replace(again[1].failed[0], name="step"),)
    )
    (recompile_cause,) = recompile_causes(Recording([*traces.opening(), again[0], passed]))
    assert recompile_cause.compile_ids == ("0/1", "0/2")


def test_a_recompile_limit_names_what_used_it_up() -> None:
    records = [
        msgspec.structs.replace(one, compile_id="0/8") if isinstance(one, EagerFallback) else one
        for one in traces.recompile_limit()
    ]
    limit = summary(records).findings[0]
    assert limit.notes == ("7 of 7 recompiles for step 0 → 1 → 2 → …",)
    assert limit.fixes[0].text == "pass step as a tensor"


def test_the_attempt_that_reached_the_limit_is_no_recompile() -> None:
    records = [
        msgspec.structs.replace(one, compile_id="0/8") if isinstance(one, EagerFallback) else one
        for one in traces.recompile_limit()
    ]
    records.insert(-2, traces.step_recompile("0/8", 9))
    found = summary(records)
    (cause,) = found.recompiles
    assert cause.calls == (2, 3, 4, 5, 6, 7, 8)
    titles = [finding.title for finding in found.findings]
    assert titles[1].startswith("calls 2–8 recompiled forward 7 times: ")
    assert found.findings[0].notes == ("7 of 7 recompiles for step 0 → 1 → 2 → …",)


@pytest.mark.parametrize(
    ("expected", "text"),
    [("2.0", "n is no longer 2.0"), ("n <= x.size(0)", "n"), ("", "n")],
)
def test_a_value_that_was_not_seen_is_told_by_what_it_was(expected: str, text: str) -> None:
    """A log of torch's has the guard that failed, but no value of the call."""
    failed = FailedGuard(entry="0/0", guard=f"n == {expected}", name="n", expected=expected)
    assert change_of(failed).text == text


def test_reprs_of_objects_are_named() -> None:
    for text, name in (
        ("<function Net.forward.<locals>.hook at 0x7fd2a1b0c2d0>", "Net.forward.<locals>.hook"),
        ("<function <lambda> at 0x7fd2a1b0c2d0>", "<lambda>"),
        ("<bound method Net.act of <m.Net object at 0x7fd2a1b0c2d0>>", "Net.act"),
        ("<built-in method tanh of type object at 0x7fd2a1b0c2d0>", "tanh"),
        ("x < 3 > 2", "x < 3 > 2"),
    ):
        change = change_of(FailedGuard(entry="0/0", guard="", name="act", expected="f", seen=text))
        assert change.text == f"act f → {name}"
