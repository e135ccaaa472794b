"""The guards of one compile, by kind."""

from __future__ import annotations

from compiler.trace import refs
from compiler.trace.records import Guards
from viewers.panes.rows import Content, Row, empty, pad, text
from viewers.panes.view import View
from viewers.places import cut
from viewers.words import seconds_text


def content(view: View, width: int) -> Content:
    """The guards of one compile, by kind with counts; `⏎` shows the single ones."""
    record = next(
        (g for g in reversed(view.recording.all(Guards)) if g.compile_id == view.compile_id), None
    )
    name = view.compile_id
    if record is None:
        return Content("guards", name, rows=empty(f"no guards of {name} were recorded"))
    kinds: dict[str, list[int]] = {}
    for index, guard in enumerate(record.guards):
        kinds.setdefault(guard.kind, []).append(index)
    rows: list[Row] = []
    column = min(32, max(14, width // 2))
    for kind, members in sorted(kinds.items(), key=lambda item: -len(item[1])):
        key = f"guards:{view.compile_id}:{kind}"
        opened = key in view.unfolded
        named = [record.guards[i].name for i in members if record.guards[i].name]
        example = named[0] if named else "global state"
        room = width - column - 9
        shown = example if len(example) <= room else "…" + example[-(room - 1) :]
        rows.append(
            Row(
                gutter=((f"{len(members):>4} ", "strong"), ("▾ " if opened else "▸ ", "faint")),
                body=(text(pad(cut(kind.lower(), column - 1), column)), text(shown, "dim")),
                key=key,
                opens=f"fold:{key}",
            )
        )
        if opened:
            rows.extend(_guard(view, record, index, width) for index in members)
    facts = [str(len(record.guards))]
    if record.check_us is not None:
        facts.append(f"{seconds_text(record.check_us / 1e6)} a check")
    return Content("guards", name, ((" · ".join(facts), "dim"),), rows)


def _guard(view: View, record: Guards, index: int, width: int) -> Row:
    guard = record.guards[index]
    place = guard.location
    line = str(place.line) if place else ""
    value = f" = {guard.value}" if guard.value else ""
    code = guard.code[0] if guard.code and not value else ""
    return Row(
        gutter=((f"{line:>6}   ", "faint"),),
        body=(
            text(guard.name or guard.source or "global state"),
            text(value, "accent"),
            text(f"  {code}" if code else "", "faint"),
        ),
        ref=refs.source(place.file, place.line) if place else "",
        key=f"guard:{record.compile_id}:{index}",
        copies="\n".join(guard.code),
    )
