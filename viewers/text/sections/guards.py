"""`--show guards`: the conditions under which each compiled frame can be reused.

First those that a caller can change, one by one; then the others, one line per kind.
`--show guards=all` lists each of those too.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.trace.records import DynamicSize, FrameStart, Guards
from tcw.viewers.kit.lines import BLANK, TextLine, apart, line
from tcw.viewers.kit.table import heading
from tcw.viewers.summary.function_names import FunctionNames
from tcw.viewers.summary.guard_groups import Condition, GuardGroups, guard_groups
from tcw.viewers.tables.guards import (
    GuardRow,
    check_words,
    condition_rows,
    guards_lines,
    kinds_lines,
    single_rows,
)
from tcw.viewers.text.sections import SectionView
from tcw.viewers.words import plural


def section(view: SectionView) -> list[TextLine]:
    records = view.recording.all(Guards)
    if not records:
        return [heading("guards", "none recorded")]
    blocks = []
    last: dict[str, Guards] = {}
    for record in records:
        frame = record.compile_id.partition("/")[0]
        blocks.append(_compile(view, record, last.get(frame)))
        last[frame] = record
    return apart(blocks)


def _compile(view: SectionView, record: Guards, before: Guards | None) -> list[TextLine]:
    """The guards of one compile; for a recompile, those that differ from the compile before it."""
    groups = guard_groups(view.recording, record)
    cost = ""
    if record.check_us is not None:
        cost = f", one cold check {check_words(record.check_us)}"
    starts = view.recording.all(FrameStart)
    wrapped = (one.called for one in starts if one.compile_id == record.compile_id and one.wrapped)
    names = FunctionNames(view.recording)
    function = names.of(record.compile_id, next(wrapped, record.function))
    lines = [
        heading(
            f"guards {record.compile_id} {function}".rstrip(), plural(record.count, "guard") + cost
        )
    ]
    if record.dynamic:
        sizes = ", ".join(_dynamic(size) for size in record.dynamic)
        lines.append(line(("  dynamic    ", "dim"), sizes, hang=13))
    conditions = groups.conditions
    if before is not None and view.detail != "all":
        earlier = guard_groups(view.recording, before)
        known = {(one.name, one.value) for one in earlier.conditions}
        conditions = tuple(one for one in conditions if (one.name, one.value) not in known)
    lines += _rows(view, condition_rows(conditions))
    same = len(groups.conditions) - len(conditions)
    if view.detail == "all":
        lines += _all(view, groups)
    elif before is not None:
        rest = sum(len(group.guards) for group in groups.kinds)
        what = [f"{plural(same, 'condition')} as in {before.compile_id}"]
        what += [f"{plural(rest, 'guard')} by kind"] if rest else []
        lines.append(line((f"  {', and '.join(what)}", "dim")))
    elif groups.kinds:
        lines.append(line("  and guards that hold unless code or modules change:"))
        lines += kinds_lines(groups.kinds, view.width, 2)
    return lines


def _dynamic(size: DynamicSize) -> str:
    """`x.size(0) (s77, at least 2)`."""
    least, most = size.lower, size.upper
    bounds = ""
    if least is not None and most is not None:
        bounds = f", {least} to {most}"
    elif least is not None:
        bounds = f", at least {least}"
    elif most is not None:
        bounds = f", at most {most}"
    return f"{size.name} ({size.symbol}{bounds})"


def _all(view: SectionView, groups: GuardGroups) -> list[TextLine]:
    """Every guard, including flags that were folded into one row."""
    together: list[Condition] = [one for one in groups.conditions if len(one.guards) > 1]
    lines = []
    for one in together:
        lines += [BLANK, line((f"  {one.name}", "dim")), *_rows(view, single_rows(one.guards))]
    for group in groups.kinds:
        head = f"  {len(group.guards)} {group.kind}"
        lines += [BLANK, line((head, "dim"), f"  {group.words}", hang=4)]
        lines += _rows(view, single_rows(group.guards))
    return lines


def _rows(view: SectionView, rows: Sequence[GuardRow]) -> list[TextLine]:
    return [one for lines in guards_lines(rows, view.names, view.width, 2) for one in lines]
