"""What a report, a pane and a page have in common is drawn once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from tcw.compiler.trace.records import Account, AccountLine, CallProfile
from tcw.viewers.kit.figures import unit_for
from tcw.viewers.panes import account
from tcw.viewers.panes.rows import Content
from tcw.viewers.panes.view import View
from tcw.viewers.recording import Recording
from tcw.viewers.summary.profile import profiles_of
from tcw.viewers.summary.profile.accounts import account_tables
from tcw.viewers.tables.profile_lines import account_lines, memory_lines
from tcw.viewers.text.profile import profile
from tests.no_torch import profiles
from tests.no_torch.profile_building import timed
from tests.no_torch.viewers.panes.conftest import view_of

WIDTH = 100


@pytest.mark.parametrize("pane", [account.content, account.modes])
def test_a_pane_and_the_report_have_the_same_lines(
    pane: Callable[[View, int], Content],
) -> None:
    records = profiles.modes()
    report = {one.text.strip() for one in profile(Recording(records), WIDTH)}
    rows = [row.text.strip() for row in pane(view_of(records), WIDTH).rows if row.text.strip()]
    own = ("1 suggestion not tried", "2 suggestions not tried")
    assert len(rows) > 5
    assert [row for row in rows if row not in report and not row.startswith(own)] == []


def test_parts_that_take_more_than_the_call_keep_their_ratio() -> None:
    """On a busy machine the parts may add up to more than the plain call."""
    lines = tuple(
        AccountLine(name=name, time=timed(seconds), what="calls")
        for name, seconds in (("kernels", 400.0), ("aten", 200.0))
    )
    side = Account(
        call=1, side="compiled", measured=timed(100.0), lines=lines,
        remainder=-500e-6, remainder_noise=1e-6,
    )  # fmt: skip
    records = [one for one in profiles.block_profile() if not isinstance(one, Account)]
    (found,) = profiles_of(Recording([*records, side]))
    (table,) = account_tables(found)
    bars = [line.text.count("█") for line in account_lines(table, unit_for(1e-4), 140, 1)]
    assert max(bars) == 2 * sorted(bars)[-2] > 0
    rows = [line.text for line in account_lines(table, unit_for(1e-4), 100, 1)]
    assert any("remainder" in row and "other, slower rounds" in row for row in rows)


@pytest.mark.parametrize(
    ("eager", "compiled", "shown"),
    [
        (0, 12 << 10, "under 256 KB → under 256 KB"),
        (24 << 10, 1 << 20, "under 256 KB → 1.0 MB 1000 KB more"),
        (8 << 20, (8 << 20) + 4096, "8.0 MB → 8.0 MB"),
    ],
)
def test_a_peak_is_as_exact_as_the_system_counts_it(eager: int, compiled: int, shown: str) -> None:
    (head,) = (mode for mode in profiles.modes() if isinstance(mode, CallProfile))
    head = structs.replace(head, eager_peak_bytes=eager, compiled_peak_bytes=compiled)
    peak = memory_lines(head)[1].text
    assert " ".join(peak.split()) == f"peak of one call {shown}"
