"""Goldens, which are expected texts in files that a person can review, and folders for caches."""

from __future__ import annotations

import difflib
import gc
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from tests import bytecode

GOLDENS = Path(__file__).parent / "goldens"
DIFF_LINES = 120

Golden = Callable[..., None]

# All before anything imports torch. Inductor builds programs to see which vectors the compiler and
# this processor know, for each of its cache folders: nine seconds of a processor, which torch's own
# setting saves.
os.environ["TORCHINDUCTOR_VEC_ISA_OK"] = "1"
# Threads of an operation sleep while they wait for each other: there are fewer cores than workers,
# and a sixth of a run's CPU seconds went into looking whether the others are done.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# Every process of a test would compile all of our sources again, a second of a processor each.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


# What a test finds must not depend on how busy the machine is: no example is too slow.
settings.register_profile("tcw", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tcw")

COLLECT_AFTER = (20_000, 10, 20)
"""Thresholds of Python's garbage collector. With its own, a quarter of a run's CPU seconds is spent
looking through torch, all tests and Textual's caches for cycles that are not there."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is there after it stays until the end: no collection of garbage visits it again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()  # what is garbage already, too: to find it takes a second
        gc.set_threshold(*COLLECT_AFTER)
        gc.enable()


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than cores: a quarter of a run is spent waiting (pages, timers, children)."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    bytecode.write(config, Path(__file__).parents[1])


TOGETHER = re.compile(r"tests/cpu/inductor/test_(codegen|fusion|lowering|memory)\.py")
"""Files that share compiles, which are made once a worker."""


class ByFile(LoadFileScheduling):
    """A file at a time for each worker; those that share what is made for them are as one."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return TOGETHER.pattern if TOGETHER.fullmatch(file) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    return ByFile(config, log)  # type: ignore[arg-type]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens",
        action="store_true",
        help="write what the tests got into tests/goldens/ and docs/schema/; then look at the diff",
    )
    parser.addoption(
        "--cold-start",
        action="store_true",
        help="start each worker as a new process, and fork none from one that has torch imported",
    )


@pytest.fixture(scope="session", autouse=True)
def _caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The user's caches serve nothing, and nothing is left in them.

    What torch builds is shared by all processes of the run. The header that Inductor compiles
    first has no other place than `torchinductor_USER` in the temporary folder (`_HEADER_DIR` in
    torch/_inductor/codecache.py).
    """
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(own / "user-cache"))
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(shared / "inductor-cache"))
        patch.setenv("TRITON_CACHE_DIR", str(shared / "triton-cache"))
        yield


@pytest.fixture(scope="session", autouse=True)
def _quick_linker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """g++ links with gold, where there is one: half of what Inductor's kernels cost is linking with
    torch's libraries, which takes the default linker twice as long. Compilers for other machines
    look in folders of their own. A g++ without a gold of its own, or that gold cannot link for,
    keeps its own linker."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    gold = shutil.which("ld.gold", path=os.path.dirname(compiler)) if compiler else None
    if not gold or not compiler:
        yield
        return
    command = [compiler, "-dumpmachine"]
    machine = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    folder = tmp_path_factory.mktemp("linker")
    (folder / machine).mkdir(exist_ok=True)
    (folder / machine / "ld").symlink_to(gold)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPILER_PATH", str(folder), prepend=os.pathsep)
        trial = [compiler, "-shared", "-fPIC", "-fopenmp", "-x", "c++", "-", "-o", folder / "trial"]
        code = "#include <string>\nstd::string text() { return std::string(99, 'x'); }"
        links = subprocess.run(trial, input=code, capture_output=True, text=True, check=False)
        if links.returncode:
            patch.undo()
        yield


@pytest.fixture
def hangups() -> Iterator[None]:
    """What the test starts ends on SIGHUP, even where pytest itself runs under `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def diff(expected: str, got: str, name: str) -> str:
    """The two texts as a diff, at most `DIFF_LINES` lines of it."""
    lines = list(
        difflib.unified_diff(
            expected.splitlines(), got.splitlines(), f"{name} (golden)", "this run", lineterm=""
        )
    )
    if len(lines) > DIFF_LINES:
        lines = [*lines[:DIFF_LINES], f"… {len(lines) - DIFF_LINES} more lines"]
    return "\n".join(lines)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """`golden("explain/block.txt", text)` fails with a diff where the text has changed.

    A name is a path below `tests/goldens/`; `golden(path, text)` takes any path as well.
    """
    update: bool = request.config.getoption("--update-goldens")

    def check(name: str | Path, text: str) -> None:
        file = GOLDENS / name
        if update:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            return
        if not file.exists():
            pytest.fail(f"there is no golden {file}: run with --update-goldens", pytrace=False)
        expected = file.read_text(encoding="utf-8")
        if expected != text:
            words = diff(expected, text, str(name))
            pytest.fail(f"{words}\nif it is meant: pytest --update-goldens", pytrace=False)

    return check
