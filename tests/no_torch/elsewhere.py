"""tcw on a system that lacks what Linux has: `python -m tests.no_torch.elsewhere 'VERB …' …`.

Each command is followed by a line with its exit code, also on stderr. `screens FILE` is what
`tcw open FILE` shows, without a terminal. The standard library and
Textual, which know other systems by themselves, keep what they have imported before.
"""

from __future__ import annotations

# These use what is hidden where the system has it.
import asyncio
import concurrent.futures.process
import ctypes.util
import getpass
import multiprocessing.util
import os
import platform
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
import webbrowser
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from textual.drivers import linux_driver

USERS = (
    *(asyncio, concurrent.futures.process, ctypes.util, getpass, multiprocessing.util),
    *(platform, shutil, socket, subprocess, tempfile, urllib.request, webbrowser),
    linux_driver,
)
MODULES = (
    *("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"),
    *("_posixshmem", "readline", "curses"),
)
FUNCTIONS: dict[ModuleType, tuple[str, ...]] = {
    os: (
        *("fork", "forkpty", "memfd_create", "pipe2", "posix_spawn", "splice", "waitid"),
        *("sched_getaffinity", "sched_setaffinity", "sched_getscheduler", "sched_getparam"),
        *("eventfd", "pidfd_open", "copy_file_range", "posix_fadvise", "posix_fallocate"),
        *("getxattr", "setxattr", "listxattr", "getrandom", "setns", "unshare", "preadv"),
        *("O_TMPFILE", "O_PATH", "O_DIRECT", "O_NOATIME", "SCHED_BATCH"),
    ),
    signal: (
        *("SIGRTMAX", "SIGRTMIN", "SIGPWR", "SIGPOLL", "SIGSTKFLT", "SIGCLD"),
        *("sigtimedwait", "sigwaitinfo"),
    ),
    select: ("epoll",),
}
"""What macOS lacks, and forks, which are not safe there."""


class Refusing:
    """Finds none of `MODULES`, which other systems lack."""

    @staticmethod
    def find_spec(
        name: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in MODULES:
            raise ModuleNotFoundError(f"no module {name} on this system", name=name)
        return None


def hide() -> None:
    for module, names in FUNCTIONS.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Refusing())
    sys.platform = "darwin"
    sys.addaudithook(_no_proc)


def _no_proc(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("open", "os.listdir") and str(arguments[0]).startswith(("/proc", "/sys/")):
        raise FileNotFoundError(f"no {arguments[0]} on this system")


SCREENS = ("kernels", "notes", "ranks", "settings")


async def screens(file: Path) -> None:
    """Some arrangements of the workbench; raises what the workbench raises."""
    from tcw.workbench.tui.app import Workbench
    from tcw.workbench.tui.bench import Bench
    from tcw.workbench.tui.picture import painted

    app = Workbench(file)
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.pause()
        bench = app.screen
        assert isinstance(bench, Bench)
        while bench.state == "opening":
            await pilot.pause(0.02)
        for name in SCREENS:
            bench.navigator.go(name, "")
            await bench.rebuild()
            await pilot.pause()
            for line in painted(app):
                print("".join(part.text for part in line).rstrip())


def main(commands: list[str]) -> None:
    hide()
    from tcw.workbench.cli.main import main as tcw

    for command in commands:
        arguments = command.split()
        if arguments[0] == "screens":
            asyncio.run(screens(Path(arguments[1])))
            code = 0
        else:
            code = tcw(arguments)
        for stream in (sys.stdout, sys.stderr):
            print(f"exit code {code}", file=stream, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
