"""The waterfall of a profile."""

from __future__ import annotations

import pytest
from msgspec import structs

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import AnyRecord, CallProfile, Region
from tcw.viewers.panes import account, profile_source, profiled, region, waterfall
from tcw.viewers.panes.rows import Rows
from tests.no_torch import profiles
from tests.no_torch.profile_building import FILE, Call, at
from tests.no_torch.profiles import on_a_busy_machine
from tests.no_torch.viewers.panes.profile_views import keys, texts, view_of


@pytest.fixture(scope="module")
def block() -> list[AnyRecord]:
    return profiles.block_profile()


def figures(line: str) -> list[float]:
    """The numbers of a row of the table, without its line and its name."""
    words = line.replace(",", "").replace("│", " ").split()
    found = []
    for word in words:
        try:
            found.append(float(word))
        except ValueError:
            continue
    return found[-4:]


def test_rows_and_rest_add_up_to_the_sum(block: list[AnyRecord]) -> None:
    lines = texts(waterfall.content(view_of(block), 100))
    rows = [figures(line) for line in lines[1:] if len(figures(line)) == 4]
    *parts, total = rows
    assert [round(sum(part[i] for part in parts), 1) for i in range(3)] == pytest.approx(
        total[:3], abs=0.5
    )
    assert total[2] == pytest.approx(total[1] - total[0], abs=0.11)


def test_what_differs_first_then_the_noise_in_one_row(block: list[AnyRecord]) -> None:
    view = view_of(block)
    content = waterfall.content(view, 100)
    assert keys(content)[:5] == ["region:r3", "region:r4", "region:r7", "region:r1",
                                 "profile:noise:"]  # fmt: skip
    assert "▸ 4 in noise" in texts(content)[5]
    view.unfolded.add("profile:noise:")
    opened = waterfall.content(view, 100)
    assert len(opened.rows) == len(content.rows) + 4
    assert "▾ 4 in noise" in texts(opened)[5]


def test_a_loss_goes_to_the_left_of_the_axis_and_a_win_to_its_right(
    block: list[AnyRecord],
) -> None:
    rows = {row.key: row for row in waterfall.content(view_of(block), 120).rows}
    lost, won = rows["region:r7"], rows["region:r3"]
    assert lost.text.rstrip().endswith("█│")
    assert "│█" in won.text
    assert lost.body[-2][1] == "bar-bad"
    assert won.body[-1][1] == "bar-good"
    noise = next(row for row in rows.values() if "in noise" in row.text)
    assert "█" not in noise.text


@pytest.mark.parametrize(("order", "first"), [("", "r3"), ("line", "r3"), ("time", "r7")])
def test_orders(block: list[AnyRecord], order: str, first: str) -> None:
    view = view_of(block, order=order)
    assert keys(waterfall.content(view, 100))[0] == f"region:{first}"
    if order == "line":
        table = profiled.table_of(view)
        assert table is not None
        shown = [row.locations[0].line for row in table.groups[0].waterfall.rows]
        assert shown == sorted(shown)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("gelu", {"r7"}), ("block.py:25", {"r1", "r4"}), ("library call qkv", {"r2"}),
        ("LOST", {"r7"}),
        ("inductor generated", {"r1", "r3", "r4", "r7"}), ("nothing of it", set()),
    ],
)  # fmt: skip
def test_filter_by_any_of_its_words(block: list[AnyRecord], words: str, shown: set[str]) -> None:
    view = view_of(block, region_filter=words, unfolded={"profile:noise:"})
    content = waterfall.content(view, 100)
    found = {key.removeprefix("region:") for key in keys(content) if key.startswith("region:")}
    assert found == shown
    assert not any("host and rest" in line for line in texts(content)), "of the whole call only"
    assert f"{len(shown)} of 8" in content.right[0][0]


def test_phases_of_training_each_with_its_own_sum() -> None:
    view = view_of(profiles.training())
    lines = texts(waterfall.content(view, 100))
    heads = [i for i, line in enumerate(lines) if line.split()[0] in profiled.PHASES]
    assert [lines[i].split()[0] for i in heads] == ["forward", "backward", "step"]
    assert figures(lines[heads[1]])[:2] == [81.0, 143.0]
    view.phase = "backward"
    only = waterfall.content(view, 100)
    assert "softmax backward" in texts(only)[1]
    assert figures(texts(only)[-1])[:2] == [81.0, 143.0]
    assert "backward" in only.right[0][0]


def test_repeated_layers_are_one_row_and_other_files_are_named() -> None:
    lines = texts(waterfall.content(view_of(profiles.bert_on_a_gpu()), 160))
    assert lines[1].split()[:3] == ["sdpa_attention.py:96", "attention", "×12"]


@pytest.mark.parametrize("width", [20, 40, 62, 73, 80, 107, 187, 300])
def test_no_number_is_cut_at_any_width(block: list[AnyRecord], width: int) -> None:
    rows = waterfall.content(view_of(block), width).rows
    assert all("1,749.3" in row.text for row in rows if "in noise" in row.text)
    assert any("│" in row.text for row in rows) == (width >= 73)


def test_what_makes_the_figures_doubtful_comes_first(block: list[AnyRecord]) -> None:
    head = next(one for one in block if isinstance(one, CallProfile))
    doubtful = structs.replace(head, compiled_again=1, unmeasured="the guards: no such API")
    lines = texts(waterfall.content(view_of([*block[:-1], doubtful, block[-1]]), 100))
    assert lines[0] == " 1 graph compiled during timing: the times mean nothing"
    assert lines[1] == " not measured: the guards: no such API"


def test_without_a_profile_it_says_what_measures_one(block: list[AnyRecord]) -> None:
    start = structs.replace(block[0], settings=structs.replace(block[0].settings, profile=False))  # type: ignore[union-attr, type-var]
    view = view_of([start])
    for pane in (waterfall.content, region.why, region.eager, region.compiled, account.content,
                 account.modes, account.precision):  # fmt: skip
        said = " ".join(texts(pane(view, 80)))
        assert "not measured" in said
        assert "tcw profile /home/ada/models/block.py --no-grad --trace run.tcw measures it" in said
    assert profile_source.column(view, FILE) is None


def test_a_row_lights_up_with_its_kernel(block: list[AnyRecord]) -> None:
    view = view_of(block)
    view.select(refs.kernel("k4"))
    rows = [row for row in waterfall.content(view, 100).rows if row.ref]
    assert [row.key for row in rows] == ["profile:noise:"], "it is folded in there"
    view.select(refs.kernel("k2"))
    assert [row.key for row in waterfall.content(view, 100).rows if row.ref] == ["region:r3"]


def many(count: int) -> list[AnyRecord]:
    """A call with `count` regions that differ."""
    call = Call()
    for index in range(count):
        one = call.operation("aten.add.Tensor", 25, 3.0, module=f"m{index}")
        step = call.between(f"aten.add_{index}.Tensor", 2.0)
        region = Region(
            id=f"r{index}", call=1, label=f"add {index}", steps=(step,), operations=(one,),
            locations=(at(25),), difference=-1e-6 * (1 + index / count), noise=1e-7,
        )  # fmt: skip
        call.regions.append(region)
    return call.done()


def test_of_many_regions_only_those_in_sight_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    view = view_of(many(5000))
    made: list[str] = []
    region = waterfall._Chart._region
    monkeypatch.setattr(
        waterfall._Chart,
        "_region",
        lambda chart, row, ref: made.append(row.key) or region(chart, row, ref),
    )
    content = waterfall.content(view, 107)
    assert isinstance(content.rows, Rows)
    assert len(content.rows) > 5000
    assert list(content.rows.keys[1:3]) == ["region:r4999", "region:r4998"]
    assert not made
    assert len(content.rows[100:140]) == len(made) == 40


def test_the_sum_says_what_it_comes_to_at_every_width() -> None:
    view = view_of(profiles.block_profile())
    for width in (60, 71, 90, 120):
        rows = [row.text for row in waterfall.content(view, width).rows]
        total = next(row for row in rows if row.split()[:1] == ["sum"])
        assert "faster" in total or "slower" in total or "no measurable" in total, width


def test_differences_in_the_noise_are_in_order_of_size_too() -> None:
    view = view_of(profiles.block_profile())
    profile = view.derived.profile
    assert profile is not None
    quiet = [abs(row.difference) for row in profile.waterfall().quiet]
    assert len(quiet) > 2
    assert quiet == sorted(quiet, reverse=True)


def test_a_line_of_a_library_has_all_of_its_file_and_lines_where_there_is_room() -> None:
    library = "/usr/lib/python3.12/site-packages/transformers/models/llama/modeling_llama.py"
    places = tuple(at(line, file=library) for line in (64, 65, 66, 370))
    records = [
        structs.replace(one, locations=places) if isinstance(one, Region) else one
        for one in profiles.block_profile()
    ]
    rows = [row.text for row in waterfall.content(view_of(records), 127).rows]
    assert any("modeling_llama.py:64–66, 370" in row for row in rows)


def test_on_a_busy_machine_no_part_of_a_call_is_shown(block: list[AnyRecord]) -> None:
    view = view_of(on_a_busy_machine(block))
    for pane in (waterfall.content, region.why):
        lines = texts(pane(view, 100))
        assert "Speed not measured: the machine is busy" in " ".join(lines)
        assert not any("host and rest" in line for line in lines)
