from __future__ import annotations

from tcw.compiler.trace.records import (
    AnyRecord,
    Decided,
    End,
    Partition,
    Waiting,
)
from tcw.viewers.panes import autograd
from tcw.viewers.panes.view import View
from tests.decided import asked as asked_decision
from tests.no_torch.viewers.panes.conftest import view_of


def test_what_costs_memory_comes_first_and_the_reason_is_told_in_full(block: View) -> None:
    rows = autograd.content(block, 70).rows
    kinds = [next(k for k in autograd.ROLES if f" {k} " in f"{row.text} ") for row in rows]
    assert kinds == sorted(kinds, key=list(autograd.ROLES).index)
    assert autograd.reason(block, 70) == []
    block.select(autograd.first(block))
    assert rows[0].ref == block.ref
    split = autograd.split_of(block)
    assert split is not None
    value = next(v for v in split.values if rows[0].key == f"saved:{v.node}")
    told = " ".join(row.text for row in autograd.reason(block, 200)[1:])
    assert value.reason in told


def test_a_row_names_the_decision_behind_it(block: View) -> None:
    rows = {row.key: row for row in autograd.content(block, 120).rows}
    saved = next(key for key, row in rows.items() if "saved" in row.text)
    kept = next(key for key, row in rows.items() if " input " in row.text)
    assert rows[saved].decision == f"inductor/0/0/joint/save/{saved.removeprefix('saved:')}"
    assert rows[kept].decision == ""


def decided(node: str, **more: object) -> Decided:
    fields: dict[str, object] = {"default": "save", "choice": "save", **more}
    id = f"tcw/0/0/joint/save/{node}"
    return Decided(id=id, graph="0/0/joint", kind="save", **fields)  # type: ignore[arg-type]


def test_what_was_overruled_says_so(block: View, block_records: list[AnyRecord]) -> None:
    node = next(
        row.key.removeprefix("saved:")
        for row in autograd.content(block, 120).rows
        if "saved" in row.text
    )
    for more, words in (
        ({"choice": "recompute", "overridden": True}, "your choice"),
        ({"wanted": "recompute", "refused": "rule random"}, "recompute refused: rule random"),
    ):
        view = view_of([*block_records, decided(node, **more)])
        row = next(r for r in autograd.content(view, 120).rows if r.key == f"saved:{node}")
        assert words in row.text
        assert "*" in row.gutter[1][0]


def test_values_are_listed_while_they_are_decided() -> None:
    asked = asked_decision(
        id="tcw/0/0/joint/save/relu",
        graph="0/0/joint",
        kind="save",
        default="save",
        choices=("save", "recompute"),
        numbers={"bytes": 4096.0},
        reason="cheaper than its inputs",
    )
    waiting = Waiting(number=1, kind="decision", why="step", stage="autograd", decision=asked.id)
    content = autograd.content(view_of([decided("exp"), asked, waiting]), 100)
    lines = [row.text for row in content.rows]
    assert "exp" in lines[0]
    assert "saved" in lines[0]
    assert "◆ relu" in lines[1]
    assert "4 KB" in lines[1]
    assert content.start == f"decision:{asked.id}"


def test_answered_values_stay_in_the_list_until_the_graph_is_cut() -> None:
    first, second, last = (
        Decided(
            id=f"tcw/0/0/joint/save/{name}", graph="0/0/joint", kind="save", default="save",
            choices=("save", "recompute"),
        )
        for name in ("exp", "relu", "add")
    )  # fmt: skip
    waiting = Waiting(number=3, kind="decision", why="step", stage="autograd", decision=last.id)
    view = view_of([first, second, last, waiting])
    view.overrides[second.id] = "recompute"
    content = autograd.content(view, 100)
    rows = [row.text.split()[:3] for row in content.rows]
    assert rows == [["exp", "saved"], ["*", "relu", "recomputed"], ["◆", "add", "?"]]
    assert content.right[0][0] == "2 values decided, the graph is not cut yet"


def test_a_backward_that_is_not_reached_yet_is_not_denied(block: View) -> None:
    records = [
        record for record in block.recording.records if not isinstance(record, Partition | Decided)
    ]
    assert "has no backward" in autograd.content(view_of(records), 80).rows[1].text
    running = view_of([record for record in records if not isinstance(record, End)])
    said = " ".join(row.text for row in autograd.content(running, 80).rows)
    assert "keeps for its backward" in said
    assert "has no backward" not in said
