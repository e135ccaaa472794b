from __future__ import annotations

from viewers.panes import kernels
from viewers.panes.view import View


def test_every_kernel_of_the_compile_with_its_lines(block: View) -> None:
    content = kernels.content(block, 80)
    rows = {row.key: row.text for row in content.rows if row.key}
    assert list(rows) == [f"kernel:k{number}" for number in range(10)]
    assert rows["kernel:k4"].split()[:3] == ["k4", "softmax", "18,"]
    assert "call" in rows["kernel:k1"]
    assert "22 registers" in rows["kernel:k9"]
    assert content.right[0][0] == "5 generated, 4 library calls"
    assert any("predicted for a GPU" in row.text for row in content.rows)


def test_the_chosen_kernel_is_where_the_cursor_stands(block: View) -> None:
    assert not kernels.content(block, 40).tracks
    block.kernel = "k4"
    assert kernels.content(block, 40).start == "kernel:k4"
