"""Two recordings compared: what changed is listed once, and what is alike is counted."""

from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec import structs

from tcw.compiler.trace.records import (
    AnyRecord,
    Decided,
    DynamicSize,
    FailedGuard,
    Failure,
    Graph,
    GraphBreak,
    Guard,
    Guards,
    Kernel,
    Location,
    MemoryPlan,
    Recompile,
    Run,
    SpecialisedSize,
    Start,
    Timed,
    WhatIf,
)
from tcw.viewers.kit.lines import BLANK
from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences import Difference, difference
from tcw.viewers.summary.differences.causes import _quoted
from tcw.viewers.summary.differences.difference_words import change_text
from tcw.viewers.summary.differences.lines import diff_lines
from tcw.viewers.text import diff as report
from tcw.viewers.text.diff import blocks
from tcw.viewers.text.lines import to_text
from tests.block_trace import block_trace
from tests.conftest import Golden
from tests.no_torch.both_engines import both_engines_trace
from tests.no_torch.two_runs import VETO, base_run, vetoed_run, whatif

MOVED = "bytes moved"


def compared(
    base: list[AnyRecord], run: list[AnyRecord], measured: tuple[WhatIf, ...] = ()
) -> Difference:
    return difference(Recording(base), Recording(run), measured)


def text(found: Difference, code: bool = True) -> str:
    lines = [one for block in blocks(found, 100, code) for one in (BLANK, *block)]
    return to_text(lines[1:], 100)


def test_a_veto(golden: Golden) -> None:
    found = compared(base_run(), vetoed_run(), (whatif(),))
    assert found.verdict.title == "The veto is faster"
    assert found.verdict.measured is not None
    assert found.verdict.measured.output == "equal to the base, bit for bit"
    golden("difference/veto.txt", text(found))


def test_a_run_against_itself(golden: Golden) -> None:
    found = compared(base_run(), base_run())
    assert found.nothing
    assert (found.verdict.title, found.verdict.measured) == ("Nothing changed", None)
    assert found.verdict.why == "graphs, guards, decisions and kernels are the same in both"
    assert {kernel.kind for kernel in found.kernels} == {"same"}
    golden("difference/nothing.txt", text(found))


def test_another_engine(golden: Golden) -> None:
    """Kernels are matched by the user's lines, and decisions are not compared."""
    parts = Recording(both_engines_trace()).engines
    found = difference(parts["inductor"], parts["tcw"])
    assert found.engines == ("inductor", "tcw")
    assert found.decisions.changes == ()
    assert found.verdict.title == "Cost not measured"
    golden("difference/engines.txt", text(found, code=False))


def test_the_veto_is_said_once() -> None:
    changes = compared(base_run(), vetoed_run()).decisions.changes
    assert [change.id for change in changes if change.change == "vetoed"] == [VETO]
    assert [change.subject for change in changes if change.partner] == ["exp, sum + div"]


def test_the_way_back_takes_the_veto_back() -> None:
    found = compared(vetoed_run(), base_run())
    assert [change.id for change in found.decisions.changes if change.change == "undone"] == [VETO]
    assert found.vetoes == ()
    assert found.verdict.subject == "override taken back"


def test_a_veto_that_does_not_hold() -> None:
    """The groups decide, whatever was answered."""
    run = [
        structs.replace(one, settings=structs.replace(one.settings, overrides={VETO: "apart"}))
        if isinstance(one, Start)
        else one
        for one in block_trace()
    ]
    (veto,) = compared(base_run(), run).vetoes
    assert veto.holds is False
    assert "exp" in veto.evidence


def test_a_veto_on_a_node_that_is_not_there() -> None:
    overrides = {"inductor/0/0/forward/fuse/any_dims+nowhere": "apart"}
    run = [
        structs.replace(one, settings=structs.replace(one.settings, overrides=overrides))
        if isinstance(one, Start)
        else one
        for one in block_trace()
    ]
    (veto,) = compared(base_run(), run).vetoes
    assert veto.holds is None
    assert "nowhere" in veto.evidence


def test_kernels_are_found_again_whatever_their_ids() -> None:
    run = [
        structs.replace(one, id=f"k{int(one.id[1:]) + 7}") if isinstance(one, Kernel) else one
        for one in base_run()
    ]
    assert compared(base_run(), run).changed_kernels == ()


def _in_two(records: list[AnyRecord]) -> list[AnyRecord]:
    """The softmax as two kernels."""
    found: list[AnyRecord] = []
    for record in records:
        if isinstance(record, Kernel) and record.id == "k4":
            found.append(structs.replace(record, id="k4a", nodes=record.nodes[:3]))
            found.append(structs.replace(record, id="k4b", nodes=record.nodes[3:]))
        else:
            found.append(record)
    return found


def test_a_kernel_that_was_split_and_one_that_was_merged() -> None:
    (split,) = compared(base_run(), _in_two(base_run())).changed_kernels
    assert split.kind == "split"
    assert [kernel.id for kernel in split.before] == ["k4"]
    assert [kernel.id for kernel in split.after] == ["k4a", "k4b"]
    (merged,) = compared(_in_two(base_run()), base_run()).changed_kernels
    assert merged.kind == "merged"


def test_kernels_that_are_new_and_gone() -> None:
    less = [one for one in base_run() if not (isinstance(one, Kernel) and one.id == "k8")]
    assert [kernel.kind for kernel in compared(base_run(), less).changed_kernels] == ["gone"]
    assert [kernel.kind for kernel in compared(less, base_run()).changed_kernels] == ["new"]


def test_a_kernel_that_is_in_another_graph_now_is_the_same() -> None:
    """A new graph break moves what follows it into a graph of its own."""
    moved = [
        structs.replace(one, graph="1/0/forward/lowered", nodes=())
        if isinstance(one, Kernel) and one.id == "k8"
        else one
        for one in base_run()
    ]
    assert compared(base_run(), moved).changed_kernels == ()
    assert compared(moved, base_run()).changed_kernels == ()


def test_no_graph_at_all_is_not_fewer_graphs() -> None:
    """Then everything runs eagerly."""
    without = [one for one in base_run() if not isinstance(one, Graph)]
    found = compared(base_run(), without)
    (graphs,) = [effect for effect in found.effects if effect.kind == "graph"]
    assert (graphs.tone, graphs.words) == ("bad", "graphs 3 → 0")


def test_guards_by_kind_and_name() -> None:
    run = []
    for one in base_run():
        if isinstance(one, Guards) and one.compile_id == "0/0":
            one = structs.replace(one, guards=one.guards[1:])
        run.append(one)
    (change,) = compared(base_run(), run).guards
    assert change.before == change.after + 1


def test_a_size_that_is_specialised_is_an_effect_unless_its_break_is_gone() -> None:
    def keeping(*names: str) -> list[AnyRecord]:
        dynamic = tuple(
            DynamicSize(symbol=f"s{index}", name=name, source=f"L['{name}']")
            for index, name in enumerate(names)
        )
        return [*base_run(), Guards(compile_id="0/0", guards=(), dynamic=dynamic)]

    found = compared(keeping("x.size(0)", "___stack0"), keeping())
    words = [effect.words for effect in found.effects if effect.kind == "size"]
    assert words == ["was dynamic and is now specialised: x.size(0)"]
    found = compared(keeping(), keeping("x.size(0)"))
    lines = report.diff_lines(found, "main", "gpt.py", 100)
    assert to_text(lines[:1], 100) == "Dynamic now: x.size(0)\n"


def test_a_specialised_size_is_at_the_line_that_made_it_one() -> None:
    """Not at the line below, whose operations are new."""
    settings = Recording(base_run()).settings
    assert settings is not None
    at = Location(file=settings.file, line=24)

    def met(*values: str) -> list[AnyRecord]:
        pairs = pairwise(values)
        return [
            Recompile(
                compile_id=f"0/{number + 1}", call=2, function="forward",
                failed=(
                    FailedGuard(
                        entry=f"0/{number}", guard="", name="x.size(0)", source="L['x'].size()[0]",
                        expected=one, seen=other, location=Location(file=settings.file, line=20),
                    ),
                ),
            )
            for number, (one, other) in enumerate(pairs)
        ]  # fmt: skip

    size = DynamicSize(symbol="s0", name="x.size(0)", source="L['x'].size()[0]")
    plain = [one for one in base_run() if not isinstance(one, Recompile)]
    base = [*plain, *met("4", "6"), Guards(compile_id="0/0", guards=(), dynamic=(size,))]
    constant = SpecialisedSize(name="x.size(0)", location=at)
    guards = Guards(compile_id="0/0", guards=(), specialised=(constant,))
    found = compared(base, [*plain, *met("4", "6", "8"), guards])
    for kind in ("size", "recompile"):
        (effect,) = [one for one in found.effects if one.kind == kind]
        assert (effect.tone, effect.place) == ("bad", "block.py:24")
    (recompile,) = [one for one in found.effects if one.kind == "recompile"]
    assert recompile.words == "recompile x.size(0) 4 → 6 → 8 ×1 → ×2"
    assert compared(base, base).effects == ()


def failing(records: list[AnyRecord]) -> list[AnyRecord]:
    """It fails before its second graph."""
    first = next(at for at, record in enumerate(records) if isinstance(record, GraphBreak))
    return [*records[:first], Failure(type="RuntimeError", message="no", doing="call 1")]


def test_what_a_side_that_failed_lacks_is_unknown() -> None:
    for pair, title in (
        ((base_run(), failing(base_run())), "a new failure: RuntimeError: no"),
        ((failing(base_run()), base_run()), "a failure gone: RuntimeError: no"),
    ):
        found = compared(*pair)
        assert [effect.words for effect in found.effects] == [title]
        lists = (found.guards, found.breaks, found.kernels, found.decisions.changes)
        assert not any(lists)
        figures = {figure.what: figure.not_compared for figure in found.figures if figure.changed}
        assert figures["guards"] == "one side failed"
    other = structs.replace(failing(base_run())[-1], type="ValueError")
    found = compared(failing(base_run()), [*failing(base_run())[:-1], other])
    assert [effect.kind for effect in found.effects] == ["failure", "failure"]
    assert compared(failing(base_run()), failing(base_run())).effects == ()


def test_a_condition_on_sizes_that_a_line_makes_is_an_effect() -> None:
    """Torch's own, such as the least value of a dynamic size, are on no line."""

    settings = Recording(base_run()).settings
    assert settings is not None
    file = settings.file

    def guarded(*values: str) -> list[AnyRecord]:
        guard = Guard(
            kind="SHAPE_ENV", name="symbolic shapes", source="", code=("", *values),
            values=("2 <= x.size(0)", *values),
            lines=(None, *(Location(file=file, line=24) for _ in values)),
        )  # fmt: skip
        return [*base_run(), Guards(compile_id="0/1", guards=(guard,))]

    found = compared(guarded(), guarded("(x.size(0) % 2) == 0"))
    (effect,) = [one for one in found.effects if one.kind == "size"]
    assert effect.words == "a new condition on sizes: (x.size(0) % 2) == 0"
    assert effect.place == "block.py:24"
    (back,) = [one for one in compared(found.run.records, guarded()).effects if one.kind == "size"]
    assert (back.tone, back.words) == ("good", "a condition on sizes gone: (x.size(0) % 2) == 0")


def test_a_backward_that_only_one_side_compiled_comes_before_its_kernels() -> None:
    """torch compiles it ahead if sizes are symbolic; its kernels are no change of the forward. A
    size that is specialised comes first: it is why the backward is not compiled ahead."""
    backward = Kernel(
        id="k90", name="k90", graph="0/0/backward/lowered", language="C++", label="mm"
    )
    ahead = [*base_run(), backward]
    sizes = (DynamicSize(symbol="s0", name="x.size(0)", source="L['x']"),)
    ahead.append(Guards(compile_id="0/0", guards=(), dynamic=sizes))
    for pair, title in (
        ((base_run(), ahead), "The backward is compiled too: 1 kernel"),
        ((ahead, base_run()), "Was dynamic and is now specialised: x.size(0)"),
    ):
        found = compared(*pair)
        lines = report.diff_lines(found, "main", "gpt.py", 100)
        assert to_text(lines[:1], 100) == f"{title}\n"
    words = [effect.words for effect in found.effects if effect.kind == "backward"]
    assert words == ["the backward is no longer compiled: 1 kernel"]
    assert not [effect for effect in compared(ahead, ahead).effects if effect.kind == "backward"]


def test_bytes_moved_are_unknown_if_those_of_a_graph_are() -> None:
    """What is left of a sum would look like less to move."""

    def moved(records: list[AnyRecord]) -> float | None:
        (figure,) = [one for one in compared(base_run(), records).figures if one.what == MOVED]
        return figure.after

    symbolic = list(base_run())
    at, plan = next((at, one) for at, one in enumerate(symbolic) if isinstance(one, MemoryPlan))
    first = structs.replace(plan.buffers[0], bytes=None)
    symbolic[at] = structs.replace(plan, buffers=(first, *plan.buffers[1:]))
    other = structs.replace(plan, graph="1/0/forward/lowered")
    assert moved([*base_run(), other]) is not None
    assert moved([*symbolic, other]) is None


def test_where_an_object_lies_in_memory_is_no_change_of_guards() -> None:
    """Torch names what it keeps in globals after `id()`, which differs from process to process."""

    def guarded(*names: str) -> list[AnyRecord]:
        made = tuple(Guard(kind="DUPLICATE_INPUT", name=name, source=name) for name in names)
        return [
            structs.replace(one, guards=made)
            if isinstance(one, Guards) and one.compile_id == "0/0"
            else one
            for one in base_run()
        ]

    one = guarded("__optimizer_139872236160208.param_groups[0]", "torch_obj_0x7f36a1f0_c0", "x")
    other = guarded("__optimizer_140611038427344.param_groups[0]", "torch_obj_0x7f00ee10_c1", "x")
    assert compared(one, other).guards == ()
    (change,) = compared(one, guarded("__optimizer_140611038427344.param_groups[0]", "x")).guards
    assert change.what == "DUPLICATE_INPUT  torch_obj_…"
    sizes = compared(guarded("x.shape[12345678]"), guarded("x.shape[12345679]")).guards
    assert len(sizes) == 2


def test_compile_times_are_compared_where_they_were_measured_alike() -> None:
    def compile_cpu(*numbers: int) -> str:
        sides = []
        for number, records in zip(numbers, (base_run(), vetoed_run()), strict=True):
            start = records[0]
            assert isinstance(start, Start)
            sides.append([*records, Run(number=number, settings=start.settings)])
        figures = compared(sides[0], sides[1]).figures
        return next(figure.not_compared for figure in figures if figure.what == "compile CPU")

    assert compile_cpu(1, 2).endswith("s first")
    assert compile_cpu(2, 3) == ""


def test_the_verdict_follows_the_noise() -> None:
    slower = structs.replace(whatif(), difference=20e-6)
    nothing = structs.replace(whatif(), difference=1e-6)
    refused = structs.replace(whatif(), before=None, after=None, reason="there is no such kernel")
    titles = {
        one: compared(base_run(), vetoed_run(), (record,)).verdict.title
        for one, record in (("slower", slower), ("in noise", nothing), ("unknown", refused))
    }
    assert titles == {
        "slower": "The veto is slower",
        "in noise": "No measurable difference",
        "unknown": "Cost not measured",
    }


def test_a_whole_call_beside_the_kernel() -> None:
    call = WhatIf(
        base=1,
        run=2,
        scope="call",
        before=Timed(median=6.16e-3, spread=0.1e-3, runs=60),
        after=Timed(median=6.15e-3, spread=0.1e-3, runs=60),
        difference=-0.01e-3,
        noise=0.1e-3,
        pairs=60,
        max_error=4.8e-7,
        equal=False,
    )
    found = compared(base_run(), vetoed_run(), (whatif(), call))
    assert found.verdict.title == "The veto is faster"
    first, whole = found.measured
    assert found.verdict.measured is first
    assert first.times == ("135.0", "120.8", "µs")
    assert first.change_text == "-14.3 µs ±1.4"
    assert (whole.scope, whole.times) == ("whole call", ("6.16", "6.15", "ms"))
    assert whole.outcome == "in noise"


def test_hostile_names_stay_names() -> None:
    name = "\x1b[31m" + "n" * 10_000 + "‮"
    decided = Decided(
        id=f"tcw/0/0/forward/fuse/{name}+{name}",
        graph="0/0/forward",
        kind="fuse",
        default="fuse",
        choice="apart",
        overridden=True,
    )
    renamed = [
        structs.replace(one, label=name, name=name) if isinstance(one, Kernel) else one
        for one in vetoed_run()
    ]
    words = text(compared(base_run(), [*renamed, decided]))
    assert "\x1b" not in words
    assert "‮" not in words
    assert all(len(line) <= 100 for line in words.splitlines())


def test_indentation_is_no_difference() -> None:
    found = diff_lines(["a", "b"], ["{", "  a", "  b", "}"])
    assert (found.added, found.removed) == (2, 0)
    assert [line.sign for line in found.hunks[0].lines] == ["+", " ", " ", "+"]


def test_a_long_text_is_compared_soon() -> None:
    before = [f"x{i % 7} = {i};" for i in range(20_000)]
    found = diff_lines(before, [*before[:9000], "y = 1;", *before[9000:]])
    assert (found.added, found.removed) == (1, 0)


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("x = f(1)", "x = f(2)", "x = f(2)"),
        ("", "a" * 200, "a" * 80 + "…"),
        ("g(" + "a" * 100 + "1, b)", "g(" + "a" * 100 + "2, b)", "…" + "a" * 75 + "2, b)"),
        (
            "a" * 100 + "1" + "b" * 100,
            "a" * 100 + "2" + "b" * 100,
            "…" + "a" * 30 + "2" + "b" * 49 + "…",
        ),
        ("x" * 45 + "1" + "y" * 99, "x" * 45 + "2" + "y" * 99, "x" * 45 + "2" + "y" * 34 + "…"),
    ],
)
def test_the_edited_part_of_a_long_line_is_quoted(before: str, after: str, shown: str) -> None:
    assert _quoted(after, before) == shown


def test_less_memory_behind_a_new_graph_break_is_no_gain() -> None:
    """Each graph needs less for itself; what crosses the break is in no graph."""

    def halved(records: list[AnyRecord]) -> list[AnyRecord]:
        return [
            structs.replace(record, peak_bytes=(record.peak_bytes or 0) // 2)
            if isinstance(record, MemoryPlan)
            else record
            for record in records
        ]

    def peak(base: list[AnyRecord], run: list[AnyRecord]) -> tuple[str, bool]:
        found = compared(base, run)
        (figure,) = [one for one in found.figures if one.what == "memory peak"]
        return change_text(figure), any(
            effect.words.startswith("memory peak") for effect in found.effects
        )

    plain = [one for one in base_run() if not isinstance(one, GraphBreak)]
    assert peak(plain, halved(base_run())) == ("not compared   (graphs are cut elsewhere)", False)
    text, effect = peak(base_run(), halved(base_run()))
    assert "→" in text
    assert effect


def test_kernels_of_many_layers_that_changed_alike_are_one_line() -> None:
    kernel = next(one for one in base_run() if isinstance(one, Kernel) and one.id == "k8")

    def with_new(*labels: str) -> list[str]:
        made = [
            structs.replace(kernel, id=f"k{100 + at}", label=label, nodes=(), origins=(f"n{at}",))
            for at, label in enumerate(labels)
        ]
        return text(compared(base_run(), [*base_run(), *made]), code=False).splitlines()

    (alike,) = [one for one in with_new(*["relu"] * 9) if "new" in one]
    assert alike.split("  ")[1:3] == ["k100, k101, k102 and 6 more relu ×9", "new, +28 −0 lines"]
    rows = with_new(*(f"label {at}" for at in range(30)))
    assert sum("new" in row for row in rows) == 12
    assert rows[-1] == "  18 more"


def test_a_model_file_by_another_name_is_no_change_of_guards() -> None:
    def in_file(name: str) -> list[AnyRecord]:
        guard = Guard(kind="MODULE_MATCH", name=f"{name}.torch", source=f"G['{name}'].torch")
        records = [
            structs.replace(one, guards=(guard,)) if isinstance(one, Guards) else one
            for one in base_run()
        ]
        start = records[0]
        assert isinstance(start, Start)
        settings = structs.replace(start.settings, file=f"/code/{name}.py")
        return [structs.replace(start, settings=settings), *records[1:]]

    assert compared(in_file("old"), in_file("new")).guards == ()
    assert compared(in_file("old"), in_file("old")).guards == ()


def test_a_recompile_there_and_back_shows_what_it_met() -> None:
    """`A → B → A`, not `A → A`."""

    def again(number: int, expected: str, seen: str) -> Recompile:
        failed = FailedGuard(
            entry="0/0", guard="", name="self.mlp", source="L['self'].mlp",
            expected=expected, seen=seen,
        )  # fmt: skip
        return Recompile(compile_id=f"0/{number}", call=1, failed=(failed,), function="forward")

    run = [*base_run(), again(1, "A", "B"), again(2, "B", "A")]
    found = compared(base_run(), run)
    (change,) = [recompile for recompile in found.recompiles if "self.mlp" in recompile.what]
    assert change.what.endswith("self.mlp A → B → A")
    assert any("self.mlp A → B → A" in effect.words for effect in found.effects)
