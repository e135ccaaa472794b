"""A recorded trace is read on a machine that has no torch; only a compile needs it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.block_trace import block_trace
from tests.no_torch.tui.conftest import encoded

ROOT = Path(__file__).parents[3]
ABSENT = """
    import sys

    class Absent:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name.partition(".")[0] in ("torch", "triton"):
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    sys.meta_path.insert(0, Absent)
"""
"""As if neither was installed: in a `sitecustomize`, so that the worker has none either."""

READER = """
    import asyncio, sys
    from pathlib import Path
    from tcw.workbench.tui.app import Workbench
    from tcw.workbench.tui.feed import LiveFeed

    NAMES = {
        "{": "left_curly_bracket", "<": "less_than_sign", ">": "greater_than_sign"
    }

    def text(app):
        return "\\n".join(line.text for line in app.screen._compositor.render_strips())

    async def shows(app, pilot, words):
        for _ in range(600):
            if words in text(app):
                return
            await pilot.pause(0.05)
        raise AssertionError(f"{words!r} never came:\\n{text(app)}")
"""


Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a program where torch is not installed; returns what it printed."""
    (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(ABSENT))

    def ran(program: str, *words: str) -> str:
        path = os.pathsep.join([str(tmp_path), str(ROOT)])
        environment = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        whole = textwrap.dedent(READER) + textwrap.dedent(program)
        done = subprocess.run(
            [sys.executable, "-P", "-c", whole, *words],
            capture_output=True,
            text=True,
            timeout=120,
            env=environment,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return ran


def test_torch_is_absent(run: Run) -> None:
    said = run("""
        try:
            import torch
        except ModuleNotFoundError as error:
            print(error)
    """)
    assert said == "No module named 'torch'\n"


def test_a_recording_is_replayed(run: Run, tmp_path: Path) -> None:
    trace = tmp_path / "run.tcw"
    trace.write_bytes(encoded(block_trace()))
    said = run(
        """
        async def main():
            app = Workbench(Path(sys.argv[1]), "dark")
            async with app.run_test(size=(120, 40)) as pilot:
                await shows(app, pilot, "findings")
                for key in ("{", "{", ">", "s", "<", "}", "c"):
                    await pilot.press(NAMES.get(key, key))
                    await pilot.pause(0.2)
                    print(app.screen.scrubbing.place())

        asyncio.run(main())
        """,
        str(trace),
    )
    _, start, later, step, earlier, stage, end = map(int, said.split())
    assert start < later < step
    assert earlier < step
    assert earlier < stage <= end


def test_its_fusions_are_guessed(run: Run, tmp_path: Path) -> None:
    trace = tmp_path / "run.tcw"
    trace.write_bytes(encoded(block_trace()))
    said = run(
        """
        async def main():
            app = Workbench(Path(sys.argv[1]), "dark", predict=True)
            async with app.run_test(size=(120, 40)) as pilot:
                await shows(app, pilot, "Will the compiler fuse A and B?")
                await pilot.press("n")
                await shows(app, pilot, "Right: they are kept apart")
                await pilot.press("escape")
                await shows(app, pilot, "1 of 1 right")
                print("torch" in sys.modules)

        asyncio.run(main())
        """,
        str(trace),
    )
    assert said == "False\n"


def test_a_compile_says_that_it_needs_torch(run: Run, tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    model.write_text("import torch\n")
    run(
        """
        from tcw.compiler.trace.records import Settings
        from tcw.workbench.worker.client import Driver

        async def main():
            feed = LiveFeed(Driver, Settings(file=sys.argv[1]), None)
            app = Workbench(feed, "dark")
            async with app.run_test(size=(120, 40)) as pilot:
                await shows(app, pilot, "torch is not installed in")
                assert "No module named 'torch'" in text(app)

        asyncio.run(main())
        """,
        str(model),
    )
