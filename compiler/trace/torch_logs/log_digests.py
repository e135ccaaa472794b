"""What a log says, as a digest: the logs of ranks that compiled the same have the same one.

This reads a log many times faster than decoding it. Two logs with one digest have the same
compiles, breaks, graphs, recompiles, generated code and cache lookups, in the same order. What a
process has of its own (its rank, its device's number, addresses, times) does not count.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from tcw.compiler.trace.plain_file import NotPlain
from tcw.compiler.trace.torch_logs.entries import HEADER, LONGEST
from tcw.compiler.trace.torch_logs.log_files import open_log, rank_of
from tcw.compiler.trace.unpacked import UnknownCompression

_ENTRY = re.compile(
    rb'\nV\d{4} [^\n\]]{10,300}\] \{"(?:artifact": \{"name": ")?'
    rb"((?:dynamo_(?:output_graph|start|graph_break_reason|error)|aot_\w+_graph|"
    rb"inductor_(?:post_grad_graph|output_code|collective_schedule)|recompile_reasons|"
    rb'(?:bwd_)?compilation_metrics|(?:aotautograd_cache|fx_graph_cache|fx_graph_bundled_cache)_\w+))"'
)
"""The beginning of an entry that counts."""
_PLACE = re.compile(rb'"(?:compiled_autograd_id|frame_id|frame_compile_id|attempt)": \d{1,10}')
_PAYLOAD = re.compile(rb'"has_payload": "(\w{1,64})"')
_RANK = re.compile(rb'"rank": (\d{1,7})')
_FACTS = re.compile(
    rb'"(?:guard_count|graph_op_count|graph_node_count|has_guarded_code|fail_type|fail_reason|'
    rb'co_name)": (?:"(?:[^"\\]|\\.){0,200}|[\w.]{1,30})'
)
_TOOK = re.compile(
    rb'"(?:duration_us|entire_frame_compile_time_s|inductor_compile_time_s)": '
    rb"(\d{1,15}(?:\.\d{1,9})?)"
)
_OWN = re.compile(
    rb"0x[0-9a-f]{4,16}|\d{9,20}|(?:cuda:|hip:|xpu:|_DeviceGuard\(|set_device\(|stream\(|stream)\d{1,3}"
)
"""What differs between processes that do the same."""
_DEVICES = (b"cuda:", b"hip:", b"xpu:")
_BY_TEXT = frozenset(
    (
        *(b"dynamo_output_graph", b"aot_joint_graph", b"aot_forward_graph", b"aot_backward_graph"),
        *(b"aot_inference_graph", b"inductor_post_grad_graph", b"inductor_output_code"),
        b"inductor_collective_schedule",
    )
)
"""Kinds whose payload counts; torch's checksum stands for it unless it names a device."""
_BY_WORDS = frozenset((b"dynamo_graph_break_reason", b"recompile_reasons", b"dynamo_error"))
"""Kinds whose payload counts without addresses."""
LARGE = 64 << 20
"""Bytes of all logs from which they are looked through in several processes."""
_CHUNK = 32 << 20


STEP = 8
"""Bytes of a step's digest."""


@dataclass(frozen=True)
class LogDigest:
    """What is known of a log without decoding it."""

    digest: bytes
    rank: int | None
    pid: int
    seconds: float
    """Of all its compiles."""
    size: int
    """Bytes, unpacked."""
    steps: bytes
    """A digest of each entry that counts, in order, each of `STEP` bytes."""
    starts: tuple[int, ...]
    """The steps with which a compile begins."""
    pids: tuple[int, ...] = ()
    """The processes that compiled: a program that forks has several."""

    def compiles_until(self, step: int) -> int:
        """How many compiles have begun before this step."""
        return bisect_left(self.starts, step)


class _Look:
    def __init__(self) -> None:
        self.digest = hashlib.blake2b(digest_size=STEP)
        """Of the current entry."""
        self.steps = bytearray()
        self.starts: list[int] = []
        self.rank: int | None = None
        self.pid = 0
        self.pids: dict[int, None] = {}
        self.seconds = 0.0
        self.size = 0

    def entry(self, name: bytes, data: bytes, header: int, end: int) -> None:
        """Take in the entry of this kind whose metadata begin at `header`."""
        stop = data.find(b"\n", header, end)
        stop = end if stop < 0 else stop
        self.digest = hashlib.blake2b(digest_size=STEP)
        if name == b"dynamo_start":
            self.starts.append(len(self.steps) // STEP)
        self._place(name, data, header, stop)
        if name in _BY_TEXT:
            checksum = _PAYLOAD.search(data, header, stop)
            named = any(data.find(device, stop, end) >= 0 for device in _DEVICES)
            if named or checksum is None:
                self.digest.update(_OWN.sub(b"#", data[stop:end]))
            else:
                self.digest.update(checksum[1])
        elif name in _BY_WORDS:
            self.digest.update(_OWN.sub(b"#", data[stop:end]))
        elif name in (b"compilation_metrics", b"bwd_compilation_metrics"):
            for fact in _FACTS.findall(data, header, stop):
                self.digest.update(_OWN.sub(b"#", fact))
            if took := _TOOK.findall(data, header, stop):
                longest = max(map(float, took))
                self.seconds += longest / 1e6 if longest > 1e4 or b"." not in took[0] else longest
        self.steps += self.digest.digest()

    def _place(self, name: bytes, data: bytes, header: int, stop: int) -> None:
        self.digest.update(b"\0" + name)
        for place in _PLACE.findall(data, max(header, stop - 400), stop):
            self.digest.update(place)
        if self.rank is None and (rank := _RANK.search(data, max(header, stop - 400), stop)):
            self.rank = int(rank[1])


def digest_log(file: Path) -> LogDigest:
    """Look through a log, with bounded memory. Raises what `open_log` raises."""
    look = _Look()
    look.rank = rank_of(file.name)
    held = b"\n"
    with open_log(file) as stream:
        while data := stream.read(_CHUNK):
            look.size += len(data)
            held = _entries(look, held + data)
            if len(held) > LONGEST:
                held = b""
    _entries(look, held + b"\nV")
    steps = bytes(look.steps)
    whole = hashlib.blake2b(steps, digest_size=16).digest()
    facts = (whole, look.rank, look.pid, look.seconds, look.size)
    return LogDigest(*facts, steps, tuple(look.starts), tuple(look.pids))


@contextmanager
def digest_logs(files: Sequence[Path]) -> Iterator[Callable[[], dict[Path, LogDigest]]]:
    """The digest of each log, made in forks of this process if they are large: these begin at once,
    and what is yielded waits for them. Logs that cannot be read are left out."""
    sizes = [file.stat().st_size for file in files if file.is_file()]
    workers = min(len(files), os.cpu_count() or 1, 8)

    def named(found: Iterable[LogDigest | None]) -> dict[Path, LogDigest]:
        pairs = zip(files, found, strict=True)
        return {file: digest for file, digest in pairs if digest is not None}

    forks = sys.platform == "linux"  # elsewhere there is no fork, or it is not safe
    if sum(sizes) <= LARGE or workers == 1 or not forks:
        yield lambda: named(map(_digest_or_none, files))
        return
    with ProcessPoolExecutor(workers, get_context("fork")) as pool:
        digests = pool.map(_digest_or_none, files)
        yield lambda: named(digests)


def _digest_or_none(file: Path) -> LogDigest | None:
    try:
        return digest_log(file)
    except (OSError, NotPlain, UnknownCompression, ValueError):
        return None


def _entries(look: _Look, data: bytes) -> bytes:
    """Take in the entries that are complete; returns the rest."""
    last = data.rfind(b"\nV")
    if last < 0:
        return data
    if not look.pid and (first := HEADER.search(data, 0, 1 << 16)):
        look.pid = min(int(first["pid"]), 2**31 - 1)
    for match in _ENTRY.finditer(data, 0, last):
        end = data.find(b"\nV", match.end(), last + 2)
        if match[1] == b"dynamo_start" and (head := HEADER.match(data, match.start() + 1)):
            look.pids[min(int(head["pid"]), 2**31 - 1)] = None
        look.entry(match[1], data, match.start(1), last if end < 0 else end)
    return data[last:]


@dataclass(frozen=True)
class Divergence:
    """A log, and the first of its compiles in which it differs from the usual one."""

    file: Path
    compile: int | None
    """Counted from 1 in the order of the log; None for the usual log, and for one that says the
    same."""


def divergences(logs: Mapping[Path, LogDigest]) -> list[Divergence]:
    """The usual log, then the others: those that part from it earlier come first.

    At each step the usual log does what most of those do that have been usual so far; of equally
    many, what the first in order does.
    """
    usual = list(logs)
    at = 0
    while len(usual) > 1:
        steps = {file: logs[file].steps[at : at + STEP] for file in usual}
        if not any(steps.values()):
            break
        most = Counter(steps.values()).most_common(1)[0][0]
        usual = [file for file in usual if steps[file] == most]
        at += STEP
    if not usual:
        return []
    first = logs[usual[0]]
    found = []
    for place, (file, digest) in enumerate(logs.items()):
        step = _differs(first.steps, digest.steps)
        if file != usual[0]:
            number = None if step is None else max(1, digest.compiles_until(step + 1))
            found.append(
                (len(first.steps) if step is None else step, place, Divergence(file, number))
            )
    return [
        Divergence(usual[0], None),
        *(divergence for _, _, divergence in sorted(found, key=lambda one: one[:2])),
    ]


def _differs(one: bytes, other: bytes) -> int | None:
    """The first step in which two logs differ; None if they do not."""
    if one == other:
        return None
    low, high = 0, min(len(one), len(other)) // STEP
    while low < high:
        middle = (low + high + 1) // 2
        if one[: middle * STEP] == other[: middle * STEP]:
            low = middle
        else:
            high = middle - 1
    return low
