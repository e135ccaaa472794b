"""The logs of a folder: one a process, perhaps in several parts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import BinaryIO, cast

from tcw.compiler.trace.plain_file import NotPlain, open_plain
from tcw.compiler.trace.unpacked import Joined, UnknownCompression, unpacked

_NAME = re.compile(r"^(?P<name>.+?\.log)(?:\.(?P<part>\d{1,6}))?(?P<packed>\.gz|\.zst)?$")
_RANK = re.compile(r"rank_(\d{1,7})(?:_|\.)")
_PROCESS = re.compile(r"^(?P<log>.+)@(?P<pid>\d{1,10})$")
HEAD = 1 << 16


def rank_of(name: str) -> int | None:
    """The rank in the name of a log, as torch writes it; None without."""
    match = _RANK.search(name)
    return int(match[1]) if match else None


def of_process(log: Path, pid: int) -> Path:
    """How one of the processes is named that wrote a log: `train.log@4711`."""
    return log.with_name(f"{log.name}@{pid}")


def process_of(path: Path) -> tuple[Path, int | None]:
    """The file, and the process that is meant; None without."""
    match = _PROCESS.match(path.name)
    if match is None or path.exists():
        return path, None
    return path.with_name(match["log"]), int(match["pid"])


def looks_like_log(file: Path) -> bool:
    """Whether a file is named like a torch log (`….log`, `….log.1`, `….log.gz`)."""
    return _NAME.match(file.name) is not None


def logs(folder: Path) -> list[Path]:
    """The logs in a folder, by rank and name; of one in several parts the last. Raises OSError."""
    found: dict[str, Path] = {}
    for file in folder.iterdir():
        match = _NAME.match(file.name)
        if match is None or not file.is_file():
            continue
        known = found.get(match["name"])
        if known is None or _age(file) < _age(known):
            found[match["name"]] = file
    return sorted(found.values(), key=_order)


def _order(file: Path) -> tuple[int, str]:
    rank = rank_of(file.name)
    return (10**9 if rank is None else rank, file.name)


def _age(file: Path) -> tuple[int, bool]:
    """Rotated parts have a number: the higher, the older."""
    match = _NAME.match(file.name)
    part = int(match["part"]) if match and match["part"] else 0
    return part, bool(match and match["packed"])


def parts(file: Path) -> list[Path]:
    """The parts of a rotated log, oldest first; the file alone if it was not rotated."""
    match = _NAME.match(file.name)
    if match is None:
        return [file]
    ages: dict[int, Path] = {}
    try:
        for other in file.parent.iterdir():
            found = _NAME.match(other.name)
            if found is not None and found["name"] == match["name"] and other.is_file():
                part = _age(other)[0]
                if part not in ages or not found["packed"]:
                    ages[part] = other
    except OSError:
        return [file]
    own = _age(file)[0]
    ages[own] = file
    return [ages[part] for part in sorted(ages, reverse=True) if part >= own]


def open_log(file: Path) -> BinaryIO:
    """The bytes of a log, unpacked, all its parts joined. Raises `OSError`, `NotPlain` and
    `UnknownCompression`."""
    streams: list[BinaryIO] = []
    file, _ = process_of(file)
    try:
        for part in parts(file):
            streams.append(unpacked(open_plain(part)))
    except BaseException:
        for stream in streams:
            stream.close()
        raise
    return streams[0] if len(streams) == 1 else cast(BinaryIO, Joined(streams))


def head_of(file: Path) -> bytes:
    """The first bytes of a file, unpacked; b"" if it cannot be read."""
    file, _ = process_of(file)
    try:
        with unpacked(open_plain(file)) as stream:
            return stream.read(HEAD) or b""
    except (OSError, NotPlain, UnknownCompression, ValueError):
        return b""
