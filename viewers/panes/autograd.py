"""What the forward keeps for the backward, what is recomputed, and why."""

from __future__ import annotations

from tcw.compiler.protocol.decision import RECOMPUTE, SAVE, split_id
from tcw.compiler.trace import refs
from tcw.compiler.trace.records import Decided, Partition, SavedValue
from tcw.compiler.trace.refs import Ref
from tcw.viewers.kit.cells import cut, pad, pad_left, wrap
from tcw.viewers.kit.spans import Line, Span, text
from tcw.viewers.kit.table import Cell
from tcw.viewers.labels import line_text
from tcw.viewers.panes.rows import Content, Row, empty, text_row
from tcw.viewers.panes.targets import ToDecision
from tcw.viewers.panes.view import View
from tcw.viewers.summary.memory_plans import by_choice, partition_words
from tcw.viewers.tables.kernel_lines import ROLES, saved_lines
from tcw.viewers.words import bytes_text, plural

CHOICES = {SAVE: "saved", RECOMPUTE: "recomputed"}


def split_of(view: View) -> Partition | None:
    """How the joint graph of this compile was cut; None if it has no backward."""
    partitions = reversed(view.recording.all(Partition))
    return next((split for split in partitions if split.compile_id == view.compile_id), None)


def save_decisions(view: View) -> dict[str, Decided]:
    """Node -> the last choice in this compile between saving and recomputing it."""
    taken = view.recording.decisions.taken(SAVE, f"{view.compile_id}/joint")
    return {split_id(decided.id)[2][0]: decided for decided in taken}


def _id(view: View, split: Partition, value: SavedValue, decided: dict[str, Decided]) -> str:
    """The decision about a value: the recorded one, else that of an override."""
    if value.choice == "input":
        return ""
    if value.node in decided:
        return decided[value.node].id
    settings = view.recording.settings
    engine = view.engine or (settings.engine if settings is not None else "")
    return f"{engine}/{split.joint}/{SAVE}/{value.node}" if engine else ""


def first(view: View) -> Ref:
    """The value under the cursor at first."""
    split = split_of(view)
    values = by_choice(split) if split is not None else []
    return refs.node(split.forward, values[0].node) if split is not None and values else ""


def reason(view: View, width: int) -> list[Row]:
    """The selected value, with the full reason why it is kept or recomputed."""
    split = split_of(view)
    values = split.values if split is not None else ()
    decided = save_decisions(view)
    for value in values:
        if split is not None and refs.node(split.forward, value.node) == view.ref:
            title = f"{value.node}   {value.choice}   {bytes_text(value.bytes)}"
            lines = wrap(value.reason, width - 2)[:2]
            id = text(_id(view, split, value, decided), "dim")
            return [
                text_row((title, "strong"), right=(id, (" ", "text")), heading=True),
                *(text_row((line, "dim")) for line in [*lines, *[""] * (2 - len(lines))]),
            ]
    return []


def content(view: View, width: int) -> Content:
    split = split_of(view)
    name = view.compile_id
    if split is None:
        return _deciding(view, width)
    values, decided = by_choice(split), save_decisions(view)
    lines = saved_lines(
        values,
        view.derived.names,
        width - 4,
        0,
        main=view.derived.main_file,
        reasons={node: _why(answer) for node, answer in decided.items() if _own(answer)},
    )
    rows = [
        _value(view, split, value, decided, line.spans)
        for value, line in zip(values, lines, strict=True)
    ]
    return Content("autograd", name, ((partition_words(split), "dim"),), rows)


def _value(
    view: View, split: Partition, value: SavedValue, decided: dict[str, Decided], body: Line
) -> Row:
    id = _id(view, split, value, decided)
    return Row(
        gutter=((" ", "text"), _mark(decided.get(value.node))),
        body=body,
        ref=refs.node(split.forward, value.node),
        key=f"saved:{value.node}",
        copies=id,
        decision=id,
    )


def _own(answer: Decided | None) -> bool:
    """Whether the reader chose otherwise."""
    return answer is not None and bool(answer.overridden or answer.refused)


def _mark(answer: Decided | None) -> Span:
    return ("* ", "warn") if _own(answer) else ("  ", "text")


def _why(answer: Decided) -> Cell:
    if answer.refused:
        return (f"{answer.wanted} refused: {answer.refused}", "warn")
    return (f"your choice: {answer.reason}".removesuffix(": "), "warn")


def _deciding(view: View, width: int) -> Content:
    """The questions and decisions so far, before the joint graph is cut."""
    name, decided = view.compile_id, save_decisions(view)
    waits = view.asked
    graph = f"{name}/joint"
    told = {one.id: one for one in decided.values()}
    for one in view.recording.decisions.asked.values():
        if one.kind == SAVE and one.graph == graph:
            told.setdefault(one.id, one)
    if waits is not None and waits.id in told:
        told[waits.id] = told.pop(waits.id)
    if not told:
        missing = view.not_reached("autograd")
        whose = name or "this recording"
        why = f"what {whose} keeps for its backward" if missing else f"{whose} has no backward"
        return Content("autograd", name, rows=empty(width, why, missing))
    at = waits.id if waits is not None and waits.id in told else ""
    rows = [_decided(view, one, one.id == at) for one in told.values()]
    words = f"{plural(len(told) - bool(at), 'value')} decided, the graph is not cut yet"
    start = str(ToDecision(at)) if at else ""
    return Content("autograd", name, ((words, "dim"),), rows, start, tracks=True)


def _decided(view: View, decided: Decided, waits: bool) -> Row:
    """A decision; the reader's choice if the engine has not carried it out yet."""
    given = view.overrides.get(decided.id, decided.default) if decided.open else decided.choice
    node = split_id(decided.id)[2][0]
    size = decided.numbers.get("bytes")
    choice = "?" if waits else CHOICES.get(given, given)
    mark: Span = ("◆ ", "accent") if waits else _mark(decided)
    if decided.open and not waits and given != decided.default:
        mark = ("* ", "warn")
    place = decided.shown.location
    return text_row(
        (pad(cut(node, 23), 24), "strong" if choice == "?" else "text"),
        (pad(choice, 11), ROLES.get(choice, "accent")),
        (pad_left(bytes_text(int(size)) if size is not None else "", 9), "dim"),
        ("  " + (decided.reason or decided.rule), "dim"),
        gutter=((line_text(place), "faint"), mark),
        at=ToDecision(decided.id),
        copies=decided.id,
        decision=decided.id,
    )
