"""Fixes that were tried, as reports show them."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from tcw.compiler.trace.records import Advice, AnyRecord, CaptureCounts, FixTrial
from tcw.viewers.json_report import report
from tcw.viewers.recording import Recording
from tcw.viewers.summary import summarise
from tcw.viewers.summary.fixes import best_of, safety, words
from tcw.viewers.text.explain import explain
from tests.no_torch import traces

SECOND = traces.at(8)


def counts(**changes: int) -> CaptureCounts:
    return structs.replace(
        CaptureCounts(graphs=3, breaks=2, compiles=3, eager=0, failures=0), **changes
    )


def trial(finding: str, code: str = "h = h.clamp(-8, 8)", **changes: Any) -> FixTrial:
    made = FixTrial(
        finding=finding,
        advice=Advice(text="", code=code),
        before=counts(),
        after=counts(breaks=1, graphs=2, compiles=2),
        results="same",
        kept=True,
        gone=(finding,),
        seconds=0.5,
    )
    return structs.replace(made, **changes)


def two_breaks() -> list[AnyRecord]:
    printing = Advice(text="", code="print(y)")
    other = traces.graph_break(location=SECOND, gb="GB0059", type="print()", advice=(printing,))
    return [*traces.opening(), traces.call(), traces.graph_break(), other, *traces.frame()]


def keys() -> list[str]:
    return [finding.key for finding in summarise(Recording([*two_breaks(), traces.end()])).findings]


def shown(*trials: FixTrial) -> tuple[Recording, str]:
    recording = Recording([*two_breaks(), *trials, traces.end()])
    return recording, "\n".join(line.text for line in explain(recording))


def test_a_fix_that_was_tried_is_told_from_an_idea() -> None:
    first, second = keys()
    recording, text = shown(trial(first))
    assert "fix ✓  h = h.clamp(-8, 8)   2 breaks → 1, 3 compiles → 2, same results" in text
    by_key = {finding.key: finding for finding in summarise(recording).findings}
    assert by_key[first].fix is not None
    assert by_key[second].fix is None
    items = {item.title: item.fix for item in report(recording).findings}
    safeties = {fix.safety for fix in items.values() if fix is not None}
    assert safeties == {"same results", "idea"}


def test_what_was_tried_in_vain_is_counted_and_the_idea_stays() -> None:
    first, _ = keys()
    failed = trial(first, kept=False, gone=(), results="differ", reason="results differ")
    recording, text = shown(failed)
    assert "no fix found (1 tried)" in text
    assert "fix ✓" not in text
    (item,) = [item for item in report(recording).findings if item.tried]
    assert item.fix is not None
    assert item.fix.tried is None
    assert item.fix.safety == "idea"


def test_a_finding_that_goes_with_the_fix_of_another_is_its_consequence() -> None:
    first, second = keys()
    recording, text = shown(trial(second, gone=(second, first)))
    (finding,) = summarise(recording).findings
    assert finding.key == second
    assert [consequence.key for consequence in finding.consequences] == [first]
    assert "and with it: " in text


def test_two_fixes_that_remove_both_findings_leave_the_first() -> None:
    first, second = keys()
    recording, _ = shown(trial(first, gone=(first, second)), trial(second, gone=(second, first)))
    (finding,) = summarise(recording).findings
    assert finding.key == first


def test_of_several_fixes_the_one_that_removes_most_is_shown() -> None:
    less, more = trial("a"), trial("a", "y", after=counts(breaks=0, compiles=1))
    assert best_of([less, more]) is more
    assert best_of([less, trial("a", "z")]) is less
    assert best_of([structs.replace(more, kept=False), less]) is less


def test_another_behaviour_is_said() -> None:
    made = trial("a", effect="prints come later")
    assert safety(made) == "changes behaviour"
    assert "prints come later" in words(made)


def test_all_fixes_together_come_last() -> None:
    first, second = keys()
    both = trial("", "", after=counts(graphs=1, breaks=0, compiles=1), gone=(first, second))
    recording, text = shown(trial(first), trial(second, "print(y)"), both)
    assert "with all fixes  1 graph, no breaks, 1 compile, same results" in text
    together = report(recording).together
    assert together is not None
    assert together.compiles == [3, 1]
