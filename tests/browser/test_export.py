"""The exported page in a browser, from a file: lit by click and key, without a request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tcw.compiler.trace.records import AnyRecord
from tcw.workbench.cli import page as page_of_trace
from tcw.workbench.cli.main import main
from tests.block_trace import block_trace
from tests.no_torch.hostile import hostile
from tests.no_torch.html.test_document import page as exported
from tests.no_torch.profile_building import Call
from tests.no_torch.tui.conftest import encoded
from tests.no_torch.two_traces import after, before

pytest.importorskip("aiohttp")

from tests.browser.devtools import Page, chromium

SAMPLE_MODELS = Path(__file__).parents[2] / "sample_models"
SAMPLES = sorted(path.stem for path in SAMPLE_MODELS.glob("*.py") if path.stem != "__init__")
ACTIVE = "document.querySelector('#middle .pane.active').dataset.pane"
LIT = """[...document.querySelectorAll('[data-pane=%s] .row')]
    .filter(row => /t-/.test(row.className)).length"""
TAB = "[...document.querySelectorAll('#tabs button')].find(b => b.textContent === '%s').click()"


@pytest.fixture(scope="module")
def whole_page() -> str:
    """A thousand screens of the block, which take seconds to make: those that the tests reach."""
    return exported(block_trace(), most_screens=1000)[1]


@pytest.fixture(scope="module")
def first_screens() -> str:
    """The first screens of the block."""
    return exported(block_trace(), most_screens=200)[1]


async def opened(page: Page, file: Path) -> None:
    await page.go(file.as_uri())
    for _ in range(200):
        if await page.evaluate("document.querySelectorAll('#middle .pane').length"):
            return
    pytest.fail("no pane was drawn")


async def quiet(page: Page) -> None:
    """The page asked for nothing, was refused nothing, and no error is in its console."""
    await page.settle()
    assert len(page.requests) == 1, page.requests
    assert not page.errors
    assert await page.evaluate("document.scripts.length") == 2
    assert await page.evaluate("window.pwned === undefined") is True


async def test_a_long_overview_leaves_the_findings_their_room(
    program: str, tmp_path: Path, first_screens: str
) -> None:
    file = tmp_path / "run.html"
    file.write_text(first_screens)
    async with chromium(program, tmp_path / "profile") as page:
        await opened(page, file)
        await page.evaluate("document.querySelector('.column').style.maxHeight = '200px'")
        height = "document.querySelector('[data-pane=%s]').getBoundingClientRect().height"
        assert await page.evaluate(height % "overview") <= 100
        assert await page.evaluate(height % "findings") >= 99


async def test_a_click_and_a_key_light_the_counterparts(
    program: str, tmp_path: Path, whole_page: str
) -> None:
    file = tmp_path / "run.html"
    file.write_text(whole_page)
    async with chromium(program, tmp_path / "profile") as page:
        await opened(page, file)
        await page.evaluate(TAB % "source")
        rows = "[...document.querySelectorAll('[data-pane=source] .row')]"
        await page.evaluate(f"{rows}.find(r => r.textContent.includes('softmax')).click()")
        for pane in ("graph", "kernel"):
            assert await page.evaluate(LIT % pane), pane
        assert (
            await page.evaluate(f"{rows}.filter(r => /t-selected/.test(r.className)).length") == 1
        )
        before = await page.evaluate(f"{rows}.findIndex(r => /cursor/.test(r.className))")
        await page.press("j")
        after = await page.evaluate(f"{rows}.findIndex(r => /cursor/.test(r.className))")
        assert after > before
        await page.press("]")
        assert await page.evaluate(
            "document.querySelector('#tabs [aria-selected=true]').textContent"
        ) not in ("source", "")
        await page.press("Escape")
        ground = "getComputedStyle(document.body).backgroundColor"
        dark = await page.evaluate(ground)
        await page.press("t")
        assert await page.evaluate(ground) != dark
        await quiet(page)


async def test_the_page_of_a_profile_begins_at_its_first_row(program: str, tmp_path: Path) -> None:
    """The loss that the other panes show may be far down; a key goes there."""
    file = tmp_path / "run.html"
    file.write_text(exported(long_profile(), most_screens=3)[1])
    scroll = "document.querySelector('[data-pane=profile] .rows').scrollTop"
    async with chromium(program, tmp_path / "profile") as page:
        await opened(page, file)
        assert await page.evaluate(scroll) == 0
        await page.press("j")
        assert await page.evaluate(scroll) > 0
        await quiet(page)


def long_profile() -> list[AnyRecord]:
    """Sixty regions that were won, and below them one that was lost."""
    call = Call()
    for number in range(60):
        eager = call.operation("aten.mul.Tensor", 25, 90.0 - number, module=f"m.{number}")
        step = call.kernel(f"cpp_fused_mul_{number}", f"mul {number}", [25], 1.0, ("mul",))
        call.region(f"mul {number}", [step], [eager], 1.0, (f"m.{number}",))
    eager = call.operation("aten.gelu.default", 29, 10.0)
    step = call.kernel("cpp_fused_gelu", "gelu", [29], 20.0, ("erf",))
    call.region("gelu", [step], [eager], 1.0)
    return call.done()


async def test_both_sources_light_up_together(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_of_trace, "_SCREENS", 600)
    base, run = tmp_path / "before.tcw", tmp_path / "after.tcw"
    base.write_bytes(encoded(before()))
    run.write_bytes(encoded(after()))
    file = tmp_path / "diff.html"
    assert main(["diff", str(base), str(run), "-o", str(file)]) == 0
    async with chromium(program, tmp_path / "profile") as page:
        await opened(page, file)
        assert await page.evaluate(ACTIVE) == "effects"
        cursor = "document.querySelector('[data-pane=effects] .cursor').textContent"
        first = await page.evaluate(cursor)
        await page.press("n")
        assert await page.evaluate(cursor) != first
        await page.evaluate(
            """[...document.querySelectorAll('[data-pane=source-base] .row')]
            .find(row => row.textContent.includes('softmax')).click()"""
        )
        lit = """[...document.querySelectorAll('[data-pane=source-run] .row')]
            .filter(row => /t-/.test(row.className)).map(row => row.textContent).join()"""
        assert "softmax" in await page.evaluate(lit)
        await quiet(page)


async def test_what_goes_wrong_in_a_page_is_noticed(
    program: str, tmp_path: Path, first_screens: str
) -> None:
    file = tmp_path / "run.html"
    file.write_text(first_screens.replace("</body>", "<script>1</script><img src=a.png></body>"))
    async with chromium(program, tmp_path / "profile") as page:
        await opened(page, file)
        await page.settle()
        assert any("script-src" in error for error in page.errors), page.errors
        assert any("img-src" in error for error in page.errors)
        await page.evaluate("setTimeout(() => { throw Error('planted') }); 1")
        await page.settle()
        assert any("planted" in error for error in page.errors)


async def test_the_graph_is_a_picture(program: str, tmp_path: Path, whole_page: str) -> None:
    file = tmp_path / "run.html"
    file.write_text(whole_page)
    blocks = "[...document.querySelectorAll('[data-pane=picture] .block')]"
    node = "document.querySelector('[data-pane=node]').textContent"
    way = "document.querySelector('[data-pane=picture] .way').getAttribute('d')"
    async with chromium(program, tmp_path / "profile") as page:
        await opened(page, file)
        await page.evaluate(TAB % "graph")
        groups = await page.evaluate(f"{blocks}.length")
        assert groups > 5
        assert await page.evaluate(
            f"""{blocks}.every((one, at) => {blocks}.slice(at + 1).every((other) => {{
                const [a, b] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
                return a.right <= b.left || b.right <= a.left
                    || a.bottom <= b.top || b.bottom <= a.top;
            }}))"""
        ), "blocks cover each other"
        await page.evaluate(f"{blocks}.find(b => b.textContent.includes('softmax')).click()")
        assert "softmax" in await page.evaluate(node)
        assert await page.evaluate(way)
        await page.press("Enter")
        assert await page.evaluate(f"{blocks}.length") > groups
        inside = await page.evaluate(f"{blocks}.find(b => b.matches('.cursor')).textContent")
        assert inside.strip() in await page.evaluate(node)
        await page.press("Enter")
        assert await page.evaluate(ACTIVE) == "source"
        assert await page.evaluate(LIT % "source")
        await page.press("Escape")
        await page.press("-")
        assert await page.evaluate(f"{blocks}.length") == groups
        await page.evaluate("dispatchEvent(new Event('beforeprint'))")
        wide = """[...document.querySelectorAll('#printed .drawing')].every(
            one => one.style.zoom * parseFloat(one.style.width) <= 120.1)"""
        assert await page.evaluate(wide)
        assert await page.evaluate("document.querySelectorAll('#printed .block').length") >= groups
        await quiet(page)


@pytest.mark.long
@pytest.mark.parametrize("name", SAMPLES)
async def test_the_page_of_a_sample(program: str, tmp_path: Path, name: str) -> None:
    """Under 3 MB, and every arrangement and a hundred of its screens without an error."""
    pytest.importorskip("torch")
    from tests.cpu.command_line import tcw_process

    trace, file = tmp_path / "run.tcw", tmp_path / "run.html"
    sample = SAMPLE_MODELS / f"{name}.py"
    tcw_process(tmp_path, "explain", str(sample), "--trace", str(trace))
    done = tcw_process(tmp_path, "export", str(trace), "-o", str(file))
    assert done.code == 0, done.err
    assert file.stat().st_size < 3_000_000
    async with chromium(program, tmp_path / "profile") as page:
        await opened(page, file)
        tabs = await page.evaluate("document.querySelectorAll('#tabs button').length")
        for number in range(tabs):
            await page.evaluate(f"document.querySelectorAll('#tabs button')[{number}].click()")
            for key in "jjj\tjjj\tjjj":
                await page.press("Tab" if key == "\t" else key)
            await page.press("Enter")
            await page.press("Escape")
        await page.evaluate("dispatchEvent(new Event('beforeprint'))")
        await quiet(page)


async def test_hostile_text_runs_nothing(program: str, tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    file.write_text(exported(hostile(block_trace(), "added"), 300_000, 100)[1])
    async with chromium(program, tmp_path / "profile") as page:
        await opened(page, file)
        for name in ("overview", "source", "fusion"):
            await page.evaluate(TAB % name)
            await quiet(page)


async def test_the_slider_goes_through_time(
    program: str, tmp_path: Path, first_screens: str
) -> None:
    file = tmp_path / "run.html"
    file.write_text(first_screens)
    header = "document.getElementById('header').textContent"
    said = "document.getElementById('replay').textContent"
    slide = """{ const slider = document.querySelector('#replay input');
        slider.value = '%d'; slider.dispatchEvent(new Event('input')); }"""
    async with chromium(program, tmp_path / "profile") as page:
        await opened(page, file)
        assert "2 breaks" in await page.evaluate(header)
        await page.evaluate(slide % 0)
        assert "breaks" not in await page.evaluate(header)
        assert "1 of " in await page.evaluate(said)
        await page.press("}")
        assert "2 of " in await page.evaluate(said)
        await page.press("{")
        await page.press("Escape")
        assert "2 breaks" in await page.evaluate(header)
        await quiet(page)


CENTRE = """(() => {
  const all = [...document.querySelectorAll("#bar span, #foot .hint")];
  const box = all.find((one) => one.textContent.trim() === %s).getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
})()"""


async def click(page: Page, words: str) -> None:
    x, y = await page.evaluate(CENTRE % json.dumps(words))
    for kind in ("mousePressed", "mouseReleased"):
        await page.call(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
        )


async def test_a_class_predicts_with_the_mouse(
    program: str, tmp_path: Path, first_screens: str
) -> None:
    file = tmp_path / "run.html"
    file.write_text(first_screens)
    bar = "document.getElementById('bar').textContent"
    said = "document.getElementById('replay').textContent"
    async with chromium(program, tmp_path / "profile") as page:
        await opened(page, file)
        theme = "document.documentElement.dataset.theme"
        before = await page.evaluate(theme)
        await click(page, "t light or dark")
        assert await page.evaluate(theme) != before
        await click(page, "p predict")
        await click(page, "? hint")
        assert "hint: " in await page.evaluate(bar)
        await click(page, "y fused")
        told = await page.evaluate(bar)
        assert ("Right: " in told) != ("No: " in told)
        await click(page, "space next")
        assert "question 2 of" in await page.evaluate(said)
        await click(page, "- skip")
        await click(page, "esc the score")
        assert "of 1 right" in await page.evaluate(said)
        await quiet(page)


async def test_one_question_is_one_fusion(program: str, tmp_path: Path, first_screens: str) -> None:
    start = first_screens.index('"puzzles":') + len('"puzzles":')
    puzzles, end = json.JSONDecoder().raw_decode(first_screens, start)
    one = f"{first_screens[:start]}{json.dumps(puzzles[:1])}{first_screens[end:]}"
    file = tmp_path / "run.html"
    file.write_text(one)
    async with chromium(program, tmp_path / "profile") as page:
        await opened(page, file)
        said = await page.evaluate("document.getElementById('replay').textContent")
        assert said.endswith("predict 1 fusion")


async def test_a_class_predicts(program: str, tmp_path: Path, first_screens: str) -> None:
    file = tmp_path / "run.html"
    file.write_text(first_screens)
    bar = "document.getElementById('bar').textContent"
    said = "document.getElementById('replay').textContent"
    async with chromium(program, tmp_path / "profile") as page:
        await opened(page, file)
        await page.press("p")
        assert "Will the compiler fuse A and B?" in await page.evaluate(bar)
        await page.press("?")
        assert "hint: " in await page.evaluate(bar)
        await page.press("y")
        told = await page.evaluate(bar)
        assert ("Right: " in told) != ("No: " in told)
        assert f"{int('Right' in told)} of 1 right" in await page.evaluate(said)
        await page.press(" ")
        await page.press("-")
        assert "question 2 of" in await page.evaluate(said)
        await page.press("Escape")
        assert "of 1 right" in await page.evaluate(said)
        await quiet(page)


async def test_folds_open_each_for_itself(program: str, tmp_path: Path, whole_page: str) -> None:
    file = tmp_path / "run.html"
    file.write_text(whole_page)
    shown = """[...document.querySelectorAll('[data-pane=guards] .row')]
        .filter(row => row.getClientRects().length)"""
    count = f"{shown}.length"
    fold = shown + ".find(row => row.textContent.includes('%s')).click()"
    async with chromium(program, tmp_path / "profile") as page:
        await opened(page, file)
        await page.evaluate(TAB % "guards")
        none = await page.evaluate(count)
        await page.evaluate(fold % " TYPE_MATCH")
        one = await page.evaluate(count)
        assert one > none
        await page.evaluate(fold % " ID_MATCH")
        both = await page.evaluate(count)
        assert both > one, "the first one closed"
        assert await page.evaluate(
            "document.querySelector('[data-pane=guards] .cursor').textContent.includes(' ID_MATCH')"
        )
        await page.press("Enter")
        assert await page.evaluate(count) == one
        await page.press("j")
        await page.press("k")
        assert await page.evaluate(count) == one
        cursor = "document.querySelector('[data-pane=guards] .cursor').getClientRects().length"
        assert await page.evaluate(cursor), "the cursor stands on a row that is not seen"
        await page.press("]")
        await page.press("[")
        assert await page.evaluate(count) == one, "what is open stays open"
        await quiet(page)
