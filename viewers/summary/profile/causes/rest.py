"""What is left without a deeper cause: what it was, what it became, and how near to the ceiling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compiler.trace.records import EagerOperation
from viewers.summary.profile.causes.cause import Cause
from viewers.summary.profile.causes.suggestions import kept_apart, other_engine
from viewers.summary.profile.causes.words import bare, is_product, named, operations_text
from viewers.summary.profile.index import Index
from viewers.summary.profile.rows import RegionRow
from viewers.words import bytes_text, percent, plural


def slower(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    for row in rows:
        if row.standing != "lost":
            continue
        yield Cause(
            kind="slower",
            title=f"{row.label} is slower compiled: {_sides(row)}",
            seconds=row.difference,
            noise=row.noise,
            regions=tuple(region.id for region in row.regions),
            place=row.place,
            notes=_notes(row),
            suggestions=(*kept_apart(index, row), *other_engine(index)),
            refs=row.refs,
        )


def fused(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    for row in rows:
        if row.standing != "won" or not row.steps:
            continue
        saved = _saved(row)
        yield Cause(
            kind="fused",
            title=f"{row.label}: {_sides(row)}",
            seconds=row.difference,
            noise=row.noise,
            regions=tuple(region.id for region in row.regions),
            place=row.place,
            notes=((saved, *_notes(row)) if saved else _notes(row)),
            refs=row.refs,
        )


def _sides(row: RegionRow) -> str:
    """`5 eager operations became one kernel`."""
    launched = [one for one in row.operations if one.launches]
    made = sum(step.kind == "kernel" for step in row.steps)
    calls = len(row.steps) - made
    became = " and ".join(
        filter(
            None,
            [
                plural(made, "kernel") if made else "",
                plural(calls, "library call") if calls else "",
            ],
        )
    )
    if launched and all(is_product(one.operation) for one in launched) and not made:
        theirs, ours = {bare(one.operation) for one in launched}, {bare(s.name) for s in row.steps}
        return "the same product" if theirs == ours else "the product of another library"
    if launched and not made and _names(launched) == sorted(bare(one.name) for one in row.steps):
        return "the same call" if calls == 1 else f"the same {calls} calls"
    return f"{plural(len(launched), 'eager operation')} became {became or 'nothing'}"


def _names(operations: Sequence[EagerOperation]) -> list[str]:
    return sorted(bare(one.operation) for one in operations)


def _saved(row: RegionRow) -> str:
    before, after = row.eager_work.bytes, row.compiled_work.bytes
    if before is None or after is None or after >= before:
        return ""
    return f"{bytes_text(before - after)} less moved ({bytes_text(before)} → {bytes_text(after)})"


def _notes(row: RegionRow) -> tuple[str, ...]:
    found = [f"{operations_text(row.operations)} → {named(step.name for step in row.steps)}"]
    shares = [
        f"{side} {percent(work.share)}"
        for side, work in (("eager", row.eager_work), ("compiled", row.compiled_work))
        if work.share is not None
    ]
    if shares:
        found.append(f"share of the roofline: {', '.join(shares)}")
    if row.same_calls:
        found.append("the same calls on both sides: less than 5% is taken for noise")
    return tuple(found)
