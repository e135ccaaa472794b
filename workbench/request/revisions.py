"""A file as it was at a git revision: in a folder of its own, with the rest of its repository.

The commit is checked out through an index of its own: no hook runs, and neither the working tree
nor the repository's index is touched. Submodules are empty there, as in a fresh clone.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from tcw.workbench.worker.guardian import own_folder

_OF_ANOTHER = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Set by git for its hooks: they say which repository a command is about, wherever it runs."""


class NoRevision(click.UsageError):
    """A revision, a repository or git itself that is not there; the message says which."""


@dataclass(frozen=True)
class AtRevision:
    """Where a file is in a commit."""

    top: Path
    """The repository's folder."""
    commit: str
    inside: Path
    """Below `top`, by the name that the file had there."""


def find(file: Path, revision: str) -> AtRevision:
    """The file in the commit that `revision` names; `main...HEAD` is the merge base of the two. A
    file that was renamed since is found by the name that it had. Raises `NoRevision`."""
    file = file.resolve()
    top = repository(file)
    commit = _commit(top, revision)
    inside = file.relative_to(top)
    if not _has(top, commit, inside):
        before = _renamed(top, commit).get(inside)
        if before is None:
            raise NoRevision(f"{inside} does not exist at {revision}")
        inside = before
    return AtRevision(top, commit, inside)


@contextlib.contextmanager
def at_revision(file: Path, revision: str) -> Iterator[Path]:
    """The file at `revision`, as `find` finds it. The folder is removed at the end. Raises
    `NoRevision`."""
    found = find(file, revision)
    with own_folder() as place:
        tree = Path(place, "tree")
        tree.mkdir()
        index = {"GIT_INDEX_FILE": os.path.join(place, "index")}
        git(found.top, "read-tree", found.commit, variables=index)
        git(
            found.top,
            "-c",
            "core.hooksPath=/dev/null",
            "checkout-index",
            "--all",
            "--quiet",
            f"--prefix={tree}/",
            variables=index,
        )
        yield tree / found.inside


def repository(file: Path) -> Path:
    """The top of the repository that a file is in, or would be. Raises `NoRevision`."""
    folder = next(parent for parent in file.resolve().parents if parent.is_dir())
    try:
        printed = git(folder, "rev-parse", "--show-toplevel")
    except NoRevision as error:
        if "not a git repository" in str(error):
            raise NoRevision(f"{folder} is not in a git repository") from error
        raise
    return Path(os.fsdecode(printed.removesuffix(b"\n"))).resolve()


def _has(top: Path, commit: str, inside: Path) -> bool:
    """Whether the commit has the file. A link counts; what it leads to may be elsewhere."""
    try:
        return git(top, "cat-file", "-t", f"{commit}:{inside.as_posix()}").strip() == b"blob"
    except NoRevision:
        return False


def _renamed(top: Path, commit: str) -> Mapping[Path, Path]:
    """Files of the working tree that have another name in the commit -> that name."""
    printed = git(top, "diff", "--find-renames", "--diff-filter=R", "--name-status", "-z", commit)
    words = [os.fsdecode(word) for word in printed.split(b"\0") if word]
    return {
        Path(new): Path(old)
        for _, old, new in zip(words[::3], words[1::3], words[2::3], strict=True)
    }


def _commit(top: Path, revision: str) -> str:
    one, dots, other = revision.partition("...")
    try:
        if dots:
            names = [_commit(top, side or "HEAD") for side in (one, other)]
            found = git(top, "merge-base", *names)
        else:
            options = ("--verify", "--quiet", "--end-of-options")
            found = git(top, "rev-parse", *options, f"{revision}^{{commit}}")
    except NoRevision as error:
        if dots and "no git revision" not in str(error):
            raise NoRevision(f"{one or 'HEAD'} and {other or 'HEAD'} share no commit") from error
        if dots:
            raise
        try:
            git(top, "rev-parse", "--verify", "--quiet", "HEAD")
        except NoRevision:
            raise NoRevision(f"{top} has no commits yet") from error
        raise NoRevision(f"no git revision {revision!r} in {top}") from error
    return found.decode().strip()


def changed_files(folder: Path, revision: str) -> set[Path]:
    """Files of the repository that differ from `revision`: untracked ones, and those that are gone,
    included. Raises `NoRevision`."""
    top = repository(folder / "file")
    commit = _commit(top, revision)
    printed = git(top, "diff", "--name-only", "-z", "--no-renames", commit)
    printed += git(top, "ls-files", "--others", "--exclude-standard", "-z")
    return {(top / os.fsdecode(name)).resolve() for name in printed.split(b"\0") if name}


def text_at(file: Path, revision: str) -> bytes:
    """A file's bytes at a revision; empty if it has none there. Raises `NoRevision`."""
    top = repository(file)
    commit = _commit(top, revision)
    inside = file.resolve().relative_to(top)
    if not _has(top, commit, inside):
        return b""
    return git(top, "cat-file", "blob", f"{commit}:{inside.as_posix()}")


def git(folder: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> bytes:
    """What git prints. Raises `NoRevision` if it fails."""
    kept = {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "-c", "core.fsmonitor=false", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env={**kept, "LC_ALL": "C", **(variables or {})},
        )
    except FileNotFoundError as error:
        raise NoRevision("comparing revisions needs git, which is not installed") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise NoRevision(said[0] if said else f"git {arguments[0]} failed")
    return done.stdout
