from __future__ import annotations

import msgspec

from compiler.trace.records import AnyRecord, CallEnd, FailedGuard, Recompile
from tests.no_torch.viewers.panes.conftest import view_of
from viewers.panes import cache, recompiles


def test_values_are_never_cut_only_names(block_records: list[AnyRecord]) -> None:
    guard = FailedGuard(
        entry="0/0", guard="tensor size mismatch", source="L['kwargs']['a_very_long_input_name']",
        expected="2", seen="3", kind="TENSOR_MATCH",
    )  # fmt: skip
    record = Recompile(compile_id="0/1", call=2, failed=(guard,), function="forward", reason="")
    kept = [r for r in block_records if not isinstance(r, Recompile)]
    rows = recompiles.causes(view_of([*kept, record]), 58).rows
    assert any(row.text.rstrip().endswith("seen 3") for row in rows)
    assert all(len(row.text) <= 58 for row in rows)


def test_what_served_a_call_is_unknown_where_it_was_not_recorded(
    block_records: list[AnyRecord],
) -> None:
    def lines(records: list[AnyRecord]) -> list[str]:
        return [row.text for row in cache.content(view_of(records), 110).rows]

    call = next(line for line in lines(block_records) if "call 3" in line)
    assert "✓ hit" in call
    assert "?" not in call
    without = [
        msgspec.structs.replace(r, hits=()) if isinstance(r, CallEnd) else r for r in block_records
    ]
    assert "?" in next(line for line in lines(without) if "call 3" in line)
