"""A file that is made anew: nothing is overwritten, and no symbolic link is followed."""

from __future__ import annotations

import os
from pathlib import Path


def create_new(path: Path, text: str) -> None:
    """Create `path` with this text, as UTF-8, with the permissions that the umask leaves.

    Raises FileExistsError where anything has that name, a dangling link too, and OSError where the
    file cannot be written; then none is left behind.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    data = text.encode("utf-8", "surrogateescape")
    with open(os.open(path, flags, 0o666), "wb") as stream:
        try:
            stream.write(data)
            stream.flush()
        except OSError:
            os.unlink(path)
            raise
