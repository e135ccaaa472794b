from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.trace.records import LoopLine
from tcw.viewers.panes.loops import TextbookNest, subscript, textbook_lines, textbook_nest
from tests.inductor_loops import nest_in

AMAX = """for p0 in 4096:
  reduce p1 in 128:
    load = load(buf8, 128*p0 + p1)
    constant = constant(0.125, torch.float32)
    mul = mul(load, constant)
    reduction = reduction(torch.float32, torch.float32, max, mul)
    store_reduction(buf10, p0, reduction)
"""


def read_loops(printed: str) -> TextbookNest | None:
    return textbook_nest(nest_in(printed))


def test_a_reduction_reads_as_one_statement() -> None:
    nest = read_loops(AMAX)
    assert nest is not None
    assert nest.ranges == (("p0", "4096"), ("p1", "128"))
    assert nest.body == ("buf10[p0] max= buf8[p0, p1] * 0.125",)


def test_a_long_value_that_is_read_twice_has_a_name() -> None:
    nest = read_loops(
        "for p0 in 8:\n"
        "  load = load(a_long_name_of_a_buffer, p0)\n"
        "  load_1 = load(another_long_name_of_it, p0)\n"
        "  add = add(load, load_1)\n"
        "  mul = mul(add, add)\n"
        "  store(out, p0, mul, None)\n"
    )
    assert nest is not None
    assert nest.body[0] == "t = a_long_name_of_a_buffer[p0] + another_long_name_of_it[p0]"
    assert nest.body[-1] == "out[p0] = t * t"


def test_parentheses_stay_where_they_matter() -> None:
    nest = read_loops(
        "for p0 in 8:\n  a = load(x, p0)\n  b = load(y, p0)\n  sub = sub(a, b)\n"
        "  sub_1 = sub(a, sub)\n  mul = mul(sub_1, b)\n  store(out, p0, mul, None)\n"
    )
    assert nest is not None
    assert nest.body == ("out[p0] = (x[p0] - (x[p0] - y[p0])) * y[p0]",)


def test_an_atomic_store_adds() -> None:
    nest = read_loops("for p0 in 8:\n  a = load(x, p0)\n  store(out, 0, a, atomic_add)\n")
    assert nest is not None
    assert nest.body == ("out[0] += x[p0]",)


@pytest.mark.parametrize(
    ("index", "shown"),
    [
        ("128*p0 + p1", "[p0, p1]"),
        ("p1 + 128*p0", "[p0, p1]"),
        ("p0", "[p0]"),
        ("p1", "[p1]"),
        ("p0 + 4096*p1", "[p0 + 4096*p1]"),
        ("256*p0 + p1", "[256*p0 + p1]"),
        ("128*p0 + p1 + 7", "[128*p0 + p1 + 7]"),
        ("0", "[0]"),
    ],
)
def test_an_index_that_walks_a_contiguous_buffer(index: str, shown: str) -> None:
    assert subscript(index, [("p0", "4096"), ("p1", "128")]) == shown


@pytest.mark.parametrize(
    "printed",
    ["", "for p0 in 8:", "for p0 in 8:\n  masked_subblock1:\n    a = load(x, p0)\n",
     "for p0 in 8:\n  store(out, p0, missing, None)\n", "for p0 in 8:\n  store(out)\n"],
)  # fmt: skip
def test_what_reads_otherwise_is_left_alone(printed: str) -> None:
    assert read_loops(printed) is None


words = st.text(max_size=20)
some_lines = st.builds(
    LoopLine,
    depth=st.integers(0, 6),
    variable=st.just("") | words,
    result=words,
    operation=st.sampled_from(["load", "store", "reduction", "getitem", "add", "subblock"]) | words,
    arguments=st.lists(words, max_size=4).map(tuple),
)


@given(st.lists(some_lines, max_size=8).map(tuple))
def test_any_nest_is_read_or_refused(nest: tuple[LoopLine, ...]) -> None:
    textbook_nest(nest)
    textbook_lines(nest)


def test_a_reduction_with_several_results_reads_as_one_statement_each() -> None:
    nest = read_loops(
        "for p0 in 64:\n"
        "  reduce p1 in 128:\n"
        "    load = load(primals_3, 128*p0 + p1)\n"
        "    reduction = reduction(torch.float32, torch.float32, welford_reduce, load)\n"
        "    getitem = getitem(reduction, 0)\n"
        "    getitem_1 = getitem(reduction, 1)\n"
        "    store_reduction(buf0, p0, getitem)\n"
        "    store_reduction(buf1, p0, getitem_1)\n"
    )
    assert nest is not None
    assert nest.body == (
        "buf0[p0] mean= primals_3[p0, p1]",
        "buf1[p0] m2= primals_3[p0, p1]",
    )


def nested_words(printed: str) -> list[str]:
    return [
        "  " * line.depth + (line.statement.text or f"{line.loop[0]} < {line.loop[1]}")
        for line in textbook_lines(nest_in(printed))
    ]


def test_statements_between_loops_and_in_them() -> None:
    words = nested_words(
        "for p0 in 8:\n"
        "  reduce p1 in 4:\n"
        "    load = load(x, 4*p0 + p1)\n"
        "    reduction = reduction(f, f, sum, load)\n"
        "    store_reduction(total, p0, reduction)\n"
        "  load = load(total, p0)\n"
        "  store(out, p0, load, None)\n"
    )
    assert words == [
        "p0 < 8",
        "  p1 < 4",
        "    total[p0] += x[p0, p1]",
        "  out[p0] = total[p0]",
    ]


def test_a_name_is_not_used_outside_of_its_loop() -> None:
    body = (
        "    a = load(a_long_name_of_a_buffer, p1)\n"
        "    b = load(another_long_name_of_it, p1)\n"
        "    add = add(a, b)\n"
        "    store({}, 4*p0 + p1, add, None)\n"
    )
    loops = "".join("  for p1 in 4:\n" + body.format(name) for name in ("one", "two"))
    named = "t = a_long_name_of_a_buffer[p1] + another_long_name_of_it[p1]"
    assert nested_words(f"for p0 in 8:\n{loops}") == [
        "p0 < 8", "  p1 < 4", f"    {named}", "    one[p0, p1] = t",
        "  p1 < 4", f"    {named}", "    two[p0, p1] = t",
    ]  # fmt: skip


def test_only_a_loop_that_reads_otherwise_is_shown_as_it_was_printed() -> None:
    words = nested_words(
        "for p0 in 8:\n"
        "  for p1 in 4:\n"
        "    masked = masked(lt, subblock, 0.0)\n"
        "    subblock:\n"
        "      return load\n"
        "  for p1 in 4:\n"
        "    a = load(x, 4*p0 + p1)\n"
        "    store(out, 4*p0 + p1, a, None)\n"
    )
    assert words == [
        "p0 < 8", "  p1 < 4", "    masked = masked(lt, subblock, 0.0)", "    subblock:",
        "      return load", "  p1 < 4", "    out[p0, p1] = x[p0, p1]",
    ]  # fmt: skip
