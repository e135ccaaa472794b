"""The profile in the workbench: how it opens, moves, lights up, filters and copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.compiler.protocol.commands import Rerun
from tcw.compiler.trace import refs
from tcw.compiler.trace.records import AnyRecord
from tests.no_torch import profiles
from tests.no_torch.profile_building import FILE, Call
from tests.no_torch.tui.conftest import Drive, Open, Reader, encoded
from tests.no_torch.viewers.panes.test_waterfall import many


@pytest.fixture
def profile_file(tmp_path: Path) -> Path:
    return written(tmp_path, profiles.masked_attention())


def written(folder: Path, records: list[AnyRecord]) -> Path:
    path = folder / "profile.tcw"
    path.write_bytes(encoded(records))
    return path


def lit_lines(reader: Reader) -> list[int]:
    source = reader.pane("source")
    return [refs.split_source(source.rows[index].ref)[1] for index in source.lit]


async def test_it_opens_with_its_layout(open_trace: Open, profile_file: Path) -> None:
    async with open_trace(profile_file) as reader:
        names = [pane.pane for pane in reader.bench.stage.panes]
        assert names == ["profile", "source", "profile-why"]
        assert reader.focus() == "profile"
        assert lit_lines(reader) == [21], "the first region is looked at"
        assert "fused attention became 2 products" in reader.text()


async def test_a_trace_without_one_opens_as_before(
    open_trace: Open, profile_file: Path, block_file: Path
) -> None:
    async with open_trace(profile_file) as reader:
        await reader.press("q")
    async with open_trace(block_file) as reader:
        assert reader.bench.navigator.arrangement == "overview"
        await reader.press("V")
        assert "tcw profile /home/ada/block.py --train --trace" in reader.text()
        await reader.press("C")
        assert "tcw profile measures them" in reader.lines()[-1]


async def test_what_matters_most_is_looked_at_first(open_trace: Open, tmp_path: Path) -> None:
    """It may be no region: then the first cause leads, and its line is lit."""
    async with open_trace(written(tmp_path, profiles.float_argument())) as reader:
        assert not reader.bench.view.region
        why = reader.pane("profile-why")
        assert why.rows[1].text.startswith(" ↻ each call recompiles")
        assert reader.bench.view.ref == refs.source(FILE, 24)
    async with open_trace(written(tmp_path, profiles.wrong_kernel())) as reader:
        assert "k2 cpp_fused_clone_1" in reader.pane("profile-why").rows[1].text
        assert reader.bench.view.ref == refs.source(FILE, 16)


async def test_the_selection_is_kept(
    open_trace: Open, profile_file: Path, block_file: Path
) -> None:
    async with open_trace(profile_file) as reader:
        await reader.go("source")
        pane = reader.pane("source")
        pane.go(25)
        await reader.settle()
        reader.bench.view.region = ""
        await reader.press("V")
        assert reader.pane("profile-why").content.subject == "residual, layer norm, max"
    async with open_trace(block_file) as reader:
        await reader.go("source")
        before = reader.bench.view.ref
        await reader.press("V")
        assert reader.bench.view.ref == before != ""


async def test_moving_lights_the_lines_and_kernels_of_a_region(
    open_trace: Open, profile_file: Path
) -> None:
    async with open_trace(profile_file) as reader:
        await reader.press("j", "j")
        assert lit_lines(reader) == [25, 26, 27]
        assert reader.bench.view.lit[refs.kernel("k3")] == "exact"
        assert reader.pane("profile-why").content.subject == "residual, layer norm, max"
        await reader.press("3")
        source = reader.pane("source")
        source.go(15)
        await reader.settle()
        waterfall = reader.pane("profile")
        assert "region:r3" in {row.key for row in waterfall.rows if row.ref}


async def test_three_levels_down_and_back(open_trace: Open, profile_file: Path) -> None:
    async with open_trace(profile_file) as reader:
        await reader.press("enter")
        assert reader.bench.navigator.arrangement == "region"
        assert reader.focus() == "region-compiled"
        await reader.press("j", "enter")
        assert reader.bench.navigator.arrangement == "source"
        assert reader.pane("kernel").content.subject == "k7 softmax"
        await reader.press("escape", "escape")
        assert reader.bench.navigator.arrangement == "profile"
        assert reader.pane("profile").row.key == f"region:{reader.bench.view.region}"


async def test_brackets_walk_the_regions_of_the_table(open_trace: Open, profile_file: Path) -> None:
    async with open_trace(profile_file) as reader:
        await reader.press("enter", "right_square_bracket")
        assert reader.pane("region-eager").content.subject == "q k v copies"
        assert "region 2 of 10" in reader.lines()[-1]


async def test_order_filter_and_fold(open_trace: Open, profile_file: Path) -> None:
    async with open_trace(profile_file) as reader:
        pane = reader.pane("profile")
        await reader.press("o")
        assert "by line" in pane.content.right[0][0]
        assert reader.bench.view.region, "the cursor stays on its region"
        await reader.press("ampersand")
        await reader.type("norm")
        await reader.press("enter")
        assert "2 of 10: norm" in pane.content.right[0][0]
        await reader.press("ampersand", "ctrl+u", "enter")
        fold = next(i for i, row in enumerate(pane.rows) if "in noise" in row.text)
        pane.go(fold)
        await reader.press("enter")
        assert "▾ 4 in noise" in reader.text()


async def test_phases_of_training(open_trace: Open, tmp_path: Path) -> None:
    async with open_trace(written(tmp_path, profiles.training()), (160, 40)) as reader:
        assert "backward" in reader.pane("spine").rows[-2].text
        await reader.press("right_square_bracket", "right_square_bracket")
        assert reader.bench.view.phase == "backward"
        assert "softmax backward" in reader.text()
        assert "q k v copies" not in "\n".join(r.text for r in reader.pane("profile").rows)
        spine = reader.pane("spine")
        await reader.press("1")
        spine.go(next(i for i, row in enumerate(spine.rows) if "step" in row.text))
        await reader.press("enter")
        assert reader.bench.view.phase == "step"


async def test_times_beside_the_source_are_turned(open_trace: Open, profile_file: Path) -> None:
    async with open_trace(profile_file) as reader:
        seen = []
        for _ in range(3):
            seen.append(reader.pane("source").content.right[0][0])
            await reader.press("C")
        assert seen == ["µs compiled", "µs eager", "Δ µs"]


async def test_y_copies_the_fix(open_trace: Open, tmp_path: Path) -> None:
    async with open_trace(written(tmp_path, profiles.graph_break())) as reader:
        await reader.press("y")
        assert reader.app.clipboard == "h = h.clamp(-8, 8)", "of the region that is looked at"
        reader.app.copy_to_clipboard("")
        pane = reader.pane("profile-why")
        reader.bench.set_focus(pane)
        broke = next(i for i, row in enumerate(pane.rows) if "graph break" in row.text)
        pane.go(broke)
        await reader.press("y")
        assert reader.app.clipboard == "h = h.clamp(-8, 8)"
        assert reader.bench.view.ref == refs.source(FILE, 27)


async def test_a_picture_of_it(open_trace: Open, profile_file: Path, tmp_path: Path) -> None:
    async with open_trace(profile_file) as reader:
        file = tmp_path / "profile.svg"
        await reader.press("x", "ctrl+u")
        await reader.type(str(file))
        await reader.press("enter")
        assert "attention" in file.read_text()


async def test_five_thousand_regions(open_trace: Open, tmp_path: Path) -> None:
    async with open_trace(written(tmp_path, many(5000))) as reader:
        pane = reader.pane("profile")

        def top_row() -> str:
            return reader.lines()[pane.region.y + 1]

        await reader.until(lambda: "line  region" in top_row())
        top = pane.region.y + 1
        assert "add 4999" in reader.lines()[top + 1]
        await reader.press("G", "k", "k")
        assert pane.row.key == "region:r0"
        assert "line  region" in reader.lines()[top], "the head stays"
        await reader.press("ctrl+u")
        assert pane.visible_row(pane.cursor)


async def test_a_driven_compile_is_profiled_on_request(drive: Drive) -> None:
    async with drive() as driver:
        await driver.press("c", "V")
        assert "V compiles it again, and takes a call apart" in driver.text()
        await driver.press("V")
        again = driver.sent[-1]
        assert isinstance(again, Rerun)
        assert again.settings.profile
        assert again.because == "profile"
        await driver.go("settings")
        await driver.press("w")
        assert driver.sent[-1] is again, "nothing is overruled: a profile is no setting"


@pytest.mark.parametrize("size", [(140, 42), (120, 40)])
async def test_the_source_opens_at_the_hottest_line(
    open_trace: Open, profile_file: Path, size: tuple[int, int]
) -> None:
    """Well inside the pane, not at its edge; and at the next region, when that is chosen."""
    async with open_trace(profile_file, size) as reader:
        source = reader.pane("source")
        view = reader.bench.view
        assert view.region
        place = source.row.ref
        assert view.derived.profile is not None
        lit = {ref for ref in view.lit if refs.kind(ref) == "src"}
        assert place in lit
        costs = view.derived.profile.costs
        assert costs[place].compiled == max(costs[ref].compiled for ref in lit if ref in costs)
        assert 1 < source.cursor - source.top < source.page - 1
        await reader.press("j", "j", "enter")
        source = reader.pane("source")
        assert source.row.ref in view.lit
        assert source.visible_row(source.cursor)


@pytest.mark.parametrize("height", range(36, 46, 3))
async def test_the_hottest_line_is_in_sight_though_another_of_its_region_is(
    open_trace: Open, tmp_path: Path, height: int
) -> None:
    """The pane is laid out taller than it is when the lines below it have appeared."""
    call = Call()
    made = [call.operation("aten.relu.default", line, 100.0) for line in (20, 29)]
    both = call.kernel("cpp_fused_0", "relu", [20, 29], 300.0)
    alone = call.kernel("cpp_fused_1", "relu", [29], 300.0)
    call.region("relu", [both, alone], made)
    async with open_trace(written(tmp_path, call.done()), (140, height)) as reader:
        source = reader.pane("source")
        assert refs.split_source(source.row.ref)[1] == 29
        assert source.visible_row(source.cursor)
