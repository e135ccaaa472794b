"""The facts of a recording: what is counted, and what is left out because it says nothing."""

from __future__ import annotations

import pytest

from tcw.compiler.trace.records import (
    AnyRecord,
    CallEnd,
    Guard,
    Guards,
    Kernel,
    KernelBinary,
    Location,
    Numerics,
)
from tcw.viewers.recording import Recording
from tcw.viewers.summary import summarise
from tcw.viewers.summary.budget import Key, compare
from tcw.viewers.summary.facts import Value, facts
from tests.no_torch.traces import opening


def found(*records: AnyRecord, fused: tuple[str, ...] = ()) -> dict[Key, Value]:
    recording = Recording()
    recording.feed([*opening(), *records])
    return {fact.key: fact.value for fact in facts(recording, summarise(recording), fused)}


@pytest.mark.parametrize(("within", "value"), [(True, 0.25), (False, 0.25), (None, None)])
def test_an_error_between_different_random_numbers_is_no_fact(
    within: bool | None, value: float | None
) -> None:
    numerics = Numerics(compared=1, max_abs=0.25, max_rel=1.0, within=within)
    assert found(numerics).get(("", "max error")) == value


def test_instructions_are_a_fact_where_all_calls_that_compiled_have_them() -> None:
    def counted(*counts: int | None) -> Value | None:
        calls = [
            CallEnd(call=at, seconds=1.0, compiled=("0/0",), instructions=count)
            for at, count in enumerate(counts, 1)
        ]
        return found(*calls, CallEnd(call=9, seconds=1.0)).get(("", "compile instructions"))

    assert counted(3_000_000, 4_000_000) == 7_000_000
    assert counted(3_000_000, None) is None
    assert counted() is None


def test_predicted_code_is_counted_apart_and_is_what_has_to_be_fused() -> None:
    here = Kernel(id="k0", graph="0/0", name="cpp", label="softmax, add", language="cpp")
    there = Kernel(
        id="k1", graph="0/0@sm_90", name="triton", label="softmax", language="triton",
        predicted=True, steps=(0, 3),
    )  # fmt: skip
    binary = KernelBinary(kernel="k1", arch="sm_90", configuration="", spill_bytes=8)
    both = found(here, there, binary, fused=("softmax + add",))
    assert both["", "kernels"] == 1
    assert both["", "predicted kernels"] == 2
    assert both["", "predicted spills"] == 8
    assert both["fused", "softmax + add"] == "no"
    assert found(here, fused=("softmax + add",))["fused", "softmax + add"] == "yes"


def test_a_condition_that_a_line_makes_is_a_fact_and_a_new_one_is_worse() -> None:
    """Not torch's own, such as the least value of a symbolic size."""

    def conditions(*values: str) -> Guards:
        line = Location(file="m.py", line=3)
        guard = Guard(
            kind="SHAPE_ENV", name="symbolic shapes", source="",
            code=("2 <= x.size(0)", *values), values=("2 <= x.size(0)", *values),
            lines=(None, *(line for _ in values)),
        )  # fmt: skip
        return Guards(compile_id="0/0", guards=(guard,))

    even = "(x.size(0) % 2) == 0"
    accepted, now = found(conditions()), Recording()
    assert [key for key in accepted if key[0] == "condition"] == []
    now.feed([*opening(), conditions(even)])
    (change,) = [one for one in compare(accepted, facts(now, summarise(now))) if one.fails]
    assert (change.standing, change.words) == ("worse", f"a new condition on sizes: {even}")
    assert change.line == 3
