from __future__ import annotations

from msgspec.structs import replace

from tcw.compiler.trace.records import Kernel, Location, Start
from tcw.viewers.panes import kernel
from tcw.viewers.panes.view import View
from tcw.viewers.text.header import kernel_count
from tcw.viewers.text.sections import SectionView, section
from tests.no_torch import profiles
from tests.no_torch.viewers.panes.conftest import view_of


def test_every_kernel_of_the_compile_with_its_lines(block: View) -> None:
    content = kernel.kernel_list(block, 80)
    rows = {row.key: row.text for row in content.rows if row.key}
    assert list(rows) == [f"kernel:k{number}" for number in range(10)]
    assert rows["kernel:k4"].split()[:3] == ["k4", "softmax", "18,"]
    assert "ATen" in rows["kernel:k1"]
    assert "22 registers" in rows["kernel:k9"]
    assert content.right[0][0] == "5 generated, 4 library calls"
    assert any("predicted for a GPU" in row.text for row in content.rows)


def test_what_the_engine_draws_is_not_a_library_call(block: View) -> None:
    records = [
        replace(record, language="rng")
        if isinstance(record, Kernel) and record.id == "k1"
        else record
        for record in block.recording.records
    ]
    view = view_of(records)
    content = kernel.kernel_list(view, 80)
    assert content.right[0][0] == "5 generated, 3 library calls, 1 draw"
    assert kernel_count(view.summary) == "37 kernels (15 library calls, 1 draw)"
    view.kernel = "k1"
    shown = kernel.content(view, 80)
    assert "drawn by the engine" in "".join(words for words, _ in shown.right)
    assert any("drawn by the engine: no code is generated" in row.text for row in shown.rows)
    assert not any("library" in row.text for row in shown.rows)


def test_what_was_recorded_for_a_gpu_comes_first(block: View) -> None:
    records = [
        replace(record, settings=replace(record.settings, device="cuda"))
        if isinstance(record, Start)
        else record
        for record in block.recording.records
    ]
    rows = [row.text.strip() for row in kernel.kernel_list(view_of(records), 80).rows if row.text]
    built = rows.index("built for the CPU")
    assert rows[0] == "predicted for a GPU that this machine lacks"
    assert all("registers" in row for row in rows[1:built] if row)


def test_the_chosen_kernel_is_where_the_cursor_stands(block: View) -> None:
    assert not kernel.kernel_list(block, 40).tracks
    block.kernel = "k4"
    assert kernel.kernel_list(block, 40).start == "kernel:k4"


def test_the_report_lists_them_as_the_pane_does(block: View) -> None:
    derived = block.derived
    view = SectionView(derived.recording, derived.summary, 100)
    report = [one.text.split() for one in section("kernels")(view)]
    listed = [row.text.split() for row in kernel.kernel_list(block, 100).rows if row.key]
    for words in listed[:9]:
        told = next(one for one in report if one[:1] == words[:1])
        assert [word.removeprefix("block.py:") for word in told] == words


def test_a_librarys_file_is_named_and_no_line_number_is_cut(block: View) -> None:
    library = "/usr/lib/python3.12/site-packages/transformers/models/llama/modeling_llama.py"
    records = [
        replace(record, locations=(Location(file=library, line=1370),), lines=())
        if isinstance(record, Kernel)
        else record
        for record in block.recording.records
    ]
    for width in (30, 42, 60, 100):
        rows = [row.text for row in kernel.kernel_list(view_of(records), width).rows if row.key]
        assert all(":1370" in row for row in rows[:9]), width


def test_the_report_has_their_times_where_they_were_measured() -> None:
    derived = view_of(profiles.block_profile()).derived
    view = SectionView(derived.recording, derived.summary, 100)
    report = [one.text for one in section("kernels")(view)]
    assert next(row for row in report if " gelu " in row).endswith("141 µs")
    assert not any("not measured" in row for row in report)
