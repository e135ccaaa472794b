"""Keys do what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import GraphBreak, Guards, MemoryPlan
from tcw.viewers.panes.arrangement import ARRANGEMENTS, PANES
from tcw.workbench.tui import hints
from tcw.workbench.tui.commands import Commands, command
from tcw.workbench.tui.hints import GOES, HINTS, SENTENCES
from tcw.workbench.tui.predict import ANSWERED, GUESSING
from tests.block_capture import FILE
from tests.no_torch.tui.conftest import Open


class Twice:
    """A controller with a key that another has."""

    @command("Go elsewhere", "j")
    def elsewhere(self) -> None: ...


async def test_no_key_has_two_commands(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        commands = reader.bench.commands
        assert len(commands.all) == 77, "none is lost"
        assert not {"g", *map(str, range(10))} & set(commands.by_key)
        for one in commands.all:
            assert one.words[0].isupper()
            assert bool(one.keys) == bool(one.shown)
        with pytest.raises(ValueError, match=r"Twice.elsewhere: .*'j'"):
            commands.register(Twice())


async def test_hints_and_help_name_commands(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        commands: Commands = reader.bench.commands
        footers = [*hints.HINTS.values(), hints.DECIDE, hints.CHOOSE, hints.STEP, hints.STAND]
        footers += [
            hints._KEYS,
            hints._DRIVEN,
            hints.RUNNING,
            hints.OVER,
            hints.PAST,
            GUESSING,
            ANSWERED,
        ]
        for footer in footers:
            for names, words in footer:
                assert commands.keys(names).strip()
                assert words


def test_every_arrangement_is_in_the_palette_and_has_hints_and_help() -> None:
    asked_for = {"predict", "start"}
    assert {name for name, _ in GOES} | asked_for == set(ARRANGEMENTS)
    assert set(HINTS) == set(ARRANGEMENTS)
    assert set(SENTENCES) == {*PANES, "spine"}
    for words in (*SENTENCES.values(), *(words for _, words in GOES)):
        assert words
        assert not words.startswith(" ")


async def test_move_and_ends(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        pane = reader.pane("findings")
        assert reader.focus() == "findings"
        await reader.press("j")
        assert pane.row.key == "finding:1"
        await reader.press("G")
        assert pane.row.key == "finding:3"
        await reader.press("j")
        assert pane.row.key == "finding:3"
        await reader.press("g", "g")
        assert pane.row.key == "finding:0"
        await reader.press("g", "j")
        assert pane.row.key == "finding:1"


async def test_open_and_back(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.press("j", "j", "enter")
        assert reader.bench.navigator.arrangement == "break"
        assert reader.bench.view.ref == refs.source(FILE, 26)
        assert reader.bench.view.compile_id == "1/0"
        await reader.press("enter")
        assert reader.focus() == "sides"
        await reader.press("escape")
        assert reader.bench.navigator.arrangement == "overview"
        assert reader.pane("findings").row.key == "finding:2"


async def test_panes_by_number_and_tab(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.press("2")
        assert reader.focus() == "overview"
        await reader.press("tab")
        assert reader.focus() == "findings"
        await reader.press("tab")
        assert reader.focus() == "spine"
        await reader.press("shift+tab")
        assert reader.focus() == "findings"


async def test_spine_changes_the_compile_and_its_stages_lead_on(
    open_trace: Open, block_file: Path
) -> None:
    async with open_trace(block_file, (200, 55)) as reader:
        await reader.press("1", "j", "j", "j")
        assert reader.pane("spine").row.key == "stage:0/0:autograd"
        await reader.press("j", "enter")
        assert reader.bench.navigator.arrangement == "fusion"
        await reader.press("1", "G")
        assert reader.bench.view.compile_id == "2/1"


async def test_zoom(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.press("z")
        assert [pane.pane for pane in reader.bench.panes()] == ["findings"]
        assert reader.pane("findings").size.width == 120
        await reader.press("z")
        assert {pane.pane for pane in reader.bench.panes()} == {"spine", "overview", "findings"}


async def test_search(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.go("source")
        await reader.press("slash")
        await reader.type("linear")
        await reader.press("enter")
        assert reader.bench.view.ref == refs.source(FILE, 12)
        await reader.press("n")
        assert reader.bench.view.ref == refs.source(FILE, 13)
        await reader.press("N")
        assert reader.bench.view.ref == refs.source(FILE, 12)
        await reader.press("slash")
        await reader.type("no such words")
        await reader.press("enter")
        assert "no row of this pane" in reader.text()


async def test_n_walks_the_counterparts(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.go("source")
        await reader.press("n")
        graph = reader.pane("graph")
        assert graph.spot in graph.lit
        assert "counterpart 1 of" in reader.text()
        await reader.press("N")
        assert reader.pane("kernel").spot == max(reader.pane("kernel").lit)


async def test_findings_by_e(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.press("enter")
        assert reader.bench.navigator.arrangement == "recompiles"
        await reader.press("e", "e")
        assert reader.bench.navigator.arrangement == "break"
        assert reader.bench.view.ref == refs.source(FILE, 26)
        await reader.press("E")
        assert reader.bench.navigator.arrangement == "recompiles"


async def test_brackets_step_through_this_kind(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.press("j", "j", "enter")
        assert "break  2 of 2" in reader.text()
        await reader.press("right_square_bracket")
        assert "break  1 of 2" in reader.text()
        await reader.go("fusion")
        first = reader.bench.view.pair
        await reader.press("right_square_bracket")
        assert reader.bench.view.pair != first
        assert reader.pane("fusion").row.key == f"pair:{reader.bench.view.pair}"


async def test_brackets_stay_among_the_kernels_of_the_graph_that_is_shown(
    open_trace: Open, block_file: Path
) -> None:
    async with open_trace(block_file) as reader:
        await reader.go("source")
        graph = reader.bench.view.graph()
        assert graph is not None
        assert "backward" not in graph.id
        kernels = [kernel.id for kernel in reader.bench.view.kernels_of_graph()]
        seen = []
        for _ in kernels:
            seen.append(reader.bench.view.kernel)
            await reader.press("right_square_bracket")
        assert set(seen[1:]) <= set(kernels)
        assert reader.bench.view.kernel == seen[0] or not seen[0]
        while reader.bench.view.kernel != kernels[-1]:
            await reader.press("right_square_bracket")
        assert f"{len(kernels)} of {len(kernels)}" in reader.lines()[-1]
        await reader.press("right_square_bracket")
        assert reader.bench.view.kernel == kernels[0]
        assert "past the last, to the first" in reader.lines()[-1]


async def test_the_timeline_says_where_the_selection_stands(
    open_trace: Open, block_file: Path
) -> None:
    async with open_trace(block_file) as reader:
        recording = reader.bench.recording
        count = len(recording.records)
        for name, kind in (("break", GraphBreak), ("memory", MemoryPlan), ("guards", Guards)):
            await reader.go(name)
            words = reader.lines()[-2].rpartition("record ")[2].split()
            assert words[1:] == ["/", f"{count:,}"]
            record = recording.records[int(words[0].replace(",", "")) - 1]
            assert isinstance(record, kind)
            assert reader.bench.view.compile_id in (getattr(record, "compile_id", "") or "0/0")


async def test_parentheses_switch_language_and_graph(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.press("1")
        await reader.go("source")
        seen = []
        for _ in range(4):
            seen.append(reader.pane("kernel").content.name)
            await reader.press("right_parenthesis")
        assert seen == ["c++", "triton", "ptx", "sass"]
        assert reader.pane("kernel").content.name == "c++"
        await reader.press("3")
        assert reader.pane("graph").content.subject == "0/0 lowered"
        await reader.press("left_parenthesis")
        assert reader.pane("graph").content.subject == "0/0 forward"


async def test_raw_and_torch_text(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.go("source")
        assert "static_cast" not in reader.text()
        await reader.press("R")
        await reader.press("4")
        await reader.press("G")
        assert "integer_div_error" in reader.text()
        await reader.go("break")
        assert "U shows all" in reader.text()
        await reader.press("U")
        await reader.press("3")
        await reader.press("G")
        assert "This graph break is fundamental" in " ".join(reader.text().split()) or (
            "hint" in reader.text()
        )


async def test_copy_takes_the_fix(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.press("y")
        assert reader.app.clipboard == "torch.compile(model, dynamic=True)"
        assert "copied" in reader.text()
        await reader.press("j")
        assert "copied" not in reader.text()


async def test_help_and_palette_close_again(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.press("question_mark")
        assert "ranked" not in reader.lines()[12] or "next, previous finding" in reader.text()
        assert "next, previous finding" in reader.text()
        await reader.press("escape")
        assert "next, previous finding" not in reader.text()
        await reader.press("colon")
        await reader.type("zz")
        assert "no command has these words" in reader.text()
        await reader.press("escape", "j")
        assert reader.pane("findings").row.key == "finding:1"


async def test_theme_by_palette(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.choose("light theme")
        assert reader.bench.look.name == "light"
        assert "#fbfbf9" in reader.svg()


async def test_quit(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.press("q")
        assert reader.app.return_code == 0


async def test_memory_order(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.go("memory")
        pane = reader.pane("memory")
        assert next(row.key for row in pane.rows if row.key) == "buffer:buf1"
        await reader.press("o")
        assert next(row.key for row in pane.rows if row.key) == "buffer:buf8"


async def test_folds(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.go("source")
        await reader.press("3", "g", "g")
        pane = reader.pane("graph")
        before = len(pane.rows)
        await reader.press("enter")
        assert len(pane.rows) == before + 7
        await reader.press("enter")
        assert len(pane.rows) == before


async def test_mouse(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        findings = reader.pane("findings")
        await reader.pilot.click(offset=(30, findings.region.y + 6))
        await reader.pilot.pause()
        assert findings.row.key == "finding:1"
        await reader.pilot.click("#timeline", offset=(110, 0))
        await reader.pilot.pause()
        assert reader.bench.view.compile_id == "2/1"


async def test_each_arrangement_has_hints_and_the_footer_keeps_help(
    open_trace: Open, block_file: Path
) -> None:
    async with open_trace(block_file, (60, 20)) as reader:
        for name, words in GOES:
            if name == "recompiles":
                await reader.choose(words)
            else:
                await reader.go(name)
            assert reader.bench.navigator.arrangement == name
            assert name in HINTS
            assert "? help  : all commands" in reader.lines()[-1]


async def test_esc_leads_to_the_overview_and_to_now(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        reader.bench.navigator.arrangement = "memory"  # as a trace that was left there
        await reader.bench.rebuild()
        await reader.press("escape")
        assert reader.bench.navigator.arrangement == "overview"
        await reader.press("<")
        assert reader.bench.view.playhead
        await reader.press("escape")
        assert not reader.bench.view.playhead


async def test_a_whole_trace_is_never_cut_off(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.press("e", "e", "enter")
        assert reader.bench.navigator.arrangement != "overview"
        await reader.pilot.click("#timeline", offset=(20, 0))
        await reader.settle()
        await reader.press("escape")
        assert reader.bench.navigator.arrangement == "overview"
        assert "Cut off" not in reader.text()
        assert not reader.bench.view.playhead


async def test_the_way_back_undoes_nothing(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.press("e", "enter", "b")
        assert len(reader.bench.view.breakpoints) == 1
        await reader.press("B", "D", "escape")
        assert not reader.bench.view.breakpoints


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("triton", "Show the next language or graph"),
        ("ptx", "Show the next language or graph"),
        ("c++", "Show the next language or graph"),
        ("screenshot", "Save a picture of the screen"),
        ("report", "Write a report"),
        ("html", "Write a report"),
    ],
)
async def test_the_palette_knows_other_words(
    words: str, found: str, open_trace: Open, block_file: Path
) -> None:
    async with open_trace(block_file) as reader:
        await reader.press("colon")
        await reader.type(words)
        assert any(found in line for line in reader.lines()[4:])


async def test_the_mouse_works_on_header_footer_and_each_row_of_a_finding(
    open_trace: Open, block_file: Path
) -> None:
    async with open_trace(block_file) as reader:
        footer = reader.lines()[-1]
        await reader.pilot.click("#footer", offset=(footer.index("next finding"), 0))
        await reader.settle()
        findings = reader.pane("findings")
        assert findings.row.key == "finding:1"
        await reader.pilot.click("#footer", offset=(footer.index("j k") + 2, 0))
        await reader.settle()
        assert findings.row.key == "finding:0", "the second of two keys"
        await reader.pilot.click("#footer", offset=(footer.index("help"), 0))
        await reader.settle()
        assert reader.app.screen is not reader.bench
        await reader.press("escape")
        below = findings.rows.index(next(r for r in findings.rows if r.key == "finding:2")) + 1
        assert not findings.rows[below].key
        await reader.pilot.click(findings, offset=(20, below - findings.top + 1))
        await reader.settle()
        assert findings.row.key == "finding:2"
        await reader.go("memory")
        await reader.pilot.click("#header", offset=(3, 0))
        await reader.settle()
        assert reader.bench.navigator.arrangement == "overview"
