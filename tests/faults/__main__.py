"""Plants each fault in a copy of this tree and runs the tests that should find it.

python -m tests.faults [--only WORD] [--jobs 2]

A fault is found if one of its test files fails, at a test that passes without the fault. Prints a
table; the exit code is 1 if a fault is missed or its text is not in its file exactly once.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from tests.faults import FAULTS
from tests.faults.fault import Fault

ROOT = Path(__file__).resolve().parents[2]
MISSED = "MISSED"
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


def main() -> int:
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=about)
    parser.add_argument("--only", default="", metavar="WORD", help="in the fault or its file")
    parser.add_argument("--jobs", type=int, default=1, help="faults tried at once, a copy for each")
    options = parser.parse_args()
    faults = [one for one in FAULTS if options.only in f"{one.subject} {one.file}"]
    subjects = max((len(fault.subject) for fault in faults), default=0)
    files = max((len(fault.file) for fault in faults), default=0)
    copies: SimpleQueue[Path] = SimpleQueue()

    def tried(fault: Fault) -> str:
        copy = copies.get()
        try:
            began = time.monotonic()
            verdict = found_by(fault, copy)
            seconds = time.monotonic() - began
        finally:
            copies.put(copy)
        row = f"{fault.subject:{subjects}}  {fault.file:{files}}  {seconds:3.0f} s  {verdict}"
        print(row, flush=True)
        return verdict

    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        for number in range(options.jobs):
            copies.put(copied(Path(folder, str(number), "tree")))
        with ThreadPoolExecutor(options.jobs) as pool:
            verdicts = list(pool.map(tried, faults))
    missed = sum(not verdict.startswith("tests/") for verdict in verdicts)
    print(f"{len(faults) - missed} of {len(faults)} faults found")
    return int(missed > 0 or not faults)


def copied(folder: Path) -> Path:
    """A copy of the files that git tracks, or would, as they are in this tree."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, os.fsdecode(names).split("\0")):
        if (ROOT / name).is_file() or (ROOT / name).is_symlink():  # tcw/ links to our folders
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    return folder


def found_by(fault: Fault, copy: Path) -> str:
    """The id of the first test that fails with the fault alone, `MISSED`, or what is wrong with the
    fault."""
    if (copy / fault.file).read_text(encoding="utf-8").count(fault.old) != 1:
        return "its text is not in the file exactly once"
    with planted(fault, copy):
        failed = first_failure(fault.tests, copy)
    if failed is None:
        return MISSED
    alone = [failed] if failed not in fault.tests else fault.tests
    if first_failure(alone, copy) is not None:
        return f"{MISSED}: without it, {failed} fails too"
    return failed


@contextmanager
def planted(fault: Fault, copy: Path) -> Iterator[None]:
    file = copy / fault.file
    right = file.read_bytes()
    try:
        _write(file, right.replace(fault.old.encode(), fault.new.encode()))
        yield
    finally:
        _write(file, right)


def _write(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    # it may have the size and, in whole seconds, the time of the version that was compiled
    Path(importlib.util.cache_from_source(file)).unlink(missing_ok=True)


def first_failure(tests: Sequence[str], copy: Path) -> str | None:
    """The id of the first test that fails, or None; the first file if pytest itself died."""
    command = [
        *(sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-m", "not long", "--tb=no", "-rfE"),
        *("-p", "no:cacheprovider", "--basetemp", str(copy.parent / "temporary"), *tests),
    ]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return None
    match = _FAILED.search(done.stdout)
    return tests[0] if match is None else match[1]


if __name__ == "__main__":
    sys.exit(main())
