"""Runs each hook's tests on one torch and one Python, and notes which hooks passed.

.venv-2.14/bin/python -m tests.cpu.versions [FILE...]

The interpreter's environment has the torch to try and tcw's `test` extra; each FILE is a hook's
test file under `tests/cpu`, by default all of them. If a file's tests are all `long`, these run. A
hook whose test file passes gets that pair, `2.14.1/3.13`, in `compiler/control/tried_on.py`, in
the place of another patch release of torch (2.14.1 for 2.14.0), and one whose tests fail loses
both. The table in `docs/versions.md` is written from that file. Both are written after each file,
and the tests that failed are printed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tcw.compiler import pipeline
from tcw.compiler.control.hooks import version_of
from tcw.compiler.control.tried_on import TRIED_ON
from tcw.compiler.engine import hooks as engine
from tcw.compiler.measure import hooks as profile
from tcw.workbench.worker import measuring_hooks

ROOT = Path(__file__).resolve().parents[2]
MODULE = ROOT / "compiler" / "control" / "tried_on.py"
PAGE = ROOT / "docs" / "versions.md"
BEGIN, END = "<!-- hooks: begin -->\n", "<!-- hooks: end -->\n"

HOOKS = (*pipeline.HOOKS, *measuring_hooks.HOOKS, *profile.HOOKS, *engine.HOOKS)

HEAD = '''"""torch/Python on which each hook's tests passed, by `python -m tests.cpu.versions`."""

from __future__ import annotations

from collections.abc import Mapping

# fmt: off
TRIED_ON: Mapping[str, tuple[str, ...]] = {
'''


def tests() -> dict[str, str]:
    """Hook -> the file that tests it, under `tests/cpu`."""
    return {hook.name: hook.test for hook in HOOKS}


def module_text(tried: Mapping[str, tuple[str, ...]]) -> str:
    """`compiler/control/tried_on.py`."""
    lines = (f"    {json.dumps(name)}: {_tuple(tried[name])},\n" for name in sorted(tried))
    return f"{HEAD}{''.join(lines)}}}\n"


def table(tried: Mapping[str, tuple[str, ...]]) -> str:
    """The table of `docs/versions.md`: a row a hook, a column a pair of torch and Python."""
    pairs = sorted({pair for pairs in tried.values() for pair in pairs}, key=_numbers)
    rows = [["hook", *pairs, "tests"], ["---"] * (len(pairs) + 2)]
    files = tests()
    for name in sorted(files):
        marks = ["passed" if pair in tried.get(name, ()) else "" for pair in pairs]
        rows.append([name, *marks, f"`{files[name]}`"])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def noted(
    tried: Mapping[str, tuple[str, ...]], file: str, pair: str, passed: bool
) -> dict[str, tuple[str, ...]]:
    """`tried` after this pair ran this file, whose hooks passed or did not."""
    found = {name: tried.get(name, ()) for name in tests()}
    for name, pairs in found.items():
        if tests()[name] == file:
            others = [other for other in pairs if _releases(other) != _releases(pair)]
            found[name] = tuple(sorted([*others, *[pair] * passed], key=_numbers))
    return found


def main() -> None:
    pair = "{}/{}.{}".format(version_of("torch").partition("+")[0], *sys.version_info)
    tried: Mapping[str, tuple[str, ...]] = TRIED_ON
    for file in sys.argv[1:] or sorted(set(tests().values())):
        done = _run(file)
        if done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED:
            done = _run(file, "-m", "long")
        tried = noted(tried, file, pair, passed=done.returncode == 0)
        MODULE.write_text(module_text(tried))
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(before + BEGIN + table(tried) + END + rest.partition(END)[2])
        *_, last = done.stdout.strip().splitlines() or [done.stderr[-500:]]
        failed = re.findall(r"^(?:FAILED|ERROR) .*$", done.stdout, re.MULTILINE)
        print(file, last, *failed, sep="\n  ", flush=True)


def _run(file: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-n0", *options, f"tests/cpu/{file}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def _tuple(versions: tuple[str, ...]) -> str:
    inside = ", ".join(f'"{version}"' for version in versions)
    return f"({inside},)" if len(versions) == 1 else f"({inside})"


def _numbers(pair: str) -> tuple[tuple[int, ...], ...]:
    """(2, 14, 1), (3, 13)"""
    return tuple(tuple(map(int, re.findall(r"\d+", part)[:3])) for part in pair.split("/"))


def _releases(pair: str) -> tuple[tuple[int, ...], ...]:
    """(2, 14), (3, 13)"""
    return tuple(numbers[:2] for numbers in _numbers(pair))


if __name__ == "__main__":
    main()
