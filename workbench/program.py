"""A program started for `tcw run`: every Python process in its tree records what it compiles.

It gets our standard streams, terminal and process group. What a terminal sends (ctrl-c) it receives
itself; signals sent to tcw alone are passed on. tcw waits, whatever the signal.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tcw.start_up import PACKAGES_VARIABLE, SAMPLE_VARIABLE, VARIABLE

START_UP = Path(__file__).parent / "start_up"
"""Put on PYTHONPATH: its `sitecustomize` starts the recording."""
_PASSED_ON = {
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGUSR1, signal.SIGUSR2),
}
_FROM_TERMINAL = 0x80
"""`SI_KERNEL`: the terminal sent the signal, to the whole process group."""


class NotStarted(Exception):
    """The program does not exist or cannot be executed; the message says why."""


def command_of(program: Sequence[str]) -> list[str]:
    """What is executed: a `.py` file, a folder with `__main__.py` and `-m MODULE` run in this
    Python, anything else is a command of PATH, or one installed beside this Python."""
    name = program[0]
    if name == "-m" or name.endswith(".py") or (Path(name) / "__main__.py").is_file():
        return [sys.executable, *program]
    found = shutil.which(name) or shutil.which(name, path=os.path.dirname(sys.executable))
    if found is None:
        why = "is a folder" if os.path.isdir(name) else "is not executable"
        if not os.path.lexists(name):
            why = "is not a command, and there is no such file"
        raise NotStarted(f"{name} {why}")
    return [found, *program[1:]]


def environment_of(folder: Path, size: int) -> dict[str, str]:
    """The environment, with the variables that make Python processes record into `folder`,
    each trace of at most `size` bytes if that is given."""
    before = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(START_UP), *([before] if before else [])])
    packages = {}
    spec = importlib.util.find_spec("msgspec")
    if spec is not None and spec.origin:
        packages[PACKAGES_VARIABLE] = os.path.dirname(os.path.dirname(spec.origin))
    sample = {SAMPLE_VARIABLE: str(size)} if size else {}
    return {
        **os.environ,
        **packages,
        **sample,
        "PYTHONPATH": path,
        VARIABLE: str(folder.absolute()),
    }


def run(program: Sequence[str], folder: Path, size: int = 0) -> int:
    """Run the program to its end; its exit code, 128 + N if signal N ended it.

    Raises `NotStarted`.
    """
    command = command_of(program)
    with _signals_held() as mask:
        try:
            # The name is what was typed: a program may look at its argv[0].
            process = subprocess.Popen(
                [program[0] if command[0] != sys.executable else command[0], *command[1:]],
                executable=command[0],
                env=environment_of(folder, size),
                close_fds=False,
                preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask),
            )
        except OSError as error:
            raise NotStarted(f"{program[0]}: {error.strerror}") from error
        status = _waited(process)
    return 128 - status if status < 0 else status


@contextmanager
def _signals_held() -> Iterator[set[signal.Signals]]:
    """Hold back the signals that `_waited` takes one by one; yields the mask from before."""
    ignored = {one for one in _PASSED_ON if signal.getsignal(one) is signal.SIG_IGN}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (_PASSED_ON - ignored) | {signal.SIGCHLD})
    mask = {one for one in before if isinstance(one, signal.Signals)}
    try:
        yield mask
    finally:
        while signal.sigtimedwait(_PASSED_ON - ignored, 0) is not None:
            pass  # ctrl-c was for the program, which has ended
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _waited(process: subprocess.Popen[bytes]) -> int:
    wanted = _PASSED_ON | {signal.SIGCHLD}
    while True:
        status = process.poll()
        if status is not None:
            return status
        told = signal.sigtimedwait(wanted, 1.0)
        if told is None or told.si_signo == signal.SIGCHLD:
            continue
        if told.si_code != _FROM_TERMINAL:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(told.si_signo)
