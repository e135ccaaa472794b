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
import os
from pathlib import Path

import click

from tcw.compiler.output_file import safe_name
from tcw.compiler.trace.bounded import size_of
from tcw.workbench import program as programs
from tcw.workbench.cli import codes
from tcw.workbench.cli.files import existing_file
from tcw.workbench.cli.options import need_linux
from tcw.workbench.cli.output import say


class NotStarted(click.UsageError):
    """The program cannot be started."""

    exit_code = 127
    """As of a shell that finds no such command."""


@click.command(
    name="run",
    help=__doc__,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    options_metavar="[-o FOLDER] [--sample SIZE] [-q]",
)
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path),
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
        code = programs.run(program, folder, size)
    except programs.NotStarted as error:
        _remove_if_empty(folder)
        raise NotStarted(str(error)) from error
    try:
        told = any(folder.iterdir()) if quiet else _told(folder)
    except OSError as error:
        say(f"{folder}: {error.strerror}")
        return codes.unwritten(code)
    if not told:
        _remove_if_empty(folder)
    return code


def _size(value: str | None) -> int:
    """Bytes; 0 for none."""
    try:
        return size_of(value) if value is not None else 0
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _told(folder: Path) -> bool:
    from tcw.workbench.cli.folders import tell

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
