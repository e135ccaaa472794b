"""`--show collectives`: what ranks send to each other: DDP's buckets, the operations in graphs and
what overlaps with them, those outside graphs."""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.trace.records import DdpBucket, DdpBuckets
from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.kit.table import Cell, heading, table
from tcw.viewers.recording import Recording
from tcw.viewers.summary.place import Place
from tcw.viewers.summary.ranks.collectives import Started, started
from tcw.viewers.text.sections import SectionView
from tcw.viewers.words import NOT_IN_LOG, bytes_text, listed, plural

_UNSEEN = f"outside graphs and by DDP {NOT_IN_LOG}"
NOT_SCHEDULED = "not scheduled by Inductor: overlap unknown"


def collectives(view: SectionView) -> list[TextLine]:
    found = started(view.recording)
    buckets = view.recording.all(DdpBuckets)
    log = view.recording.lacks("calls")
    if not found and not buckets:
        return [heading("collectives", f"none in graphs, {_UNSEEN}" if log else "none recorded")]
    lines = [heading("collectives", counted(found))]
    for record in buckets:
        lines += _buckets(view, record)
    graphs = [one for one in found if one.where == "graph"]
    for graph in dict.fromkeys(one.graph for one in graphs):
        lines.append(line(f"  {graph}"))
        rows: list[list[Cell]] = [
            [one.words, (_place(view, one.place), "dim"), overlap(one, view.recording)]
            for one in graphs
            if one.graph == graph
        ]
        lines += table(rows, "llf", view.width, 4)
    lines += _outside(view, [one for one in found if one.where == "eager"])
    if log:
        lines.append(line(f"  {_UNSEEN}"))
    return lines


def counted(found: Sequence[Started]) -> str:
    """`2 in graphs, 19 outside`; of DDP's there is one a bucket."""
    places = {"graph": "in graphs", "ddp": "by DDP", "eager": "outside"}
    counts: dict[str, int] = {}
    for one in found:
        counts[one.where] = counts.get(one.where, 0) + (1 if one.where != "eager" else 0)
    likes: dict[object, int] = {}
    for one in found:
        if one.where == "eager":
            likes[one.key, one.place] = max(likes.get((one.key, one.place), 0), one.count)
    if likes:
        counts["eager"] = sum(likes.values())
    parts = [f"{counts[where]:,} {words}" for where, words in places.items() if counts.get(where)]
    return ", ".join(parts)


def overlap(one: Started, recording: Recording) -> str:
    """What runs between the start of an operation and the wait for it."""
    wait = one.wait
    if wait is None:
        return f"overlap {NOT_IN_LOG}" if recording.lacks("run time") else NOT_SCHEDULED
    if not wait.meanwhile:
        return "waited for at once: nothing overlaps"
    moved = f" ({bytes_text(wait.meanwhile_bytes)})" if wait.meanwhile_bytes else ""
    return f"overlaps with {plural(wait.meanwhile, 'kernel')}{moved}"


def _buckets(view: SectionView, record: DdpBuckets) -> list[TextLine]:
    count = len(record.buckets)
    if count == 1:
        why = f"DDP: one bucket, the graph is not cut: {_size(record.buckets[0])}"
        return [line(f"  {record.compile_id}  {why}", hang=4)]
    limits = (
        f"full from {bytes_text(record.bucket_bytes)} on (bucket_cap_mb), "
        f"the first from {bytes_text(record.first_bucket_bytes)}"
    )
    head = f"  {record.compile_id}  DDP: {count} buckets, in the order of the backward; {limits}"
    rows = [_bucket(view, bucket) for bucket in record.buckets]
    return [line(head, hang=4), *table(rows, "rlfl", view.width, 4)]


def _bucket(view: SectionView, bucket: DdpBucket) -> list[Cell]:
    place = bucket.first
    where = view.names.place(place.file, place.line) if place is not None else ""
    more = ""
    if bucket.extended:
        more = f", {bytes_text(bucket.extended_bytes)} over: nothing left it before"
    names = listed(list(reversed(bucket.parameters)), 2)
    return [
        str(bucket.number), _size(bucket) + more, names or "no parameters", (where, "dim"),
    ]  # fmt: skip


def _size(bucket: DdpBucket) -> str:
    full = "full" if bucket.bytes >= bucket.limit else f"of {bytes_text(bucket.limit)}"
    return f"{bytes_text(bucket.bytes)}, {full}"


def _outside(view: SectionView, found: Sequence[Started]) -> list[TextLine]:
    """One row for operations that are alike, with the recorded number of runs."""
    likes: dict[object, tuple[Started, int]] = {}
    for one in found:
        likes[one.key, one.place] = (
            one,
            max(one.count, likes.get((one.key, one.place), (one, 0))[1]),
        )
    if not likes:
        return []
    rows: list[list[Cell]] = [
        [f"{count}x", one.words, (_place(view, one.place), "dim")] for one, count in likes.values()
    ]
    return [line("  outside graphs"), *table(rows, "rlf", view.width, 4)]


def _place(view: SectionView, place: Place | None) -> str:
    return view.names.place(place.file, place.line) if place is not None else ""
