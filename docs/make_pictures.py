"""The pictures and the reports of the README, from real recordings.

    python docs/make_pictures.py [TRACE]        what torch.compile did to a model, and the pictures
    python docs/make_pictures.py --step         the pictures of a driven compile
    OMP_NUM_THREADS=1 python docs/make_pictures.py --engines    the two engines compared

Records `sample_models/troubled_block.py --train` (or reads TRACE), writes what `tcw explain` says
of it into README.md, and screens of `tcw open` into `docs/pictures/`. `--engines` records
`sample_models/softmax_layernorm.py --engine both` instead, and writes its report alone. `--step`
drives a compile of it, with our own engine, and draws what is seen on the way.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
sys.path.insert(0, str(ROOT))

from tcw.compiler.trace.records import Settings  # noqa: E402
from tcw.viewers.recording import Recording  # noqa: E402
from tcw.viewers.text.explain import explain  # noqa: E402
from tcw.viewers.text.lines import to_text  # noqa: E402
from tcw.workbench.tui.app import Workbench  # noqa: E402  (the checkout's packages, not installed ones)
from tcw.workbench.tui.feed import LiveFeed  # noqa: E402
from tcw.workbench.tui.picture import picture  # noqa: E402
from tcw.workbench.worker.client import Driver  # noqa: E402

SCREENS: dict[str, tuple[str, ...]] = {
    "overview": (),
    "break": ("j", "j", "enter"),
    "linked": ("1", "go to source"),
    "fusion": ("go to fusion", "j", "j", "j"),
    "recompiles": ("enter",),
}
"""Keys from the opening screen; words are a command of the palette."""

STEPS: tuple[tuple[str, str, str], ...] = (
    ("", "", "before the first step"),
    ("step", "d", "Fuse A and B?"),
    ("what-if", "w", "the veto holds"),
)
"""Name of the picture, the key before it, and what the screen then says."""

LINE = "torch.softmax"
"""The line of the source that `linked` selects."""


MARK = "<!-- explain: written by docs/make_pictures.py -->\n"
ENGINES = "sample_models/softmax_layernorm.py --engine both"
ENGINES_MARK = f"<!-- tcw explain {ENGINES} --show engines: written by docs/make_pictures.py -->\n"


def record(trace: Path, what: str = "sample_models/troubled_block.py --train") -> None:
    command = [sys.executable, "-m", "tcw", "explain", *what.split(), "--trace", str(trace)]
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)


def write_report(trace: Path, mark: str = MARK, show: tuple[str, ...] = ()) -> None:
    """What `tcw explain` said, between the fences that follow the mark in the README."""
    report = to_text(explain(Recording.open(trace), show=show), width=100)
    readme = ROOT / "README.md"
    before, mark, after = readme.read_text().partition(mark)
    _, _, rest = after.removeprefix("```\n").partition("```\n")
    readme.write_text(f"{before}{mark}```\n{report.strip()}\n```\n{rest}")


async def draw(trace: Path, name: str, keys: tuple[str, ...]) -> None:
    app = Workbench(trace, "dark")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(1.0)
        for key in keys:
            if " " in key:
                await pilot.press(
                    "colon", *("space" if letter == " " else letter for letter in key)
                )
                await pilot.press("enter")
            else:
                await pilot.press(key)
            await pilot.pause()
        if name == "linked":
            source = (ROOT / "sample_models" / "troubled_block.py").read_text().splitlines()
            wanted = next(at for at, line in enumerate(source, 1) if LINE in line)
            await pilot.press("g", "g", *("j" for _ in range(wanted - 1)))
            await pilot.pause()
        (PICTURES / f"{name}.svg").write_text(picture(app))


async def drive() -> None:
    """A decision of our own engine, and what overruling it cost."""
    file = str(ROOT / "sample_models" / "softmax_layernorm.py")
    settings = Settings(file=file, engine="tcw", grad="no-grad")
    app = Workbench(LiveFeed(Driver, settings, None), "dark")
    async with app.run_test(size=(120, 40)) as pilot:
        for name, key, until in STEPS:
            if key:
                await pilot.press(key)
            while until not in said(app):
                await pilot.pause(0.1)
            await pilot.pause(1.0)
            if name:
                (PICTURES / f"{name}.svg").write_text(picture(app))
        await pilot.press("ctrl+c")


def said(app: Workbench) -> str:
    return "\n".join(line.text for line in app.screen._compositor.render_strips())


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    if sys.argv[1:] == ["--step"]:
        asyncio.run(drive())
        return
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[1:] == ["--engines"]:
            trace = Path(folder) / "both.tcw"
            record(trace, ENGINES)
            write_report(trace, ENGINES_MARK, ("engines",))
            return
        if sys.argv[1:]:
            trace = Path(sys.argv[1])
        else:
            trace = Path(folder) / "run.tcw"
            record(trace)
        write_report(trace)
        for name, keys in SCREENS.items():
            asyncio.run(draw(trace, name, keys))


if __name__ == "__main__":
    main()
