"""The panes of a profile, as rows: waterfall, region, why, account, and the times beside others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from compiler.trace import refs
from compiler.trace.provenance import Provenance
from compiler.trace.records import (
    Account,
    AnyRecord,
    CallProfile,
    Ceilings,
    CompiledStep,
    EagerOperation,
    Graph,
    Kernel,
    KernelNests,
    KernelPrecision,
    ModeRow,
    NestTime,
    Node,
    OutputPrecision,
    Region,
)
from tests.no_torch import profiles
from tests.no_torch.profile_building import FILE, LOWERED, Call, X, at, timed
from viewers.panes import (
    account,
    graph,
    kernel,
    kernels,
    profile_source,
    profiled,
    region,
    source,
    waterfall,
    why,
)
from viewers.panes.rows import Content, Rows
from viewers.panes.targets import ToKernel
from viewers.panes.view import Derived, View
from viewers.recording import Recording


def view_of(records: list[AnyRecord], **state: object) -> View:
    recording = Recording(records)
    view = View(Derived(recording, Provenance(records)), compile_id="0/0")
    return replace(view, **state)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def block() -> list[AnyRecord]:
    return profiles.block_profile()


def texts(content: Content) -> list[str]:
    return [row.text.rstrip() for row in content.rows]


def keys(content: Content) -> list[str]:
    return [row.key for row in content.rows if row.key]


def of_label(view: View, label: str) -> str:
    assert view.derived.profile is not None
    return next(row.key for row in view.derived.profile.rows if row.label == label)


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


# The waterfall


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
    for pane in (waterfall.content, why.content, region.eager, region.compiled, account.content,
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
    """A call of so many regions that differ."""
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
    row = waterfall._Chart.row
    monkeypatch.setattr(
        waterfall._Chart, "row", lambda chart, entry: made.append(entry.key) or row(chart, entry)
    )
    content = waterfall.content(view, 107)
    assert isinstance(content.rows, Rows)
    assert len(content.rows) > 5000
    assert list(content.rows.keys[1:3]) == ["region:r4999", "region:r4998"]
    assert not made
    assert len(content.rows[100:140]) == len(made) == 40


# A region, and why


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
    one = KernelPrecision(
        graph="0/0/forward", kernel="k2", call=1, outputs=(wide, wrong), within=False
    )
    records = [r for r in profiles.wrong_kernel() if not isinstance(r, KernelPrecision)]
    view = view_of([*records, one], region="r3")
    said = " ".join(texts(region.compiled(view, 90)) + texts(account.precision(view, 80)))
    assert "error 0.03" in said
    assert "0.05" not in said


def test_y_copies_the_fix_of_a_cause() -> None:
    view = view_of(profiles.graph_break())
    cause = next(row for row in why.content(view, 70).rows if row.key)
    region = next(row for row in waterfall.content(view, 100).rows if row.key)
    assert cause.copies == region.copies == "h = h.clamp(-8, 8)"


def test_causes_of_the_region_come_first() -> None:
    view = view_of(profiles.masked_attention())
    profile = view.derived.profile
    assert profile is not None
    last = len(profile.causes) - 1
    view.region = profile.causes[last].regions[0]
    mine = why.content(view, 70)
    assert mine.start == f"reason:{last}"
    assert next(row.key for row in mine.rows if row.key) == mine.start
    assert any("the other causes" in line for line in texts(mine))


def test_what_was_tried_stands_with_its_cause() -> None:
    view = view_of(profiles.trials())
    lines = texts(account.modes(view, 80))
    assert " ✓  our engine  --engine tcw  2.12 ms → 1.79 ms  -334 µs ±30.0 µs" in lines


# The account


@pytest.mark.parametrize(
    ("busy", "why"), [(True, "the machine was busy: "), (False, "rounds differ too much: ")]
)
def test_an_account_that_noise_may_explain_away_claims_no_shares(
    block: list[AnyRecord], busy: bool, why: str
) -> None:
    """With lines that add up to 178% of the call, "dispatch 97%" says nothing."""

    def changed(one: AnyRecord) -> AnyRecord:
        if isinstance(one, CallProfile):
            return structs.replace(one, contended=busy)
        if isinstance(one, Account) and one.side == "compiled":
            far = -0.78 * one.measured.median
            return structs.replace(one, remainder=far, remainder_noise=-2 * far)
        return one

    rows = texts(account.content(view_of([changed(one) for one in block]), 100))
    lines = {line.split()[0]: line for line in rows if line}
    assert "244.0" in lines["kernels"]
    assert "%" not in lines["kernels"]
    assert lines["remainder"].count("%") == 1, "eager's"
    said = " ".join(line.strip() for line in rows)
    assert why in said
    assert "so the compiled side has no shares" in said


def test_the_lines_of_the_account_and_what_they_leave(block: list[AnyRecord]) -> None:
    lines = {line.split()[0]: line for line in texts(account.content(view_of(block), 100)) if line}
    assert lines["kernels"].split()[1:3] == ["–", "244.0"]
    assert "AOTAutograd" in lines["dispatch"]
    assert lines["remainder"].split()[1:5] == ["4.0", "0.2%", "4.0", "0.2%"]
    assert "measured, minus all of the above" in lines["remainder"]
    assert lines["call"].split()[1:] == ["2,150.6", "2,048.0"]
    assert "22.0 GB/s at 1.0 GB" in " ".join(lines.values())


def test_modes_drop_what_has_no_room_but_never_the_answer() -> None:
    view = view_of(profiles.modes())
    wide, narrow = texts(account.modes(view, 110)), texts(account.modes(view, 60))
    assert "compiled in" in wide[0]
    assert "compiled in" not in narrow[0]
    tcw = next(line for line in narrow if line.startswith(" tcw"))
    assert "1.26x" in tcw
    assert "2,341 calls" in tcw
    assert any("CUDA graphs need a GPU" in line for line in narrow)
    assert any("in noise" in line for line in wide), "max-autotune"


def test_a_mode_is_in_the_noise_as_its_recording_says() -> None:
    """The noise of a speed-up is a share of it: 10% of 1.1 is more than 0.105."""
    row = ModeRow(name="tcw", time=timed(2055.0), speedup=1.105, noise=0.1)
    lines = texts(account.modes(view_of([*profiles.block_profile(), row]), 110))
    assert "in noise" in next(line for line in lines if line.startswith(" tcw"))


# Times beside other things


def test_the_times_beside_the_source(block: list[AnyRecord]) -> None:
    view = view_of(block)
    found = profile_source.column(view, FILE)
    assert found is not None
    assert found[16] == ("    450 ", "warn")
    assert found[25][0] == "  ≤57.8 ", "a kernel of it has other lines, too"
    view.times = "eager"
    assert (profile_source.column(view, FILE) or {})[25][0] == "   69.6 "
    view.times = "difference"
    differences = profile_source.column(view, FILE) or {}
    assert differences[29][0].strip() == "+40.0"
    assert 26 not in differences, "a region stands at its first line"
    content = source.content(view, 60)
    assert content.right == (("Δ µs", "dim"),)
    assert content.rows[28].text.startswith("   29   +40.0 ")


def test_the_time_of_a_kernel_stands_beside_its_last_node(block: list[AnyRecord]) -> None:
    names = ("x", "add", "sub", "abs", "max", "mul", "erf")
    nodes = tuple(
        Node(name=name, op="call_function" if index else "placeholder", target=f"aten.{name}",
             value=X, location=at(25))
        for index, name in enumerate(names)
    )  # fmt: skip
    lowered = Graph(id=LOWERED, kind="lowered", compile_id="0/0", nodes=nodes, ops=6, call=1)
    view = view_of([*block[:-1], lowered, block[-1]], variant=LOWERED)
    times = profile_source.node_times(view, LOWERED)
    assert {name: round(seconds * 1e6, 1) for name, seconds in times.items()} == {
        "mul": 26.5, "max": 31.3, "erf": 141.0,
    }  # fmt: skip
    rows = texts(graph.content(view, 60))
    assert any("erf" in line and "141 µs" in line for line in rows)
    assert sum("µs" in line for line in rows) == 3


def test_the_time_of_a_kernel_in_its_title_and_in_the_list(block: list[AnyRecord]) -> None:
    view = view_of(block, kernel="k0")
    assert kernel.content(view, 90).right[0][0].startswith("26.5 µs · 25% of the roofline")
    rows = {row.key: row.text for row in kernels.content(view, 80).rows if row.key}
    assert "141 µs" in rows["kernel:k6"]


EVIL = "a\x1b[31m[bold]b\n\u202ec 漢字\t"


def test_the_users_words_are_data() -> None:
    records: list[AnyRecord] = []
    for one in profiles.wrong_kernel():
        if isinstance(one, Region):
            one = structs.replace(one, label=EVIL, modules=(EVIL,))
        elif isinstance(one, EagerOperation):
            one = structs.replace(one, operation=EVIL, arguments=EVIL, module=EVIL)
        elif isinstance(one, CompiledStep | ModeRow):
            one = structs.replace(one, name=EVIL)
        elif isinstance(one, Kernel):
            one = structs.replace(one, name=EVIL, label=EVIL)
        elif isinstance(one, CallProfile):
            one = structs.replace(one, what=EVIL, unmeasured=EVIL)
        elif isinstance(one, Ceilings):
            one = structs.replace(one, device=EVIL, rates={EVIL: 1e9})
        elif isinstance(one, Account):
            lines = tuple(structs.replace(line, name=EVIL, what=EVIL) for line in one.lines)
            one = structs.replace(one, lines=lines)
        records.append(one)
    view = view_of(records, region="r3", unfolded={"profile:noise:"}, region_filter="")
    for pane in (waterfall.content, why.content, region.eager, region.compiled, account.content,
                 account.modes, account.precision):  # fmt: skip
        for width in (40, 107):
            content = pane(view, width)
            said = [content.subject, *(span for span, _ in content.right)]
            assert "".join((*said, *texts(content))).isprintable(), pane
    for row in waterfall.selection(view, 100):
        assert row.text.isprintable()


def test_the_time_of_each_loop_nest_stands_beside_it() -> None:
    one = "void kernel()\n{\n    for(int64_t x0=0;)\n    {\n    }\n}\n"
    two = one + one.replace("kernel", "other")
    call = Call()
    call.region("relu", [call.kernel("cpp_fused_relu_0", "relu", [18], 50.0, text=one)], [])
    call.region("sum", [call.kernel("cpp_fused_sum_1", "sum", [19], 80.0, text=two)], [])
    records = call.done()
    first, second = (one for one in records if isinstance(one, Kernel))

    def times(records: list[AnyRecord], of: Kernel) -> dict[int, str]:
        found = profile_source.nest_times(view_of(records), of)
        return {line: span[0].strip() for line, span in found.items()}

    assert times(records, first) == {3: "50.0"}
    assert times(records, second) == {3: "≤80.0", 9: "≤80.0"}
    nests = KernelNests(
        graph="0/0/inference",
        kernel=second.id,
        call=1,
        nests=(NestTime(line=3, time=timed(62.0)), NestTime(line=9, time=timed(17.5))),
    )
    assert times([*records, nests], second) == {3: "62.0", 9: "17.5"}
    view = view_of([*records, nests], kernel=second.id)
    rows = [row for row in kernel.content(view, 80).rows if "for" in row.text]
    assert ["".join(words for words, _ in row.gutter).split() for row in rows] == [
        ["62.0"],
        ["17.5"],
    ]


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
