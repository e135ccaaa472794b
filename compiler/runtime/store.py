"""Files shared by many processes: written completely or not at all, checked when read, limited in
total size.

A file that is not named by the digest of its content is sealed: it starts with the digest of its
name and content. A damaged file, or one under another's name, is a miss. Nothing here is pickled.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import heapq
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec

from tcw.compiler.cache_folder import (
    CacheRefused,
    cache_folder,
    private_folder,
    read_own,
    write_own,
)

FOLDER_VARIABLE = "TCW_CACHE_DIR"
BYTES_VARIABLE = "TCW_CACHE_BYTES"
DEFAULT_BYTES = 1 << 30
MOST_BYTES = 1 << 28
"""A larger file does not count as an entry."""
IN_USE_SECONDS = 900.0
"""A file used within this time stays, whatever the capacity: a process may be about to load it, and
build something else first, which takes up to `tcw.compiler.runtime.build.SECONDS`."""
LOCK_SECONDS = 120.0
"""After this time a process continues without the lock: work may be done twice, but never
incorrectly."""

T = TypeVar("T")


class FileStore:
    """A folder of ours. Once it exceeds `capacity`, the least recently used files are removed,
    except those used in the last `IN_USE_SECONDS`.

    A file's modification time is the time of its last use; every hit updates it.
    """

    def __init__(self, folder: Path, capacity: int = DEFAULT_BYTES) -> None:
        self.folder = folder
        self.capacity = capacity
        self._written = 0
        self._swept = False

    def path(self, kind: str, name: str) -> Path:
        return self.folder / kind / name

    def read(self, kind: str, name: str) -> bytes | None:
        """The content, with the file marked as used; None if there is none, or the file is not
        ours."""
        path = self.path(kind, name)
        try:
            content = read_own(path, MOST_BYTES)
        except OSError:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return content

    def write(self, kind: str, name: str, content: bytes) -> Path:
        """Write a file in one step, replacing an existing one. Raises OSError."""
        path = self.path(kind, name)
        if path.parent.exists() and not path.parent.is_dir():
            _put_aside(path.parent)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            write_own(path, content)
        except IsADirectoryError:
            _put_aside(path)
            write_own(path, content)
        self._grow(len(content))
        return path

    def remove(self, kind: str, name: str) -> None:
        with contextlib.suppress(OSError):
            self.path(kind, name).unlink()

    def write_sealed(self, kind: str, name: str, content: bytes) -> Path:
        """Like `write`, preceded by a seal."""
        return self.write(kind, name, _seal(kind, name, content) + b"\n" + content)

    def read_sealed(self, kind: str, name: str) -> bytes | None:
        """The content that `write_sealed` wrote under this name; anything else is removed, and None
        returned."""
        content = self.read(kind, name)
        if content is None:
            return None
        seal, _, body = content.partition(b"\n")
        if seal == _seal(kind, name, body):
            return body
        self.remove(kind, name)
        return None

    def read_record(self, kind: str, name: str, decoder: msgspec.json.Decoder[T]) -> T | None:
        """Like `read_sealed`, decoded; another version of the record is removed, too."""
        content = self.read_sealed(kind, name)
        try:
            return None if content is None else decoder.decode(content)
        except msgspec.MsgspecError:
            self.remove(kind, name)
            return None

    def newest(self, kind: str, count: int) -> list[str]:
        """The names of the files of a kind, most recently used first."""
        found = heapq.nlargest(count, self._files(kind))
        return [os.path.basename(path) for _, _, path in found]

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Inside, no other process works on `name`, if the file system supports locks."""
        handle = self._lock_file(name)
        try:
            yield
        finally:
            if handle is not None:
                os.close(handle)

    def _lock_file(self, name: str) -> int | None:
        folder = self.folder / "locks"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            # A few files for all names: lock files must never be removed while a process waits.
            path = folder / digest(name.encode())[:2]
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            handle = os.open(path, flags, 0o600)
        except OSError:
            return None
        ends = time.monotonic() + LOCK_SECONDS
        while time.monotonic() < ends:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return handle
            except BlockingIOError:
                time.sleep(0.005)
            except OSError:
                break
        os.close(handle)
        return None

    def _grow(self, count: int) -> None:
        self._written += count
        if not self._swept or self._written > self.capacity // 16:
            self._swept, self._written = True, 0
            self.sweep()

    def sweep(self) -> int:
        """Remove the least recently used files until at most 4/5 of the capacity is used; returns
        the bytes removed."""
        files = sorted(item for kind in self._kinds() for item in self._files(kind))
        now = time.time_ns()
        in_use = range(now - int(IN_USE_SECONDS * 1e9), now + 1)  # future times do not count
        total = sum(size for _, size, _ in files)
        if total <= self.capacity:
            return 0
        removed = 0
        for used, size, path in files:
            if used in in_use:
                continue
            if total - removed <= self.capacity * 4 // 5:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
                removed += size
        return removed

    def _kinds(self) -> list[str]:
        try:
            return sorted(entry.name for entry in os.scandir(self.folder) if entry.is_dir())
        except OSError:
            return []

    def _files(self, kind: str) -> Iterator[tuple[int, int, str]]:
        """The last use, size and path of each file."""
        try:
            entries = list(os.scandir(self.folder / kind))
        except OSError:
            return
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.is_file(follow_symlinks=False) and kind != "locks":
                    found = entry.stat(follow_symlinks=False)
                    yield found.st_mtime_ns, found.st_size, entry.path


def open_store(folder: Path | None = None) -> FileStore:
    """The store in `folder`, else in $TCW_CACHE_DIR, else in our cache folder.

    There is one object per folder and process, so that a process scans the folder once, not once
    per graph. $TCW_CACHE_BYTES limits its size. Raises `CacheRefused` if the folder is not private
    to us.
    """
    named = os.environ.get(FOLDER_VARIABLE, "")
    if folder is None and named:
        folder = Path(named).absolute()
    if folder is None:
        folder = private_folder(cache_folder() / "engine")
    else:
        folder = private_folder(folder, f"set {FOLDER_VARIABLE}")
    return _opened(folder, _capacity())


@functools.cache
def _opened(folder: Path, capacity: int) -> FileStore:
    return FileStore(folder, capacity)


def usable_store() -> tuple[FileStore, str]:
    """`open_store()`, or, if that is refused, a private folder until this process ends; and the
    reason."""
    try:
        return open_store(), ""
    except CacheRefused as refused:
        return FileStore(_temporary()), str(refused)


@cache
def _temporary() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="tcw-"))
    atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: Path, owner: int) -> None:
    """Remove the folder at the end of the process that made it, not of a fork of that process."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _capacity() -> int:
    try:
        return max(int(os.environ.get(BYTES_VARIABLE, "")), 0)
    except ValueError:
        return DEFAULT_BYTES


def _seal(kind: str, name: str, content: bytes) -> bytes:
    return digest(b"\0".join((kind.encode(), name.encode(), content))).encode()


def _put_aside(path: Path) -> None:
    """Move what is in the way of our file to another name in the folder, with its content."""
    path.rename(path.with_name(f".aside-{secrets.token_hex(8)}"))


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()
