"""Code with statements around each of its calls does the same as before, in the same order."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.measure.probes.clocked_wrapper import Statement, statements, surrounded

WRAPPER = """def call(args):
    a, b = args
    args.clear()
    mm = aten_mm(a, view(b, (2, 2), (1, 2), 0))  # aten.mm.default
    if mm != (2, 1):
        mm = laid_out(mm, (2, 2), (2, 1))
    c, _ = aten_split([a, view(mm, 1)], size=view(b, 3))
    del _
    c = laid_out(c, (2,), (1,))
    segment_0(mm, c)
    d = aten_max(c)[0]
    aten_print('x')
    del a, b
    return [view(mm, 4), d]
"""
CALLED = ("aten_mm", "aten_split", "aten_max", "aten_print")


def run(text: str) -> tuple[list[str], Any]:
    """The calls, in order, and the result."""
    calls: list[str] = []

    def known(name: str) -> Any:
        def function(*arguments: Any, **keywords: Any) -> Any:
            calls.append(f"{name}{arguments}{sorted(keywords.items())}")
            return (f"{name}#{len(calls)}", "rest") if name in ("aten_split", "aten_max") else name

        return function

    names: dict[str, Any] = {
        name: known(name) for name in (*CALLED, "view", "laid_out", "segment_0")
    }
    names |= {
        "starts": lambda i: calls.append(f"> {i}"),
        "ends": lambda i: calls.append(f"< {i}"),
    }
    exec(text, names)
    return calls, names["call"](["a", "b"])


def around(known: tuple[str, ...]) -> Any:
    numbers = iter(range(100))

    def said(statement: Statement) -> tuple[str, str] | None:
        if statement.called not in known:
            return None
        number = next(numbers)
        return f"starts({number})", f"ends({number})"

    return said


def test_the_clock_runs_around_the_call_and_what_lays_it_out_but_not_its_arguments() -> None:
    calls, _ = run(surrounded(WRAPPER, around(CALLED), ("laid_out",)))
    short = [one.partition("(")[0] for one in calls]
    assert short == [
        *("view", "> 0", "aten_mm", "laid_out", "< 0"),
        *("view", "view", "> 1", "aten_split", "laid_out", "< 1"),
        "segment_0",
        *("> 2", "aten_max", "< 2"),
        *("> 3", "aten_print", "< 3"),
        "view",
    ]


@given(st.sets(st.sampled_from(CALLED)), st.booleans())
def test_nothing_else_changes(known: set[str], layouts: bool) -> None:
    text = surrounded(WRAPPER, around(tuple(known)), ("laid_out",) if layouts else ())
    calls, answer = run(text)
    plain, expected = run(WRAPPER)

    def without_numbers(text: object) -> str:
        return "".join(letter for letter in str(text) if letter != "#" and not letter.isdigit())

    assert without_numbers([c for c in calls if c[0] not in "<>"]) == without_numbers(plain)
    assert without_numbers(answer) == without_numbers(expected)


def test_statements_say_what_they_read_and_make() -> None:
    found = {one.called: one for one in statements(WRAPPER)}
    assert found["aten_mm"].reads == ("a", "b")
    assert found["aten_mm"].makes == ("mm",)
    assert found["aten_split"].reads == ("a", "mm", "b")
    assert found["aten_split"].makes == ("c",)
    assert found["aten_print"].reads == ()
    assert found["aten_max"].text == "d = aten_max(c)[0]"


def test_the_code_of_fx_as_well() -> None:
    text = """
def forward(self, args_list):
    x, = args_list
    args_list.clear()
    mm = torch.ops.aten.mm.default(x, x);  x = None
    return (mm,)
"""
    (first, second) = statements(text)
    assert first.called == "args_list.clear"
    assert (second.called, second.reads, second.makes) == (
        "torch.ops.aten.mm.default",
        ("x",),
        ("mm",),
    )
