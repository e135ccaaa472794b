from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from tcw.compiler.trace.records import AnyRecord, CallProfile, CompiledStep
from tcw.viewers.json_profile import profile_items
from tcw.viewers.recording import Recording
from tcw.viewers.summary.profile.profile_verdict import doubts
from tcw.viewers.text.lines import to_text
from tcw.viewers.text.profile import profile
from tests.no_torch import profiles
from tests.no_torch.viewers.profile.conftest import profiled

EAGER = "the eager operations were not measured: no region counts as lost or won"
COMPILED = "the steps of some compiled graphs were not measured: "


def doubtful(**changes: Any) -> list[AnyRecord]:
    return [
        structs.replace(one, **changes) if isinstance(one, CallProfile) else one
        for one in profiles.masked_attention()
    ]


@pytest.mark.parametrize(
    ("sides", "eager", "compiled"),
    [
        (("eager",), False, True),
        (("compiled",), True, False),
        (("guards",), True, True),
        (("eager", "compiled"), False, False),
        ((), True, False),
    ],
    ids=str,
)
def test_what_was_not_measured_is_said_of_its_side(
    sides: tuple[str, ...], eager: bool, compiled: bool
) -> None:
    records = doubtful(unmeasured="the reason of it", unmeasured_sides=sides)
    index = profiled(records).index
    assert (index.eager_is_known, index.compiled_is_known) == (eager, compiled)
    said = doubts(index)
    assert said[0] == "not measured: the reason of it"
    assert (EAGER in said) is not eager
    assert any(one.startswith(COMPILED) for one in said) is not compiled
    text = " ".join(to_text(profile(Recording(records), 100), 100).split())
    assert (EAGER in text) is not eager
    assert (COMPILED in text) is not compiled
    assert profile_items(Recording(records))[0].unmeasured_sides == list(sides)


def test_where_eager_calls_differed_no_region_was_lost_or_won() -> None:
    one = profiled(doubtful(unmeasured="it differs", unmeasured_sides=("eager",)))
    assert {row.standing for row in one.rows} == {"noise"}
    assert one.causes == ()


def test_where_the_cost_of_guards_is_unknown_regions_are_told_all_the_same() -> None:
    whole = profiled(profiles.masked_attention())
    one = profiled(doubtful(unmeasured="no such API", unmeasured_sides=("guards",)))
    assert [row.standing for row in one.rows] == [row.standing for row in whole.rows]
    assert [cause.title for cause in one.causes] == [cause.title for cause in whole.causes]


def test_of_a_call_whose_graphs_were_not_timed_at_all() -> None:
    records = [one for one in profiles.masked_attention() if not isinstance(one, CompiledStep)]
    (said,) = doubts(profiled(records).index)
    assert (
        said
        == "the steps of the compiled graphs were not measured: no region counts as lost or won"
    )


def test_nothing_is_in_doubt() -> None:
    assert doubts(profiled(profiles.masked_attention()).index) == ()
