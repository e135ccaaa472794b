"""Both sides of a region, and why it was lost or won."""

from __future__ import annotations

import pytest

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import AnyRecord, KernelPrecision, OutputPrecision
from tcw.viewers.panes import account, region, waterfall
from tcw.viewers.panes.targets import ToKernel
from tests.no_torch import profiles
from tests.no_torch.viewers.panes.profile_views import of_label, texts, view_of


@pytest.fixture(scope="module")
def block() -> list[AnyRecord]:
    return profiles.block_profile()


def test_both_sides_of_a_region_with_what_they_reach(block: list[AnyRecord]) -> None:
    view = view_of(block, region="r3")
    eager, compiled = texts(region.eager(view, 90)), texts(region.compiled(view, 90))
    assert eager[1].split()[:3] == ["16", "copy", "×3"]
    assert "29.2 GB/s" in eager[1]
    assert "18%" in eager[1]
    assert compiled[1].split()[:3] == ["k2", "copy", "45.2"]
    row = region.compiled(view, 90).rows[1]
    assert row.ref == refs.kernel("k2")
    assert row.opens == ToKernel("k2")
    assert row.copies == "cpp_fused_clone_1"


def test_what_is_on_one_side_only_is_said() -> None:
    view = view_of(profiles.masked_attention())
    view.region = of_label(view, "expand, where")
    assert "eager has no such operation" in " ".join(texts(region.eager(view, 60)))
    view.region = of_label(view, "all, local scalar dense")
    assert "compiling removed it" in " ".join(texts(region.compiled(view, 60)))


def test_steps_of_repeated_layers_are_summed() -> None:
    view = view_of(profiles.bert_on_a_gpu())
    rows = texts(region.compiled(view, 90))
    assert [line.split()[1:4] for line in rows[1:4]] == [
        ["bmm", "×12", "732.0"], ["safe", "softmax", "×12"], ["bmm", "×12", "752.4"],
    ]  # fmt: skip


def test_the_error_of_a_wrong_kernel_stands_below_it() -> None:
    view = view_of(profiles.wrong_kernel(), region="r3")
    assert any("✗ error 0.03, eager 0, bound 1.0e-06: wrong" in line for line in texts(
        region.compiled(view, 90)))  # fmt: skip
    found = account.precision(view, 80)
    assert found.right == (("1 wrong of 4", "bad"),)
    first = next(row for row in found.rows if row.key)
    assert first.text.split()[:3] == ["✗", "k2", "copy"]
    assert first.copies.startswith("import torch")


def test_the_worst_result_is_the_one_furthest_beyond_its_bound() -> None:
    """A result of lower precision may be further off, and yet within its bound."""
    wide = OutputPrecision(node="half", error=0.05, eager_error=0.04, bound=0.1)
    wrong = OutputPrecision(node="clone", error=0.03, eager_error=0.0, bound=1e-6)
    precision = KernelPrecision(
        graph="0/0/forward", kernel="k2", call=1, outputs=(wide, wrong), within=False
    )
    records = [r for r in profiles.wrong_kernel() if not isinstance(r, KernelPrecision)]
    view = view_of([*records, precision], region="r3")
    said = " ".join(texts(region.compiled(view, 90)) + texts(account.precision(view, 80)))
    assert "error 0.03" in said
    assert "0.05" not in said


def test_y_copies_the_fix_of_a_cause() -> None:
    view = view_of(profiles.graph_break())
    cause = next(row for row in region.why(view, 70).rows if row.key)
    row = next(row for row in waterfall.content(view, 100).rows if row.key)
    assert cause.copies == row.copies == "h = h.clamp(-8, 8)"


def test_causes_of_the_region_come_first() -> None:
    view = view_of(profiles.masked_attention())
    profile = view.derived.profile
    assert profile is not None
    last = len(profile.causes) - 1
    view.region = profile.causes[last].regions[0]
    mine = region.why(view, 70)
    assert mine.start == f"reason:{last}"
    assert next(row.key for row in mine.rows if row.key) == mine.start
    assert any("the other causes" in line for line in texts(mine))


def test_what_was_tried_stands_with_its_cause() -> None:
    view = view_of(profiles.trials())
    lines = texts(account.modes(view, 80))
    assert " ✓  our engine  --engine tcw  2.12 ms → 1.79 ms  -334 µs ±30.0 µs" in lines
