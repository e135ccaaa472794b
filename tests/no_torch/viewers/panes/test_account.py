"""What a call adds up to, and its modes."""

from __future__ import annotations

import pytest
from msgspec import structs

from tcw.compiler.trace.records import Account, AnyRecord, ModeRow
from tcw.viewers.panes import account
from tests.no_torch import profiles
from tests.no_torch.profile_building import timed
from tests.no_torch.viewers.panes.profile_views import texts, view_of


@pytest.fixture(scope="module")
def block() -> list[AnyRecord]:
    return profiles.block_profile()


def test_an_account_that_noise_may_explain_away_claims_no_shares(block: list[AnyRecord]) -> None:
    """With lines that add up to 178% of the call, "dispatch 97%" says nothing."""

    def changed(record: AnyRecord) -> AnyRecord:
        if isinstance(record, Account) and record.side == "compiled":
            far = -0.78 * record.measured.median
            return structs.replace(record, remainder=far, remainder_noise=-2 * far)
        return record

    rows = texts(account.content(view_of([changed(one) for one in block]), 100))
    lines = {line.split()[0]: line for line in rows if line}
    assert "244.0" in lines["kernels"]
    assert "%" not in lines["kernels"]
    assert lines["remainder"].count("%") == 1, "eager's"
    said = " ".join(line.strip() for line in rows)
    assert "rounds differ too much: " in said
    assert "so the compiled side has no shares" in said


def test_the_lines_of_the_account_and_what_they_leave(block: list[AnyRecord]) -> None:
    lines = {line.split()[0]: line for line in texts(account.content(view_of(block), 100)) if line}
    assert lines["kernels"].split()[1:3] == ["–", "244.0"]
    assert "AOTAutograd" in lines["dispatch"]
    assert lines["remainder"].split()[1:5] == ["4.0", "0.2%", "4.0", "0.2%"]
    assert "measured, minus all of the above" in lines["remainder"]
    assert lines["call"].split()[1:] == ["2,150.6", "2,048.0"]
    assert "22.0 GB/s at 1.0 GB" in " ".join(lines.values())


def test_modes_drop_what_has_no_room_but_never_the_answer() -> None:
    view = view_of(profiles.modes())
    wide, narrow = texts(account.modes(view, 110)), texts(account.modes(view, 60))
    assert "compiled in" in wide[0]
    assert "compiled in" not in narrow[0]
    tcw = next(line for line in narrow if line.startswith(" tcw"))
    assert "1.26x" in tcw
    assert "2,341 calls" in tcw
    assert any("CUDA graphs need a GPU" in line for line in narrow)
    assert any("in noise" in line for line in wide), "max-autotune"


def test_a_mode_is_in_the_noise_as_its_recording_says() -> None:
    """The noise of a speed-up is a share of it: 10% of 1.1 is more than 0.105."""
    row = ModeRow(name="tcw", time=timed(2055.0), speedup=1.105, noise=0.1)
    lines = texts(account.modes(view_of([*profiles.block_profile(), row]), 110))
    assert "in noise" in next(line for line in lines if line.startswith(" tcw"))
