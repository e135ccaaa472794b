"""The bar of a decision that waits."""

from __future__ import annotations

from msgspec import structs

from tcw.viewers.panes import decision_bar
from tests.decided import is_open
from tests.no_torch.asking import stopped
from tests.no_torch.viewers.panes.conftest import view_of


def test_what_a_choice_means_is_not_cut() -> None:
    means = "two loop nests in place of one, and " + "a buffer of 4 MB between them, " * 5
    records = [
        structs.replace(one, shown=structs.replace(one.shown, means=means)) if is_open(one) else one
        for one in stopped()
    ]
    for width in (110, 150, 220):
        said = " ".join(row.text for row in decision_bar.rows(view_of(records), width))
        assert means.strip() in " ".join(said.split()), width


def test_what_a_choice_means_is_said_of_a_side_only_where_it_is_about_one() -> None:
    means = "kept: a value with its own loops; inlined: each reader computes it on the spot"
    records = [
        structs.replace(one, kind="inline", shown=structs.replace(one.shown, means=means))
        if is_open(one)
        else one
        for one in stopped()
    ]
    said = " ".join(row.text for row in decision_bar.rows(view_of(records), 150))
    assert f": {means}" not in said
    assert means in said
