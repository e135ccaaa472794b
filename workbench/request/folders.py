"""A folder of traces, as `tcw run` and TCW_RECORD write it, or of torch logs (`TORCH_TRACE`): one
file a process."""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcw.compiler.trace.output_file import is_recording
from tcw.compiler.trace.plain_file import NotPlain
from tcw.compiler.trace.reader import TraceError
from tcw.compiler.trace.torch_logs.log_digests import (
    Divergence,
    LogDigest,
    digest_log,
    digest_logs,
    divergences,
)
from tcw.compiler.trace.torch_logs.log_files import logs, of_process, process_of
from tcw.compiler.trace.unpacked import UnknownCompression
from tcw.viewers.recording import Recording
from tcw.viewers.text.lines import write
from tcw.viewers.text.processes import Process, Several, Unread, in_order, report
from tcw.workbench.request.files import TRACE, is_log, reading
from tcw.workbench.request.messages import room, say

DECODED = 40 << 20
"""Bytes of logs that say different things from which only some of them are decoded: those that say
what most do, and those that are the first to do something else."""

if TYPE_CHECKING:
    from tcw.viewers.json_folder import FolderReport

NOTES = "not-recorded-*.txt"
"""Left by `tcw.start_up` where a process could not be recorded."""
_NOTE_BYTES = 2000


def traces(path: Path) -> list[Path]:
    """The traces in a folder by name, then the logs by rank. If there is only one log, and for a
    log itself: the processes that wrote it."""
    paths = [path]
    if path.is_dir():
        own = sorted(one for one in path.iterdir() if one.suffix == TRACE and one.is_file())
        paths = [*own, *logs(path)]
    return written_by(paths[0]) if len(paths) == 1 and is_log(paths[0]) else paths


def written_by(log: Path) -> list[Path]:
    """A log, or if several processes wrote it (a program that forks), each of them."""
    if process_of(log)[1] is not None:
        return [log]
    try:
        found = log.stat()
        pids = _pids(log, found.st_size, found.st_mtime_ns)
    except (OSError, NotPlain, UnknownCompression, ValueError):
        return [log]
    return [of_process(log, pid) for pid in pids] if len(pids) > 1 else [log]


@functools.lru_cache(maxsize=16)
def _pids(log: Path, _size: int, _changed: int) -> tuple[int, ...]:
    """Cached by the log's size and time, since a command asks several times."""
    return digest_log(log).pids


def only_trace(folder: Path) -> Path:
    """The trace in a folder that has one, or a log of one process. Raises `click.UsageError` with
    the choice otherwise."""
    with reading(folder):
        paths = traces(folder)
    if not paths:
        raise click.UsageError(
            f"{folder} is a folder without traces (*{TRACE}) or torch logs (*.log)"
        )
    if len(paths) > 1:
        names = "\n".join(f"  {path}" for path in paths)
        raise click.UsageError(
            f"{folder} has {len(paths)} traces, one a process; name one of them:\n{names}"
        )
    return paths[0]


def trace_in(path: Path) -> Path:
    """The file itself; of a folder, its only trace. Raises `click.UsageError` if it has several."""
    return only_trace(path) if path.is_dir() or is_log(path) else path


def tell(folder: Path, stream: str, show: Sequence[str] = ()) -> int:
    """Write the verdict over all processes to `stdout` or `stderr`, with these sections of each.
    Returns how many compiled."""
    several = processes_in(folder)
    if several.processes:
        target = sys.stdout if stream == "stdout" else sys.stderr
        width, height = room()
        write(report(several, width, height, str(folder), show), target, width)
    return len(several.processes) + len(several.unread)


def processes_in(folder: Path) -> Several:
    """The processes that compiled, by rank, then by start; maybe none. Those that could not be
    recorded or read are named on stderr."""
    processes, unread = _read(traces(folder))
    for note in sorted(folder.glob(NOTES)):
        with contextlib.suppress(OSError):
            words = note.read_text(encoding="utf-8", errors="replace")[:_NOTE_BYTES].strip()
            say(f"process {note.stem.rpartition('-')[2]} was not recorded: {words}")
    return Several(in_order(processes), unread)


def several_in(folder: Path) -> Several:
    """The same; raises `click.UsageError` if there is nothing in it."""
    several = processes_in(folder)
    if not several.processes:
        only_trace(folder)
        raise click.UsageError(f"{folder} has no trace that can be read")
    return several


def following(folder: Path) -> Callable[[], Several | None]:
    """Reads the folder again: returns its processes if a trace has come, grown or ended since it
    was last read, else None. While traces only grow, it spends a tenth of the time on that."""
    known = _state(folder)
    not_before = 0.0

    def look() -> Several | None:
        nonlocal known, not_before
        began = time.monotonic()
        now = _state(folder)
        if now == known or (began < not_before and _files(now) == _files(known)):
            return None
        known = now
        processes, unread = _read(traces(folder))
        not_before = began + 10 * (time.monotonic() - began)
        return Several(in_order(processes), unread) if processes else None

    return look


_State = tuple[tuple[Path, bool, int], ...]
"""Of each trace: its file, whether a process still writes it, its bytes."""


def _state(folder: Path) -> _State:
    found = []
    with contextlib.suppress(OSError):
        for file in traces(folder):
            with contextlib.suppress(OSError):
                found.append((file, is_recording(file), process_of(file)[0].stat().st_size))
    return tuple(found)


def _files(state: _State) -> list[tuple[Path, bool]]:
    return [(file, running) for file, running, _ in state]


def json_of(folder: Path) -> FolderReport:
    """The same as the object of `--json`. Raises `click.UsageError` if there is nothing in it."""
    from tcw.viewers.json_folder import folder_report

    return folder_report(several_in(folder))


def markdown_of(folder: Path) -> str:
    """The same verdict as Markdown. Raises `click.UsageError` if there is nothing in it."""
    from tcw.viewers.markdown.report import processes_markdown

    return processes_markdown(several_in(folder))


def has_several(path: Path) -> bool:
    """Whether it is a folder with other than one trace, or a log of several processes. Raises
    `click.UsageError` if it cannot be read."""
    with reading(path):
        return (path.is_dir() or is_log(path)) and len(traces(path)) != 1


def _read(files: list[Path]) -> tuple[list[Process], list[Unread]]:
    """What can be read; of logs that say the same, one is decoded, and of very many that differ,
    some."""
    logs = [file for file in files if file.suffix != TRACE and process_of(file)[1] is None]
    gc.disable()  # records live as long as this process: collecting takes longer than decoding
    try:
        with digest_logs(logs) as looked_at:
            known = dict(_opened(logs[:1]))
            seen = looked_at()
        files, seen = _each_process(files, seen)
        first: dict[bytes, Path] = {}
        for file, look in seen.items():
            first.setdefault(look.digest, file)
        one_of_each = set(first.values())
        apart = [divergence for divergence in divergences(seen) if divergence.file in one_of_each]
        left = _left_unread(apart, seen, known)
        tried = [*(file for file in files if file not in seen), *first.values()]
        known |= dict(_opened(path for path in tried if path not in known and path not in left))
        processes, unread = [], []
        for file in files:
            glance = seen.get(file)
            same = file if glance is None else first[glance.digest]
            if glance is not None and same in left:
                unread.append(Unread(file, glance, left[same], apart[0].file))
            elif same in known:
                running = file.suffix == TRACE and is_recording(file)
                processes.append(Process(file, known[same], running, glance))
        return processes, unread
    finally:
        gc.freeze()
        gc.enable()


def _each_process(
    files: list[Path], seen: dict[Path, LogDigest]
) -> tuple[list[Path], dict[Path, LogDigest]]:
    """The files, of logs that several processes wrote each of these; and the glances at the
    others."""
    several = {file: look.pids for file, look in seen.items() if len(look.pids) > 1}
    found: list[Path] = []
    for file in files:
        found += [of_process(file, pid) for pid in several[file]] if file in several else [file]
    return found, {file: look for file, look in seen.items() if file not in several}


def _left_unread(
    apart: Sequence[Divergence], seen: Mapping[Path, LogDigest], known: Collection[Path]
) -> dict[Path, int | None]:
    """The logs that are not decoded, with the first compile that differs from the usual log's:
    those beyond `DECODED` bytes, but never the usual one and the first that parts from it."""
    left: dict[Path, int | None] = {}
    size = 0
    for number, divergence in enumerate(apart):
        size += seen[divergence.file].size
        if number > 1 and size > DECODED and divergence.file not in known:
            left[divergence.file] = divergence.compile
    return left


def _opened(files: Iterable[Path]) -> Iterator[tuple[Path, Recording]]:
    """The readable files; for the others the reason is printed."""
    for file in files:
        try:
            yield file, Recording.open(file)
        except (TraceError, OSError) as error:
            say(f"{file}: {error}")
