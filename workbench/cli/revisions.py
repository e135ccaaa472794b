"""A file as it was at a git revision: in a folder of its own, with the rest of its repository.

`git archive` reads the commit alone: no hook runs, and neither the working tree nor the index is
touched. Submodules are empty there, as in a fresh clone.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

from workbench.worker.guardian import own_folder


class NoRevision(Exception):
    """A revision, a repository or git itself that is not there; the message says which."""


@contextlib.contextmanager
def at_revision(file: Path, revision: str) -> Iterator[Path]:
    """The file at `revision`. The folder is removed at the end.

    Raises `NoRevision` if there is no such revision, or no such file in it.
    """
    folder = file.resolve().parent
    top = Path(git(folder, "rev-parse", "--show-toplevel").decode().removesuffix("\n"))
    inside = file.resolve().relative_to(top.resolve())
    commit = _commit(folder, revision)
    with own_folder() as place:
        archive = io.BytesIO(git(top, "archive", "--format=tar", commit))
        with tarfile.open(fileobj=archive) as members:
            members.extractall(place, filter="data")
        found = Path(place) / inside
        if not found.is_file():
            raise NoRevision(f"{inside} does not exist at {revision}")
        yield found


def _commit(folder: Path, revision: str) -> str:
    try:
        found = git(folder, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    except NoRevision as error:
        raise NoRevision(f"no git revision {revision!r} in {folder}") from error
    return found.decode().strip()


def changed_files(folder: Path, revision: str) -> set[Path]:
    """Files of the repository that differ from `revision`, untracked ones included. Raises
    `NoRevision`."""
    top = Path(git(folder, "rev-parse", "--show-toplevel").decode().removesuffix("\n"))
    commit = _commit(folder, revision)
    told = git(top, "diff", "--name-only", "-z", "--no-renames", commit)
    told += git(top, "ls-files", "--others", "--exclude-standard", "-z")
    return {(top / os.fsdecode(name)).resolve() for name in told.split(b"\0") if name}


def git(folder: Path, *arguments: str) -> bytes:
    """What git prints. Raises `NoRevision` if it fails."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "-c", "core.fsmonitor=false", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise NoRevision("comparing revisions needs git, which is not installed") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise NoRevision(said[0] if said else f"git {arguments[0]} failed")
    return done.stdout
