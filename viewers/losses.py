"""What a trace lacks, and what of it is skipped or not shown, in words."""

from __future__ import annotations

from tcw.compiler.trace.losses import Losses
from tcw.compiler.trace.records import LeftOut
from tcw.viewers.recording import Recording
from tcw.viewers.words import bytes_text, number, plural, seconds_text


def losses_sentences(recording: Recording) -> list[str]:
    """One sentence for each kind of loss; none for a complete trace."""
    losses = recording.losses
    unknown = sum(losses.unknown.values())
    damaged = plural(losses.damaged, "damaged line")
    altered = plural(losses.altered, "payload") + " unlike its checksum"
    left = (
        (losses.damaged, damaged + _lines(losses.damaged, losses.first_damaged)),
        (losses.altered, altered + _lines(losses.altered, losses.first_altered)),
        (unknown, _records(unknown, "of a newer tcw")),
        (losses.doubled, _records(losses.doubled, "that are in it twice")),
        (losses.foreign, _records(losses.foreign, "of another recording")),
    )
    what = ", ".join(words for count, words in left if count)
    found = [f"left out of this trace: {what}"] if what else []
    if losses.bytes:
        found[0] += f"; {bytes_text(losses.bytes)} in all"
    if losses.archive:
        found.append("the compressed file is damaged: the rest of it cannot be unpacked")
    if losses.missing:
        there = number(losses.written - losses.missing)
        missing = f"{number(losses.missing)} {'is' if losses.missing == 1 else 'are'} missing"
        found.append(f"this trace has {there} of {_records(losses.written)}: {missing}")
    if losses.added:
        found.append(f"this trace has {_records(losses.added)} that its recording did not write")
    if (bound := recording.last(LeftOut)) is not None:
        found.append(_bounded(recording, bound))
    left_out, shown = len(recording.runs_left_out), len(recording.runs)
    if left_out:
        found.append(
            f"only the first {plural(shown, 'run')} of {number(shown + left_out)} are shown"
        )
    return found


_LACKS = {
    "all": "",
    "outline": "without lowering, fusion, memory, code and times",
    "headlines": "then only their breaks and recompiles",
    "end": "then nothing but the end",
}


def _bounded(recording: Recording, bound: LeftOut) -> str:
    """`to stay under 100 MB: from 3 min 2 s on compiles are recorded without …`."""
    first = recording.all(LeftOut)[0]
    levels = dict.fromkeys(_LACKS[left_out.level] for left_out in recording.all(LeftOut))
    less = ", ".join(filter(None, levels)) or "without records that would not fit"
    count = sum(bound.records.values())
    counted = f" ({_records(count)} left out)" if count else ""
    size = bytes_text(bound.size)
    return f"to stay under {size}, compiles from {seconds_text(first.at)} on are {less}{counted}"


def _lines(count: int, first: list[int]) -> str:
    """` (lines 4, 17 …)`: the first of them."""
    if not first:
        return ""
    word = "line" if len(first) == 1 else "lines"
    more = " …" if count > len(first) else ""
    return f" ({word} {', '.join(map(str, first))}{more})"


def losses_short(losses: Losses, runs: int) -> str:
    """The same in a few words, for the edge of the screen; `runs` are not shown."""
    unreadable = losses.damaged + losses.altered + sum(losses.unknown.values())
    counts = (
        (unreadable, f"{plural(unreadable, 'line')} unreadable"),
        (losses.missing, f"{number(losses.missing)} missing"),
        (losses.doubled, f"{number(losses.doubled)} twice"),
        (losses.foreign + losses.added, f"{number(losses.foreign + losses.added)} foreign"),
        (runs, f"{plural(runs, 'run')} not shown"),
    )
    return ", ".join(words for count, words in counts if count)


def _records(count: int, rest: str = "") -> str:
    return f"{plural(count, 'record')} {rest}".rstrip()
