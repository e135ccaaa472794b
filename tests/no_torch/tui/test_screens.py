"""Every screen, at three sizes, as a text of its cells and their roles; some in other themes too.

Screens are shown at all sizes; of a size whose layout is that of 120 columns nothing is kept.

A story is a recording, or a compile that is driven, and the screens that a reader sees of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from tcw.compiler.trace.records import (
    AnyRecord,
    GraphBreak,
    KernelPrecision,
    ModeRow,
    Settings,
    Text,
    Trial,
)
from tcw.viewers.panes.arrangement import ARRANGEMENTS
from tcw.workbench.tui.compile_plan import Allowed, plan_lines
from tcw.workbench.tui.hints import GOES
from tcw.workbench.tui.notes import Writing
from tcw.workbench.tui.overlay import Consent
from tcw.workbench.tui.stage import WIDE, Stage
from tests.block_trace import block_trace
from tests.conftest import Golden
from tests.no_torch import profiles
from tests.no_torch.asking import stopped
from tests.no_torch.both_engines import both_engines_trace
from tests.no_torch.stepping import attention, softmax
from tests.no_torch.traces import failed
from tests.no_torch.tui.conftest import Drive, Open, Reader, encoded
from tests.no_torch.tui.driven import FUSE, forbidden
from tests.no_torch.tui.reader import select_buffer, select_line, softmax_block
from tests.no_torch.two_runs import two_runs
from tests.no_torch.two_traces import after, facts_before

PICTURES = {
    "overview-120x40", "source-120x40", "graph-120x40", "asked-120x40", "memory-120x40",
    "palette-120x40", "live-fuse-120x40", "profiled-120x40", "graph-120x40-light",
    "profiled-120x40-light", "graph-120x40-mono", "asked-120x40-mono",
}  # fmt: skip
"""Screens that are kept as pictures as well, as the reader sees them."""
SIZES = [(80, 24), (120, 40), (220, 60)]
Walk = Callable[[Reader], AsyncIterator[str]]


async def _recorded(reader: Reader) -> AsyncIterator[str]:
    """All arrangements of a recording, but those that have a story of their own."""
    yield "overview"
    await reader.press("j", "j", "enter")
    yield "break"
    await reader.press("escape")
    await select_line(reader, 19)
    yield "source"
    await reader.press("question_mark")
    yield "help"
    await reader.press("escape", "slash")
    await reader.type("soft")
    yield "search"
    await reader.press("escape")
    await softmax_block(reader)
    yield "graph"
    await reader.press("enter")
    yield "graph-open"
    await reader.press("enter")
    shown = {"overview", "break", "source", "graph", *ELSEWHERE}
    for name in ARRANGEMENTS:
        if name not in shown:
            await reader.go(name)
            yield name
    await select_buffer(reader, "buf16")
    yield "memory-reuse"
    await reader.go("overview")
    await reader.press("colon")
    yield "palette"
    await reader.type("go to")
    yield "palette-typed"
    await reader.press("escape")


async def _failed(reader: Reader) -> AsyncIterator[str]:
    yield "failed"


async def _cut_off(reader: Reader) -> AsyncIterator[str]:
    yield "incomplete"
    for name in ("steps", "kernels", "memory"):
        await reader.go(name)
        yield f"without-{name}"


async def _steps(reader: Reader) -> AsyncIterator[str]:
    reader.bench.view.step = softmax(reader.bench.recording.records)
    await reader.go("steps")
    yield "steps"


async def _runs(reader: Reader) -> AsyncIterator[str]:
    await reader.go("what-if")
    yield "what-if"


async def _beside(reader: Reader) -> AsyncIterator[str]:
    yield "differences"
    await reader.press("n")
    yield "differences-next"


async def _engines(reader: Reader) -> AsyncIterator[str]:
    await reader.go("engines")
    yield "engines"


async def _profiled(reader: Reader) -> AsyncIterator[str]:
    """What `tcw profile` measured: the layout that it opens with, and what lies behind it."""
    yield "profiled"
    await reader.press("enter")
    yield "profiled-region"
    await reader.press("escape", "o", "o", "G", "k", "k", "enter", "C", "C")
    yield "profiled-by-time"
    await reader.go("account")
    yield "profiled-account"
    await reader.go("overview")
    yield "profiled-overview"


async def _profiled_training(reader: Reader) -> AsyncIterator[str]:
    yield "profiled-training"
    await reader.press("right_square_bracket", "right_square_bracket")
    yield "profiled-backward"


async def _profiled_gpu(reader: Reader) -> AsyncIterator[str]:
    yield "profiled-gpu"


async def _asked(reader: Reader) -> AsyncIterator[str]:
    await reader.go("fusion")
    yield "asked"


async def _predicted(reader: Reader) -> AsyncIterator[str]:
    reader.bench.predicting.questions = 0
    await reader.bench.predicting.predict()
    for _ in range(12):
        await reader.pilot.press("n")
        await reader.pilot.press("space")
    await reader.settle()
    yield "predict"
    await reader.press("n")
    yield "predict-told"
    await reader.press("space", "escape")
    yield "score"


async def _presented(reader: Reader) -> AsyncIterator[str]:
    await reader.press("p")
    for name in ("overview", "source", "fusion", "memory"):
        await reader.go(name)
        yield f"presented-{name}"


async def _noted(reader: Reader) -> AsyncIterator[str]:
    await select_line(reader, 19)
    await reader.press("m")
    screen = reader.app.screen
    assert isinstance(screen, Writing)
    screen.area.text = "The maximum first: exp of large scores overflows."
    await reader.settle()
    yield "writing"
    await reader.press("ctrl+s")
    await reader.settle()
    await reader.go("notes")
    yield "noted"


async def _strange(reader: Reader) -> AsyncIterator[str]:
    """A trace that asks for all that it can, and is asked about; one that is refused."""
    wanted = Settings(
        file="/home/me/model/block.py",
        model="Block",
        inputs=("f32[8,64], scale=0.5", "f32[65536,65536]"),
        mode="max-autotune",
        grad="train",
        edits=("drop:15", "no-mask:attention.py:44"),
        torch_settings=(
            "torch._inductor.config.cpp.cxx = ('/home/me/model/tools/compiler-that-came-along', "
            "'--with', 'more-than-fits-on-one-line')",
        ),
        arguments=("--epochs", "1"),
        overrides={FUSE: "apart"},
    )
    plan = tuple(plan_lines(wanted, wanted, Allowed(), ""))
    reader.app.push_screen(Consent(reader.bench.look, "mode max-autotune", plan))
    await reader.settle()
    yield "consent"
    await reader.press("j", "pagedown", "pagedown")
    yield "consent-end"
    await reader.press("escape")
    reader.app.push_screen(
        Consent(
            reader.bench.look,
            "/home/me/model/block.py is not the file that was recorded: its text differs from "
            "the recorded one. To compile it all the same: tcw open TRACE --file "
            "/home/me/model/block.py",
        )
    )
    await reader.settle()
    yield "consent-refused"


async def _driven(reader: Reader) -> AsyncIterator[str]:
    yield "live-start"
    await reader.choose("break at graph break")
    await reader.go("breakpoints")
    yield "live-breakpoints"
    await reader.press("escape", "s")
    yield "live-instruction"
    await reader.press("d")
    yield "live-fuse"
    await reader.press("w")
    yield "live-what-if"
    await reader.press("K", "O")
    yield "live-overrides"
    await reader.press("comma")
    yield "live-settings"


async def _refused(reader: Reader) -> AsyncIterator[str]:
    await reader.press("d", "f", "j")
    yield "live-refused"


def _decision(kind: str) -> Walk:
    async def walk(reader: Reader) -> AsyncIterator[str]:
        await reader.press("d")
        yield f"live-{kind}"
        if kind == "vector":
            await reader.press("v")
            yield "live-choices"

    return walk


def _cut() -> list[AnyRecord]:
    records = block_trace()
    return records[: next(i for i, r in enumerate(records) if isinstance(r, GraphBreak))]


def _every_measurement() -> list[AnyRecord]:
    """A profile with modes, trials and precision."""
    kinds = (ModeRow, Trial, KernelPrecision, Text)
    more = [*profiles.modes(), *profiles.trials(), *profiles.wrong_kernel()]
    found = profiles.masked_attention()
    return [*found[:-1], *(one for one in more if isinstance(one, kinds)), found[-1]]


RECORDED: dict[str, tuple[Callable[[], list[AnyRecord]], Walk]] = {
    "recorded": (block_trace, _recorded),
    "failed": (failed, _failed),
    "cut-off": (_cut, _cut_off),
    "steps": (attention, _steps),
    "runs": (two_runs, _runs),
    "beside": (after, _beside),
    "engines": (both_engines_trace, _engines),
    "asked": (stopped, _asked),
    "predicted": (block_trace, _predicted),
    "presented": (block_trace, _presented),
    "noted": (block_trace, _noted),
    "strange": (block_trace, _strange),
    "profiled": (_every_measurement, _profiled),
    "profiled-training": (profiles.training, _profiled_training),
    "profiled-gpu": (profiles.bert_on_a_gpu, _profiled_gpu),
}
ELSEWHERE = {
    "steps",
    "differences",
    "what-if",
    "engines",
    "predict",
    "score",
    "start",
    "region",
    "account",
}
"""Arrangements that other stories show."""

WIDEST = ("recorded", "profiled")
"""Shown in the widest terminal by plain pytest, too."""

NO_SIDES = {"first": (), "second": ()}
DRIVEN: dict[str, tuple[dict[str, object], Walk]] = {
    "driven": ({}, _driven),
    "refused": (
        {"asked": {"default": "apart", "rule": "domain", "forbidden": (forbidden(),)}},
        _refused,
    ),
    "save": (
        {
            "asked": {
                **NO_SIDES, "id": "inductor/0/0/joint/save/relu", "kind": "save",
                "default": "save", "choices": ("save", "recompute"), "rule": "min-cut",
                "reason": "reading it costs less than computing it again",
                "numbers": {"saved_bytes": 524288.0, "recompute_ops": 1.0},
                "means": "it is computed a second time in the backward",
            }
        },
        _decision("save"),
    ),
    "lowering": (
        {
            "asked": {
                **NO_SIDES, "id": "tcw/0/0/forward/lowering/gelu", "kind": "lowering",
                "default": "loops", "choices": ("loops", "aten"), "rule": "decomposes",
                "reason": "elementwise: it can share a loop nest", "numbers": {},
                "means": "one call of ATen's kernel, which nothing is fused with",
            }
        },
        _decision("lowering"),
    ),
    "vector": (
        {
            "asked": {
                **NO_SIDES, "id": "tcw/0/0/forward/vector/nest_softmax", "kind": "vector",
                "default": "8", "choices": ("4", "8", "16"), "rule": "isa",
                "reason": "AVX2 holds 8 float32", "numbers": {"lanes": 8.0}, "means": "",
            }
        },
        _decision("vector"),
    ),
}  # fmt: skip


class Album:
    """Compares screens with their goldens; all of a story are compared before it fails."""

    def __init__(self, golden: Golden, ending: str) -> None:
        self.golden = golden
        self.ending = ending
        self.differences: list[str] = []

    async def fill(self, reader: Reader, walk: Walk) -> None:
        width, height = reader.app.size
        async for name in walk(reader):
            shown = f"tui/{name}-{self.ending}"
            lines = reader.lines()
            assert reader.cells() == [width] * height, name
            assert "".join(lines).isprintable(), name
            if width >= WIDE and not _own_layout_when_wide(reader):
                continue
            described = reader.described()
            assert described.startswith(reader.text()), name
            self._compare(f"{shown}.txt", described)
            if f"{name}-{self.ending}" in PICTURES:
                self._compare(f"{shown}.svg", reader.svg())
        assert not self.differences, "\n".join(self.differences)

    def _compare(self, name: str, text: str) -> None:
        try:
            self.golden(name, text)
        except pytest.fail.Exception as failed:
            self.differences.append(str(failed))


def _own_layout_when_wide(reader: Reader) -> bool:
    """Whether a wide terminal shows other panes than one of 120 columns, and no dialog on them."""
    _, arrangement, *_ = reader.bench._shown
    return reader.app.screen is reader.bench and bool(arrangement.wide)


def _open(
    name: str, size: tuple[int, int], open_trace: Open, folder: Path, theme: str | None = None
) -> AbstractAsyncContextManager[Reader]:
    path = folder / f"{name}.tcw"
    path.write_bytes(encoded(RECORDED[name][0]()))
    against = facts_before() if name == "beside" else None
    return open_trace(path, size, theme, against=against)


@pytest.fixture(autouse=True)
def in_the_folder_of_the_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Command lines name the trace from there: no path of this machine is in a golden."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param(
            name,
            size,
            id=f"{name}-{size[0]}x{size[1]}",
            marks=pytest.mark.long if size == SIZES[2] and name not in WIDEST else (),
        )
        for name in RECORDED
        for size in SIZES
    ],
)
async def test_recorded(
    name: str, size: tuple[int, int], open_trace: Open, tmp_path: Path, golden: Golden
) -> None:
    async with _open(name, size, open_trace, tmp_path) as reader:
        await Album(golden, f"{size[0]}x{size[1]}").fill(reader, RECORDED[name][1])


async def test_panes_that_are_laid_out_early_open_alike(
    open_trace: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine may lay the panes out before one of them has the focus."""
    async with _open("profiled", SIZES[2], open_trace, tmp_path) as reader:
        expected = reader.described()
    shown = Stage.show
    early: list[str] = []

    async def laid_out_first(stage: Stage, *arguments: Any) -> None:
        await shown(stage, *arguments)
        stage.screen._refresh_layout(stage.screen.size)
        for pane in stage.panes:
            pane.on_resize()
        early[:] = [pane.pane for pane in stage.panes if pane.size.width]

    monkeypatch.setattr(Stage, "show", laid_out_first)
    async with _open("profiled", SIZES[2], open_trace, tmp_path) as reader:
        assert early == [pane.pane for pane in reader.bench.stage.panes]
        assert reader.described() == expected


@pytest.mark.parametrize(
    "size",
    [*SIZES[:2], pytest.param(SIZES[2], marks=pytest.mark.long)],
    ids=lambda size: f"{size[0]}x{size[1]}",
)
@pytest.mark.parametrize("name", DRIVEN)
async def test_driven(name: str, size: tuple[int, int], drive: Drive, golden: Golden) -> None:
    state, walk = DRIVEN[name]
    async with drive(size, **state) as driver:
        await Album(golden, f"{size[0]}x{size[1]}").fill(driver, walk)


async def _themed(reader: Reader) -> AsyncIterator[str]:
    await select_line(reader, 19)
    yield "source"
    await softmax_block(reader)
    yield "graph"
    await reader.go("recompiles")
    yield "recompiles"


@pytest.mark.parametrize("theme", ["light", "mono"])
async def test_theme(theme: str, open_trace: Open, tmp_path: Path, golden: Golden) -> None:
    ending = f"120x40-{theme}"
    async with _open("recorded", (120, 40), open_trace, tmp_path, theme) as reader:
        await Album(golden, ending).fill(reader, _themed)
    async with _open("runs", (120, 40), open_trace, tmp_path, theme) as reader:
        await Album(golden, ending).fill(reader, _runs)
    async with _open("asked", (120, 40), open_trace, tmp_path, theme) as reader:
        await Album(golden, ending).fill(reader, _asked)
    async with _open("profiled", (120, 40), open_trace, tmp_path, theme) as reader:
        await Album(golden, ending).fill(reader, _profiled)


@pytest.mark.parametrize(
    "turns",
    [
        ((40, 149), (77, 300), (99, 180), (100, 150)),
        pytest.param(((40, 99, 149, 180), (77, 100, 150, 300)), marks=pytest.mark.long),
    ],
    ids=["some", "all"],
)
async def test_no_line_is_too_long_or_too_short(
    turns: tuple[tuple[int, ...], ...], open_trace: Open, block_file: Path
) -> None:
    """Nor while the terminal is resized, over each width at which panes come and go."""
    async with open_trace(block_file, (40, 30)) as reader:
        for index, (name, _) in enumerate(GOES):
            await reader.go(name)
            for width in turns[index % len(turns)]:
                await reader.pilot.resize_terminal(width, 30)
                wanted = [width] * 30
                await reader.until(lambda wanted=wanted: reader.cells() == wanted)  # type: ignore[misc]
