"""Run a program as it is, and report what its processes compiled.

Every Python process that compiles is recorded from its first compile on, no matter what calls
torch.compile: a training script, a Trainer, torchrun's ranks, pytest, a server. The program keeps
its arguments, input, output, signals, exit code and compile caches. Each process that compiles
writes its own trace into one folder. The report goes to stderr; stdout is the program's.

PROGRAM is a Python file, -m MODULE, or a command. Options of tcw come before it.

\b
  tcw run train.py --epochs 1
  tcw run -m package.train
  tcw run torchrun --nproc-per-node 2 train.py
  tcw run -o traces pytest tests
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

import click

from tcw.compiler.trace.bounded import trace_size
from tcw.compiler.trace.output_file import safe_name
from tcw.start_up import PACKAGES_VARIABLE, SAMPLE_VARIABLE, VARIABLE
from tcw.workbench.request import codes
from tcw.workbench.request.files import existing_file
from tcw.workbench.request.messages import say
from tcw.workbench.request.options import need_linux, path_option


class NotStarted(click.UsageError):
    """The program does not exist or cannot be executed; the message says why."""

    exit_code = 127
    """As of a shell that finds no such command."""


@click.command(
    name="run",
    help=__doc__,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    options_metavar="[-o FOLDER] [--sample SIZE] [-q]",
)
@path_option(
    "-o",
    "--output",
    "folder",
    metavar="FOLDER",
    help="Write the traces here: a new or empty folder. By default PROGRAM.tcw, or the first of "
    "PROGRAM-2.tcw, … that does not exist.",
)
@click.option(
    "--sample",
    "size",
    metavar="SIZE",
    callback=lambda _ctx, _option, value: _size(value),
    help="Keep each trace under this size, such as 100MB. The first compiles of a long run are "
    "recorded in full, later ones in outline, and of the last ones only that they happened. The "
    "report says what was left out.",
)
@click.option("-q", "--quiet", is_flag=True, help="Write the traces, and no report.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def command(folder: Path | None, size: int, quiet: bool, program: tuple[str, ...]) -> int:
    need_linux()
    program = program[1:] if program[0] == "--" else program
    if not program or program == ("-m",):
        raise click.UsageError("name a program: tcw run train.py, tcw run -m package")
    if program[0].startswith("-") and program[0] != "-m":
        raise click.UsageError(f"no such option: {program[0]}. Options of PROGRAM come after it")
    if program[0].endswith(".py"):
        existing_file(Path(program[0]))
    folder = _made(folder or _free(_name(program)))
    try:
        code = run_program(program, folder, size)
    except NotStarted:
        _remove_if_empty(folder)
        raise
    try:
        compiled = any(folder.iterdir()) if quiet else _reported(folder)
    except OSError as error:
        say(f"{folder}: {error.strerror}")
        return codes.unwritten(code)
    if not compiled:
        _remove_if_empty(folder)
    return code


def _size(value: str | None) -> int:
    """Bytes; 0 for none."""
    try:
        return trace_size(value) if value is not None else 0
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _reported(folder: Path) -> bool:
    from tcw.workbench.request.folders import tell

    found = tell(folder, "stderr")
    if not found:
        say("no process compiled anything: torch.compile was given nothing to compile")
    return bool(found)


def _name(program: tuple[str, ...]) -> str:
    """`train` for `train.py` and `-m train`; the first Python file for `torchrun … train.py`."""
    if program[0] == "-m":
        name = program[1]
    else:
        file = next((one for one in program if one.endswith(".py")), program[0])
        name = Path(file).stem if file.endswith(".py") else Path(file).name
    return safe_name(name, "program")


def _free(name: str) -> Path:
    number = 1
    while os.path.lexists(path := Path(f"{name}{f'-{number}' if number > 1 else ''}.tcw")):
        number += 1
    return path


def _made(folder: Path) -> Path:
    """The folder, made if missing. Raises `click.UsageError` unless it is empty and writable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise click.UsageError(f"-o {folder}: the folder is not empty; name another")
    except FileExistsError as error:
        raise click.UsageError(f"-o {folder}: it is a file; name a folder") from error
    except OSError as error:
        raise click.UsageError(f"-o {folder}: {error.strerror}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise click.UsageError(f"-o {folder}: the folder is not writable")
    return folder


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


# The program gets our standard streams, terminal and process group. What a terminal sends (ctrl-c)
# it receives itself; signals sent to tcw alone are passed on. tcw waits, whatever the signal.

START_UP = Path(__file__).parents[1] / "start_up"
"""Put on PYTHONPATH: its `sitecustomize` starts the recording."""
_PASSED_ON = {
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGUSR1, signal.SIGUSR2),
}
_FROM_TERMINAL = 0x80
"""`SI_KERNEL`: the terminal sent the signal, to the whole process group."""


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


def run_program(program: Sequence[str], folder: Path, size: int = 0) -> int:
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
    ignored = {signals for signals in _PASSED_ON if signal.getsignal(signals) is signal.SIG_IGN}
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
        received = signal.sigtimedwait(wanted, 1.0)
        if received is None or received.si_signo == signal.SIGCHLD:
            continue
        if received.si_code != _FROM_TERMINAL:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(received.si_signo)
