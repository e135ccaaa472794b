"""A file as it was at a git revision: in a folder of its own, with the rest of its repository.

`git archive` reads the commit alone: no hook runs, and neither the working tree nor the index is
touched. Submodules are empty there, as in a fresh clone.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import click

from workbench.worker.guardian import own_folder


@contextlib.contextmanager
def at_revision(file: Path, revision: str) -> Iterator[Path]:
    """The file at `revision`. The folder is removed at the end.

    Raises `click.UsageError` if there is no such revision, or no such file in it.
    """
    folder = file.resolve().parent
    top = Path(_git(folder, "rev-parse", "--show-toplevel").decode().removesuffix("\n"))
    inside = file.resolve().relative_to(top.resolve())
    commit = _commit(folder, revision)
    with own_folder() as place:
        archive = io.BytesIO(_git(top, "archive", "--format=tar", commit))
        with tarfile.open(fileobj=archive) as members:
            members.extractall(place, filter="data")
        found = Path(place) / inside
        if not found.is_file():
            raise click.UsageError(f"{inside} does not exist at {revision}")
        yield found


def _commit(folder: Path, revision: str) -> str:
    try:
        found = _git(folder, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    except click.UsageError as error:
        raise click.UsageError(f"no git revision {revision!r} in {folder}") from error
    return found.decode().strip()


def _git(folder: Path, *arguments: str) -> bytes:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise click.UsageError("comparing revisions needs git, which is not installed") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise click.UsageError(said[0] if said else f"git {arguments[0]} failed")
    return done.stdout
