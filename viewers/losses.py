"""What a trace lacks and what was skipped, in words: its figures are incomplete."""

from __future__ import annotations

from compiler.trace.reader import Losses
from viewers.words import number, plural


def losses_sentences(losses: Losses) -> list[str]:
    """One sentence for each kind of loss; none for a complete trace."""
    unknown = sum(losses.unknown.values())
    left = (
        (losses.damaged, plural(losses.damaged, "damaged line")),
        (unknown, _records(unknown, "of a newer tcw")),
        (losses.doubled, _records(losses.doubled, "that are in it twice")),
        (losses.foreign, _records(losses.foreign, "of another recording")),
    )
    what = ", ".join(words for count, words in left if count)
    found = [f"left out of this trace: {what}"] if what else []
    if losses.missing:
        there = number(losses.written - losses.missing)
        missing = f"{number(losses.missing)} {'is' if losses.missing == 1 else 'are'} missing"
        found.append(f"this trace has {there} of {_records(losses.written)}: {missing}")
    if losses.added:
        found.append(f"this trace has {_records(losses.added)} that its recording did not write")
    return found


def losses_short(losses: Losses) -> str:
    """The same in a few words, for the edge of the screen."""
    unreadable = losses.damaged + sum(losses.unknown.values())
    counts = (
        (unreadable, f"{plural(unreadable, 'line')} unreadable"),
        (losses.missing, f"{number(losses.missing)} missing"),
        (losses.doubled, f"{number(losses.doubled)} twice"),
        (losses.foreign + losses.added, f"{number(losses.foreign + losses.added)} foreign"),
    )
    return ", ".join(words for count, words in counts if count)


def _records(count: int, rest: str = "") -> str:
    return f"{plural(count, 'record')} {rest}".rstrip()
