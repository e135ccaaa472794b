from __future__ import annotations

import math
from dataclasses import replace

import pytest
from msgspec import structs

from tcw.compiler.trace.records import (
    AnyRecord,
    CallProfile,
    CompiledStep,
    EagerOperation,
    Kernel,
    Region,
)
from tcw.viewers.json_profile import profile_items
from tcw.viewers.kit.figures import MICROSECONDS as US
from tcw.viewers.recording import Recording
from tcw.viewers.summary.profile import profile_of
from tcw.viewers.text.profile.results import accounts_lines
from tests.no_torch import profiles
from tests.no_torch.profile_building import Call
from tests.no_torch.viewers.profile.conftest import profiled


@pytest.mark.parametrize("name", profiles.EVERY)
def test_the_waterfall_leads_from_eager_to_compiled(name: str) -> None:
    one = profiled(profiles.EVERY[name]())
    fall = one.waterfall()
    rows = (*fall.rows, *fall.quiet)
    assert len(rows) == len(one.rows)
    for side, whole in (("eager", one.head.eager), ("compiled", one.head.compiled)):
        times = [getattr(row, side) for row in rows]
        total = sum(time.median for time in times if time) + getattr(fall.rest, side)
        assert total == pytest.approx(whole.median)
    starts = [*fall.starts(), fall.total.eager + sum(row.difference for row in fall.rows)]
    end = starts[-1] + fall.quiet_sums.difference + fall.rest.difference
    assert end == pytest.approx(fall.total.compiled)


def test_a_step_that_was_measured_apart_is_none_of_the_call() -> None:
    every = profiles.training()
    records = [
        structs.replace(one, what="forward + backward") if isinstance(one, CallProfile) else one
        for one in every
    ]
    one, whole = profiled(records), profiled(every)
    assert {row.phase for row in one.rows} == {"forward", "backward"}
    assert {row.label for row in one.step_rows} == {"_foreach_addcdiv_", "_foreach_add_"}
    assert (len(one.rows) + 2, whole.step_rows) == (len(whole.rows), ())
    assert not {step.phase for step in one.index.steps.values()} & {"step"}
    lines = [line.text for line in accounts_lines(one, 100, US)]
    start = next(place for place, line in enumerate(lines) if "step alone" in line)
    assert any("_foreach_addcdiv_ eager" in line for line in lines[start:])
    (profile_item,) = profile_items(Recording(records))
    assert {region.phase for region in profile_item.regions} == {"forward", "backward", "step"}
    assert {step.phase for step in profile_item.steps} == {"forward", "backward", "step"}


def test_what_is_in_the_noise_is_neither_lost_nor_won() -> None:
    records: list[AnyRecord] = [
        structs.replace(one, noise=1.0) if isinstance(one, Region) else one
        for one in profiles.masked_attention()
    ]
    one = profiled(records)
    assert [row for row in one.waterfall().rows if row.eager and row.compiled] == []
    assert {cause.kind for cause in one.causes} <= {"capture", "removed"}
    assert all(row.standing == "noise" for row in one.rows if row.eager and row.compiled)


def test_rows_stand_by_size_and_what_cannot_be_told_apart_shares_a_rank() -> None:
    one = profiled(profiles.training())
    rows = one.waterfall().rows
    sizes = [abs(row.difference) for row in rows]
    assert sizes == sorted(sizes, reverse=True)
    assert [row.position for row in rows] == [1, 2, 3, 4, 5]
    for row in rows:
        first = next(other for other in rows if other.rank == row.rank)
        apart = abs(first.difference) - abs(row.difference)
        assert apart <= math.hypot(first.noise, row.noise)
        assert row.tied == (sum(other.rank == row.rank for other in rows) > 1)
    assert any(row.tied for row in rows)
    assert all(not row.rank and not row.position for row in one.waterfall().quiet)


def test_what_only_one_side_runs_is_certain() -> None:
    row = next(row for row in profiled(profiles.block_profile()).rows if row.label == "gelu")
    row = replace(row, difference=-8e-6, noise=16e-6)
    assert row.standing == "noise"
    assert replace(row, compiled=None).standing == "won"


def test_a_region_that_took_longer_than_the_call_was_disturbed() -> None:
    """On a busy machine the rounds that time the parts can be far slower than the plain ones."""

    def standing(times: float) -> str:
        records = list(profiles.block_profile())
        head = next(record for record in records if isinstance(record, CallProfile))
        for place, record in enumerate(records):
            if isinstance(record, Region) and record.id == gelu.key and record.eager is not None:
                slow = structs.replace(record.eager, median=times * head.eager.median)
                records[place] = structs.replace(record, eager=slow, difference=-slow.median)
        return next(row.standing for row in profiled(records).rows if row.label == "gelu")

    gelu = next(row for row in profiled(profiles.block_profile()).rows if row.label == "gelu")
    assert (standing(0.9), standing(2.0)) == ("won", "noise")


def test_a_small_difference_of_the_same_calls_is_noise() -> None:
    def standings(same: bool) -> dict[str, str]:
        records = [
            structs.replace(one, same="calls" if same else "") if isinstance(one, Region) else one
            for one in profiles.masked_attention()
        ]
        return {row.label: row.standing for row in profiled(records).rows}

    assert standings(False)["layer norm"] == "won"
    assert standings(True)["layer norm"] == "noise"
    assert standings(True)["attention"] == "lost"


def test_where_the_eager_operations_were_not_measured_nothing_was_lost() -> None:
    records: list[AnyRecord] = []
    for one in profiles.masked_attention():
        if isinstance(one, EagerOperation):
            one = structs.replace(one, time=None)
        elif isinstance(one, Region):
            one = structs.replace(one, eager=None)
        records.append(one)
    one = profiled(records)
    assert not one.index.eager_is_known
    assert all(row.standing == "noise" for row in one.rows if row.operations)


def test_equal_regions_of_layers_are_one_row() -> None:
    one = profiled(profiles.bert_on_a_gpu())
    attention = next(row for row in one.rows if row.label == "attention")
    assert attention.count == profiles.LAYERS
    assert attention.module == "encoder.layer.*.attention.self"
    assert attention.eager is not None
    assert attention.eager.median == pytest.approx(12 * 36.2e-6)
    assert attention.noise == pytest.approx(12 * 2.1e-6)
    assert len(attention.steps) == 36


def test_layers_that_are_each_in_the_noise_do_not_add_up_to_a_loss() -> None:
    records: list[AnyRecord] = [
        structs.replace(one, difference=9e-6, noise=10e-6) if isinstance(one, Region) else one
        for one in profiles.host_bound()
    ]
    rows = profiled(records).rows
    assert [row.standing for row in rows] == ["noise"]


def test_orders() -> None:
    one = profiled(profiles.block_profile())
    by = {sort: one.waterfall(sort).rows for sort in ("difference", "time", "line")}  # type: ignore[arg-type]
    assert by["difference"][0].label == "q k v copies"
    assert by["time"][0].label == "gelu"
    lines = [row.locations[0].line for row in by["line"]]
    assert lines == sorted(lines)


def test_a_share_is_of_the_nearer_ceiling() -> None:
    one = profiled(profiles.block_profile())
    norm = next(row for row in one.rows if row.label == "layer norm")
    work = norm.compiled_work
    assert work.bytes == 1 << 20
    assert work.bandwidth == pytest.approx((1 << 20) / 26.5e-6)
    assert work.share == pytest.approx((1 << 20) / 1.6e11 / 26.5e-6)


def test_no_dtype_no_share() -> None:
    one = profiled(profiles.block_profile())
    product = next(row for row in one.rows if row.label == "addmm up")
    assert product.compiled_work.rate is not None
    assert product.compiled_work.share is None


def test_a_compiled_side_that_was_not_measured_says_nothing() -> None:
    records = [
        structs.replace(one, steps=(), compiled=None) if isinstance(one, Region) else one
        for one in profiles.masked_attention()
        if not isinstance(one, CompiledStep)
    ]
    one = profiled(records)
    assert one.waterfall().rows == ()
    assert one.causes == ()


def test_steps_of_unknown_kernels_may_be_what_any_region_became() -> None:
    records = [one for one in profiles.masked_attention() if not isinstance(one, Kernel)]
    one = profiled(records)
    assert one.index.unplaced == 11
    kinds = {cause.kind for cause in one.causes}
    assert "capture" not in kinds
    assert "removed" not in kinds


def test_a_loss_is_not_removed_where_only_graphs_were_measured() -> None:
    records: list[AnyRecord] = []
    for one in profiles.training():
        if isinstance(one, Region) and one.phase == "step":
            one = structs.replace(one, steps=(), compiled=None, difference=-44e-6)
        if not isinstance(one, CompiledStep) or one.kind != "eager":
            records.append(one)
    rows = [row for row in profiled(records).rows if row.phase == "step"]
    assert rows
    assert all(row.standing == "noise" for row in rows)


def test_nothing_was_profiled() -> None:
    records = [one for one in profiles.block_profile() if not isinstance(one, CallProfile)]
    assert profile_of(Recording(records)) is None


def test_a_call_that_was_compiled_while_the_clock_ran_lost_and_won_nothing() -> None:
    """A model that counts its calls goes another way each time: its operations are not the same."""
    records = [
        structs.replace(one, compiled_again=1) if isinstance(one, CallProfile) else one
        for one in profiles.block_profile()
    ]
    one = profiled(records)
    assert {row.standing for row in one.rows} == {"noise"}
    assert not any(cause.regions for cause in one.causes)


def test_a_view_that_was_not_timed_leaves_the_sum_of_its_side() -> None:
    call = Call()
    working = call.operation("aten.relu.default", 25, 100.0)
    view = call.operation("aten.clone.default", 25, 0.0, launches=0)
    call.operations[-1] = structs.replace(call.operations[-1], time=None)
    step = call.kernel("cpp_fused_relu_0", "relu", [25], 300.0)
    call.region("relu", [step], [working, view])
    (row,) = profiled(call.done()).rows
    assert row.eager_work.time is not None
    assert row.eager_work.time.median == pytest.approx(100e-6)


def test_the_same_calls_say_what_is_noise_of_them() -> None:
    records = [
        structs.replace(one, same="calls") if isinstance(one, Region) else one
        for one in profiles.masked_attention()
    ]
    notes = [note for cause in profiled(records).causes for note in cause.notes]
    assert "the same calls on both sides: less than 5% counts as noise" in notes
