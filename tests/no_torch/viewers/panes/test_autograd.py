from __future__ import annotations

from viewers.panes import autograd
from viewers.panes.view import View


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
