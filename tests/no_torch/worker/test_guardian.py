"""The guardian leaves no process behind: neither orphans, nor those in a session of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

PROGRAM = """
import os, sys, time
from tcw.workbench.worker import guardian

guard = guardian._guard
def late(*given):
    time.sleep({late})
    guard(*given)
guardian._guard = late
guardian.fork_worker(int(sys.argv[1]), int(sys.argv[2]))
done, tell = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        os.write(tell, b"!")
        time.sleep(600)
    os._exit(0)
os.wait()
os.read(done, 1)
{last}
"""


@dataclass
class Guarded:
    """A worker with an orphan."""

    guardian: subprocess.Popen[str]
    orphan: int
    lifeline: int
    """The end that the front end holds; -1 once it has let go."""
    status: int

    def let_go(self) -> None:
        os.close(self.lifeline)
        self.lifeline = -1

    def ended(self) -> int:
        """The worker's wait status, once the guardian has ended."""
        assert self.guardian.wait(60) == 0
        return int(os.read(self.status, 64))


@contextmanager
def guarded(last: str, late: float = 0.0) -> Iterator[Guarded]:
    """`last`: what the worker does once its orphan runs; `late`: seconds before the guardian comes
    to watch it."""
    (theirs, lifeline), (status, told) = os.pipe(), os.pipe()
    guardian = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(last=last, late=late), str(theirs), str(told)],
        pass_fds=(theirs, told),
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
    )
    os.close(theirs)
    os.close(told)
    assert guardian.stdout is not None
    found = Guarded(guardian, int(guardian.stdout.readline()), lifeline, status)
    try:
        yield found
    finally:
        guardian.kill()
        guardian.wait()
        guardian.stdout.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(found.orphan, signal.SIGKILL)
        os.close(status)
        if found.lifeline >= 0:
            found.let_go()


@pytest.mark.parametrize("late", [0.0, 1.0])
def test_an_orphan_ends_with_the_worker(late: float) -> None:
    with guarded("os._exit(7)", late) as found:
        assert os.waitstatus_to_exitcode(found.ended()) == 7
        with pytest.raises(ProcessLookupError):
            os.kill(found.orphan, 0)


def test_all_end_where_the_front_end_lets_go() -> None:
    with guarded("time.sleep(600)") as found:
        os.kill(found.orphan, 0)
        found.let_go()
        assert os.waitstatus_to_exitcode(found.ended()) == -signal.SIGKILL
        with pytest.raises(ProcessLookupError):
            os.kill(found.orphan, 0)


def test_programs_of_a_stopped_worker_remove_their_files(tmp_path: Path) -> None:
    file = tmp_path / "cc.s"
    program = f"trap 'rm {file}; exit 1' TERM; echo made > {file}; while :; do sleep 0.05; done"
    run = f"import subprocess; subprocess.run(['sh', '-c', {program!r}])"
    with guarded(f"{run}; time.sleep(600)") as found:
        for _ in range(500):
            if file.exists() and file.read_text():
                break
            time.sleep(0.02)
        found.let_go()
        assert os.waitstatus_to_exitcode(found.ended()) == -signal.SIGKILL
    assert not file.exists()
