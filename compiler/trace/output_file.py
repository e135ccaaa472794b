"""Files written where the user says: new ones, or our own of the same kind, never anyone else's.

No link is followed, no pipe or device is opened, and a file appears complete or not at all.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tcw.compiler.trace import plain_file
from tcw.compiler.trace.records import KINDS

SAFELY = plain_file.SAFELY | os.O_NOFOLLOW
"""Flags for opening a file that someone else may have put there."""
_HEAD_BYTES = 4096


class OutputRefused(OSError):
    """The file may not be written; the message says why, without its name."""


@dataclass(frozen=True)
class OutputKind:
    """A kind of our files that a later run may overwrite."""

    words: str
    """`trace`"""
    begins: Callable[[bytes], bool]
    """Whether a file that begins with these bytes is one of them."""
    grows: bool = False
    """Whether it is written in place during the run."""


_RECORD = re.compile(rb'\{"record":"([a-z-]+)"[,}]')
_TAGS = frozenset(str(one.__struct_config__.tag).encode() for one in KINDS)


def _begins_a_trace(head: bytes) -> bool:
    match = _RECORD.match(head)
    return match is not None and match[1] in _TAGS


TRACE = OutputKind("trace", _begins_a_trace, grows=True)


def check(path: Path, kind: OutputKind | None = None) -> None:
    """Raise `OutputRefused` unless `path` can be created, or is an empty file or one of this
    kind."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        _check_folder(path.parent)
        return
    except OSError as error:
        raise OutputRefused(words(error)) from error
    except ValueError as error:
        raise OutputRefused("that is not a file name") from error
    refuse_special(found.st_mode)
    if kind is None:
        raise OutputRefused("it already exists; name another file")
    if not kind.grows:
        _check_folder(path.parent)
    elif not os.access(path, os.W_OK):
        raise OutputRefused("it exists and is not writable")
    try:
        descriptor = os.open(path, os.O_RDONLY | SAFELY)
    except OSError as error:
        raise OutputRefused(words(error)) from error
    try:
        check_open(descriptor, kind)
    finally:
        os.close(descriptor)


def check_open(descriptor: int, kind: OutputKind) -> None:
    """The same for a file opened for reading."""
    refuse_special(os.fstat(descriptor).st_mode)
    head = os.pread(descriptor, _HEAD_BYTES, 0)
    if head and not kind.begins(head):
        raise OutputRefused(f"it exists and is not a {kind.words}: it was left unchanged")


def refuse_special(mode: int) -> None:
    """Raise `OutputRefused` for what is not a regular file."""
    if stat.S_ISLNK(mode):
        raise OutputRefused("it is a symbolic link, which is not followed; name the file itself")
    if what := plain_file.special(mode):
        raise OutputRefused(f"it is {what}, not a file")


def is_recording(file: Path) -> bool:
    """Whether a process still records into this trace, by its lock. A log of torch's has none, nor
    has a trace on a file system or a system without locks."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        descriptor = os.open(file, os.O_RDONLY | SAFELY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def write(path: Path, content: bytes, kind: OutputKind | None = None) -> None:
    """Write a whole file in one step: a new one, or over one of ours of this kind.

    Raises `OutputRefused` like `check`, and OSError if writing fails.
    """
    check(path, kind)
    temporary = path.with_name(f".tcw-{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFELY, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        if kind is not None and os.path.lexists(path):
            check(path, kind)  # again, because writing may have taken a while
            os.replace(temporary, path)
        else:
            _place(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _place(temporary: Path, path: Path) -> None:
    """Give the file its name, unless someone else has taken it."""
    try:
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links: take the name, then fill it
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFELY))
            os.replace(temporary, path)
    except FileExistsError as error:
        raise OutputRefused("it already exists; name another file") from error


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise OutputRefused(f"no folder {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputRefused(f"the folder {folder} is not writable")


def words(error: OSError) -> str:
    """What the error says, without the file's name."""
    return error.strerror or str(error)


def safe_name(name: str, otherwise: str, gap: str = "_") -> str:
    """A part of a file's name, of at most 80 characters, in which `gap` stands for each that is no
    letter, digit, `_`, `.` or `-`; `otherwise` if nothing is left."""
    return re.sub(r"[^\w.-]", gap, name).lstrip(".-")[:80].rstrip(gap) or otherwise
