"""Times beside the source, the graph, and kernels."""

from __future__ import annotations

import msgspec
import pytest

from tcw.compiler.trace.records import AnyRecord, Graph, Kernel, KernelNests, NestTime, Node
from tcw.viewers.panes import kernel, node_list, profile_source, source
from tests.no_torch import profiles
from tests.no_torch.profile_building import FILE, LOWERED, Call, X, at, timed
from tests.no_torch.stepping import attention, softmax
from tests.no_torch.viewers.panes.profile_views import texts, view_of


@pytest.fixture(scope="module")
def block() -> list[AnyRecord]:
    return profiles.block_profile()


def test_the_times_beside_the_source(block: list[AnyRecord]) -> None:
    view = view_of(block)
    found = profile_source.column(view, FILE)
    assert found is not None
    assert found[16] == ("    450 ", "warn")
    assert found[25][0] == "  ≤57.8 ", "a kernel of it has other lines, too"
    view.times = "eager"
    assert (profile_source.column(view, FILE) or {})[25][0] == "   69.6 "
    view.times = "difference"
    differences = profile_source.column(view, FILE) or {}
    assert differences[29][0].strip() == "+40.0"
    assert 26 not in differences, "a region stands at its first line"
    content = source.content(view, 60)
    assert content.right == (("Δ µs", "dim"),)
    assert content.rows[28].text.startswith("   29   +40.0 ")


def test_a_line_stands_at_one_place_whatever_shows_it(block: list[AnyRecord]) -> None:
    """The source while Dynamo is stepped through has the column of times, too."""
    step = msgspec.structs.replace(softmax(attention()), location=at(21))
    view = view_of([*block, step], step=step)
    shown, stepped = (pane(view, 80) for pane in (source.content, source.stepped))
    assert stepped.right[0][0].endswith("µs compiled")
    rows = list(zip(texts(shown), texts(stepped), strict=True))
    assert [(one, other) for one, other in rows if one != other] == [
        (rows[20][0], rows[20][0].replace("21 ", "21▸", 1))
    ]


def test_the_time_of_a_kernel_stands_beside_its_last_node(block: list[AnyRecord]) -> None:
    names = ("x", "add", "sub", "abs", "max", "mul", "erf")
    nodes = tuple(
        Node(name=name, op="call_function" if index else "placeholder", target=f"aten.{name}",
             value=X, location=at(25))
        for index, name in enumerate(names)
    )  # fmt: skip
    lowered = Graph(id=LOWERED, kind="lowered", compile_id="0/0", nodes=nodes, ops=6, call=1)
    view = view_of([*block[:-1], lowered, block[-1]], variant=LOWERED)
    times = profile_source.node_times(view, LOWERED)
    assert {name: round(seconds * 1e6, 1) for name, seconds in times.items()} == {
        "mul": 26.5, "max": 31.3, "erf": 141.0,
    }  # fmt: skip
    rows = texts(node_list.content(view, 60))
    assert any("erf" in line and "141 µs" in line for line in rows)
    assert sum("µs" in line for line in rows) == 3


def test_the_time_of_a_kernel_in_its_title_and_in_the_list(block: list[AnyRecord]) -> None:
    view = view_of(block, kernel="k0")
    assert kernel.content(view, 90).right[0][0].startswith("26.5 µs · 25% of the roofline")
    rows = {row.key: row.text for row in kernel.kernel_list(view, 80).rows if row.key}
    assert "141 µs" in rows["kernel:k6"]


def test_the_time_of_each_loop_nest_stands_beside_it() -> None:
    one = "void kernel()\n{\n    for(int64_t x0=0;)\n    {\n    }\n}\n"
    two = one + one.replace("kernel", "other")
    call = Call()
    call.region("relu", [call.kernel("cpp_fused_relu_0", "relu", [18], 50.0, text=one)], [])
    call.region("sum", [call.kernel("cpp_fused_sum_1", "sum", [19], 80.0, text=two)], [])
    records = call.done()
    first, second = (record for record in records if isinstance(record, Kernel))

    def times(records: list[AnyRecord], of: Kernel) -> dict[int, str]:
        found = profile_source.nest_times(view_of(records), of)
        return {line: span[0].strip() for line, span in found.items()}

    assert times(records, first) == {3: "50.0"}
    assert times(records, second) == {3: "≤80.0", 9: "≤80.0"}
    nests = KernelNests(
        graph="0/0/inference",
        kernel=second.id,
        call=1,
        nests=(NestTime(line=3, time=timed(62.0)), NestTime(line=9, time=timed(17.5))),
    )
    assert times([*records, nests], second) == {3: "62.0", 9: "17.5"}
    view = view_of([*records, nests], kernel=second.id)
    rows = [row for row in kernel.content(view, 80).rows if "for" in row.text]
    assert ["".join(words for words, _ in row.gutter).split() for row in rows] == [
        ["62.0"],
        ["17.5"],
    ]
