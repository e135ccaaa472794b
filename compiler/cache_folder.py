"""Our cache folder: private to its owner, or refused."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from pathlib import Path

from tcw.compiler.trace.plain_file import plain_file, read_at_most


class CacheRefused(Exception):
    """The cache folder cannot be used safely; the message says why and what to do."""


def cache_folder() -> Path:
    """The folder `tcw` under XDG_CACHE_HOME (else ~/.cache), made with mode 0700.

    Raises `CacheRefused` if it is a link, is not a folder, belongs to someone else, can be entered
    or written by others, or cannot be created. A cache that others can write to can run their code.
    """
    return private_folder(cache_path())


def private_folder(path: Path, instead: str = "set XDG_CACHE_HOME") -> Path:
    """`path`, created with mode 0700 if missing. Raises `CacheRefused` like `cache_folder`.

    `instead` says what the user can set to name another folder.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = os.lstat(path)
    except OSError as error:
        raise CacheRefused(
            f"the cache folder {path} cannot be created: {error.strerror or error}; "
            f"{instead} to a folder of your own"
        ) from error
    if not stat.S_ISDIR(found.st_mode):
        raise CacheRefused(f"the cache folder {path} is a link or no folder; remove it")
    if found.st_uid != os.geteuid():
        raise CacheRefused(
            f"the cache folder {path} belongs to user {found.st_uid}; "
            f"{instead} to a folder of your own"
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise CacheRefused(f"the cache folder {path} is open to others; run: chmod 700 {path}")
    return path


def read_own(path: Path, most: int) -> bytes:
    """The content of a regular file owned by this user, of at most `most` bytes.

    Follows no link and waits for no pipe. Raises OSError, also for any other kind of file.
    """
    with plain_file(path, links=False) as (stream, found):
        if found.st_uid != os.geteuid():
            raise OSError(errno.EPERM, "it is not your own file", str(path))
        return read_at_most(stream, path, most)


def write_own(path: Path, content: bytes) -> None:
    """Write a file in one step, replacing an existing one. Raises OSError."""
    handle, temporary = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def cache_path() -> Path:
    """The path of the cache folder, which is not created."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rules require ignoring a relative path.
    root = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    return root / "tcw"
