"""Advice that is not given: if the source does not prove it, there is no code to paste."""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.capture.advice import Broken, advise
from tcw.compiler.capture.advice.broken import parse

BRANCH = "Data-dependent branching"


def codes(source: str, *tensors: str, dtype: str = "float32") -> list[str]:
    broken = Broken(
        type=BRANCH,
        lines=tuple(textwrap.dedent(source).strip("\n").splitlines()),
        tensors=tuple((name, dtype) for name in tensors),
    )
    return [advice.code for advice in advise(broken)]


def test_the_clamp_stands_alone() -> None:
    source = """
    if x.abs().max() > 8:
        x = x.clamp(-8, 8)
    """
    assert codes(source, "x")[0] == "x = x.clamp(-8, 8)"


@pytest.mark.parametrize(
    "source",
    [
        "if x.abs().max() > 8:\n    x = x.clamp(-9, 9)",
        "if x.abs().max() > 8:\n    y = x.clamp(-8, 8)",
        "if y.abs().max() > 8:\n    x = x.clamp(-8, 8)",
        "if x.abs().max() < 8:\n    x = x.clamp(-8, 8)",
        "if x.max() > 8:\n    x = x.clamp(-8, 8)",
        "if x.abs().max() > n:\n    x = x.clamp(-n, n)",
        "if x.abs().max() > 8:\n    x = x.clamp(-8, 8)\nelse:\n    x = x * 2",
        "if x.abs().max() > 8:\n    x = x.clamp(-8, 8)\n    y = 1",
    ],
)
def test_other_clamps_do_not(source: str) -> None:
    assert not any(code.startswith(("x = x.clamp", "y = x.clamp")) for code in codes(source, "x"))


def test_an_integer_may_have_no_absolute_value() -> None:
    source = "if x.abs().max() > 8:\n    x = x.clamp(-8, 8)"
    assert codes(source, "x", dtype="int8")[0].startswith("x = torch.where(")


@pytest.mark.parametrize(
    "source",
    [
        "if c:\n    x = x[:, :3]",
        "if c:\n    x = x.mul_(2)",
        "if c:\n    x *= 2",
        "if c:\n    self.x = x * 2",
        "if c:\n    x = torch.cat([x, x])",
        "if c:\n    x = x * 2\n    y = x",
        "if c and d:\n    x = x * 2",
        "if 0 < c < 3:\n    x = x * 2",
        "if not (c or d):\n    x = x * 2",
        "if c in d:\n    x = x * 2",
        "elif c:\n    x = x * 2",
        "return x if c and d else y",
        "def f(x): return x if c else y",
        "if c:\n    return x",
        "for x in y: pass",
        "x +",
        "",
    ],
)
def test_no_code_where_it_may_be_wrong(source: str) -> None:
    assert set(codes(source, "x", "y", "c", "d")) <= {""}


def test_a_condition_that_numpy_computes_needs_no_tensor() -> None:
    lines = ("if n % 4:", "    x = x * 2")
    tensor = Broken(BRANCH, "attempted to jump with TensorVariable()", lines=lines)
    array = replace(tensor, context="attempted to jump with NumpyNdarrayVariable()")
    first, *rest = advise(array)
    assert first.text.startswith(
        "If it follows from numbers and sizes alone, compute it with Python"
    )
    assert tuple(rest) == advise(tensor)


def test_torch_cond_only_with_known_tensors() -> None:
    source = "if c:\n    x = x * n"
    assert len(codes(source, "x")) == 2
    assert codes(source, "x")[1].endswith("(x,))")
    assert len(codes(source)) == 1


def test_torchs_hints_where_we_have_none_useful_ones_first() -> None:
    hints = ("This graph break is fundamental - no.", "Do this instead.")
    given_ = advise(Broken(type="something new", hints=hints))
    assert [(advice.text, advice.by) for advice in given_] == [
        ("Do this instead.", "torch"),
        ("This graph break is fundamental - no.", "torch"),
    ]


def test_an_unknown_operator_gets_no_name() -> None:
    broken = Broken(type="x", explanation="There was no fake impl registered for it.")
    assert advise(broken) == ()


@given(st.text(), st.text(), st.lists(st.text(), max_size=4), st.integers(0, 50))
def test_any_text_is_survived(kind: str, context: str, lines: list[str], column: int) -> None:
    for name in (BRANCH, "Unsupported Tensor.item() call", "Dynamic shape operator", kind):
        advise(
            Broken(
                type=name,
                context=context,
                explanation=context,
                lines=tuple(lines),
                column=column,
                end_column=column + 3,
            )
        )


def cases() -> list[Broken]:
    """torch's messages for the breaks that we have advice on."""
    branch = (
        "if c:\n    x = x * 2\nelse:\n    x = -x",
        "while c:\n    x = x * 2",
        "y = x if c else z",
    )
    branch += ("if c:\n    raise ValueError('no')", "if c and d:\n    x = x * 2", "if c:\n    pass")
    branch += ("if x.abs().max() > 8:\n    x = x.clamp(-8, 8)",)
    brokens = [
        Broken(type=BRANCH, lines=tuple(one.splitlines()), tensors=(("x", "float32"),))
        for one in branch
    ]

    def one(type_: str, context: str = "", source: str = "", **more: object) -> None:
        brokens.append(
            Broken(
                type=type_, context=context, lines=(source,) if source else (), column=0,
                end_column=len(source), **more,
            )  # type: ignore[arg-type]
        )  # fmt: skip

    one("Unsupported Tensor.item() call", source="y.sum().item()")
    one("Tensor.tolist()")
    one("Data dependent operator", "aten._local_scalar_dense", "math.sqrt(y)")
    one("Dynamic shape operator", "aten.nonzero.default", "x[x > 0]")
    one("", "numpy function: <function fft at 0x1>, args: []")
    one("", "numpy function: <method randn of numpy.random.RandomState>", "np.random.randn(4)")
    one("", "", "np.random.weibull(4)")
    one("x", explanation="There was no fake impl registered for CustomOpDef(mine::operator).")
    for name in ("print", "open", "input", "exec", "globals"):
        one("Failed to trace builtin operator", f"builtin {name} [<class 'a.ListVariable'>] False")
    printed = "builtin print [<class 'a.TensorVariable'>] False"
    one("Failed to trace builtin operator", printed, "print(x)")
    one("attempted to reorder a debugging function", "<built-in function print>")
    for name in ("range", "str"):
        one("", f"builtin {name} [<class 'a.TensorVariable'>] False")
    one("logging.Logger method", "<logging.Logger object at 0x1>.info", "log.info('x')")
    for module, name in (
        ("_warnings", "warn"), ("torch.serialization", "save"), ("time", "perf_counter"),
    ):  # fmt: skip
        one("", f"module: {module}, qualname: {name}, skip reason: ")
    one("", "", "datetime.datetime.now()")
    one("", "module: builtins, qualname: Random.gauss")
    one("", "module: math, qualname: fsum, C extension")
    one("", "module: fast.kernels, qualname: attend, C extension")
    one("Skip calling `torch.compiler.disable()`d function", "<function Model.log at 0x1>")
    one("Call to `torch._dynamo.graph_break()`", then=("graph break in loop",))
    one("", "module: x, qualname: DistributedDataParallel._inside_ddp_forward, skip reason: y")
    one("", "setattr(UserFunctionVariable(), ConstantVariable(str: '__module__'), x)")
    one("", "builtin setattr [<class 'torch._dynamo.variables.functions.UserFunctionVariable'>]")
    one("functools.wraps", "UserFunctionVariable()")
    one("Attempt to trace generator")
    one("Unsupported context manager")
    return brokens


@pytest.mark.parametrize("broken", cases(), ids=lambda one: one.context[:30] or one.type[:30])
def test_one_style(broken: Broken) -> None:
    """A sentence with a capital letter and without a full stop, at most two lines in `explain`;
    code is code."""
    found = advise(broken)
    assert found
    for advice in found:
        assert advice.by == "tcw"
        assert re.match(r"[A-Z]", advice.text), advice.text
        assert not advice.text.endswith(".")
        assert len(textwrap.wrap(advice.text, 100 - 19)) <= 2, advice.text
        assert "torch._dynamo.config" not in advice.text
        if advice.code and not advice.code.startswith(("@", "return")):
            ast.parse(advice.code)


@given(st.lists(st.text(max_size=30), max_size=6))
def test_parsing_never_raises(lines: list[str]) -> None:
    parse(tuple(lines))


def test_a_statement_over_several_lines() -> None:
    lines = ("    print(", '        "a",', "    )", "    return x")
    statement = parse(lines)
    assert statement is not None
    assert statement.end_lineno == 3


@pytest.mark.parametrize("call", [".item()", ".tolist()"])
def test_a_number_that_is_only_returned_is_made_by_the_caller(call: str) -> None:
    line = f"    return y * 2, counts{call}"
    column = line.index("counts")
    broken = Broken(
        type="Data dependent operator", context="aten._local_scalar_dense.default",
        lines=(line,), column=column, end_column=len(line),
    )  # fmt: skip
    first = advise(broken)[0]
    assert first.code == "return y * 2, counts"
    assert call[1:] in first.text
    kept = replace(broken, lines=(f"    n = counts{call}",), column=8, end_column=14 + len(call))
    assert "returned" not in advise(kept)[0].text


def test_a_break_that_a_library_requests_is_not_the_users_to_remove() -> None:
    broken = Broken(type="Call to `torch._dynamo.graph_break()`")
    assert advise(broken)[0].text.startswith("Remove the call")
    for theirs in (replace(broken, library=True), replace(broken, inside=True)):
        assert "Remove" not in advise(theirs)[0].text


def test_a_number_that_is_made_an_integer_becomes_a_symbol_first() -> None:
    """It is a size or an index, which no tensor replaces."""
    item = Broken(
        type="Unsupported Tensor.item() call", lines=("n = int(x.max())",),
        column=4, end_column=16,
    )  # fmt: skip
    symbol = "torch._dynamo.config.capture_scalar_outputs = True"
    assert advise(item)[0].code == symbol
    item = replace(item, lines=("n = x.max().item()",), end_column=18)
    assert [advice.code for advice in advise(item)] == [
        "n = x.max()",
        "n = x.max().detach()",
        symbol,
    ]


@pytest.mark.parametrize(
    ("further", "fixes"),
    [
        ("w = y[:, :n]", 1),
        ("for i in range(n):", 1),
        ("z = y.view(n, -1)", 1),
        ("z = y * n", 3),
        ("z = y[:, n]", 3),
    ],
)
def test_a_number_that_is_a_size_further_on_cannot_stay_a_tensor(further: str, fixes: int) -> None:
    lines = ("    n = x.max().item()", "", "    y = x + 1", f"    {further}", "        pass")
    item = Broken(
        type="Unsupported Tensor.item() call",
        lines=lines if further.startswith("for") else lines[:-1],
        column=8,
        end_column=22,
    )
    assert len(advise(item)) == fixes


@pytest.mark.parametrize(
    ("lines", "expression"),
    [
        (("n = y.max().item()", "if n > 3:", "    y = y + 1"), "y.max().item()"),
        (("n = y.max().item()", "while n > 3:", "    n -= 1"), "y.max().item()"),
        (("n = int(y.max())", "z = y if n > 3 else x"), "int(y.max())"),
        (("elif y.max().item() > 3:",), "y.max().item()"),
        (("if y.max().item() > y.min().item():", "    y = y + 1"), "y.max().item()"),
        (("if f(y.max().item()):", "    f(y)"), "y.max().item()"),
    ],
)
def test_a_number_that_decides_is_no_tensor_and_no_symbol(
    lines: tuple[str, ...], expression: str
) -> None:
    """The graph would break at the branch."""
    column = lines[0].index(expression)
    item = Broken(
        type="Unsupported Tensor.item() call", lines=lines,
        column=column, end_column=column + len(expression),
    )  # fmt: skip
    (advice,) = advise(item)
    assert advice.code == ""
    assert "select with torch.where" in advice.text or "out of the compiled" in advice.text


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("n = int(x.max().item() * 2) + 1", "sizes and indices have to be numbers"),
        ("y = y.view(x.max().item(), -1)", "sizes and indices have to be numbers"),
        ("n = float(x.max().item()) + 1", "Let torch capture the number as a symbol"),
        ("y = y * x.max().item()", "If it is only combined with tensors"),
    ],
)
def test_a_number_that_a_call_needs_is_not_replaced_by_a_tensor(line: str, first: str) -> None:
    """`int(x.max() * 2)` breaks the graph as `int(x.max().item() * 2)` does."""
    column = line.index("x.max()")
    item = Broken(
        type="Unsupported Tensor.item() call", lines=(line,), column=column, end_column=column + 14
    )
    assert first in advise(item)[0].text


@pytest.mark.parametrize(
    ("line", "expression", "code", "words"),
    [
        ("return z, float(y), 3", "float(y)", "return z, y, 3", "call float() on the tensor"),
        ("v = float(x.max())", "float(x.max())", "v = x.max()", "only combined with tensors"),
        ("v = float(x) + float(y)", "float(x) + float(y)", "", "only combined with tensors"),
    ],
)
def test_a_conversion_is_left_out(line: str, expression: str, code: str, words: str) -> None:
    column = line.index(expression)
    item = Broken(
        type="Data dependent operator", context="aten._local_scalar_dense.default",
        lines=(line,), column=column, end_column=column + len(expression),
    )  # fmt: skip
    first = advise(item)[0]
    assert first.code == code
    assert words in first.text


SIZE = "torch._dynamo.config.capture_dynamic_output_shape_ops = True"


@pytest.mark.parametrize(
    "further",
    [
        "if kept.numel() == 0:\n    return x\nreturn kept",
        "y = x + 1 if len(kept) else x",
        "rows = x[kept]\nif rows.size(0) > 3:\n    y = rows[:3]",
        "n = kept.shape[0]\nfor i in y:\n    if n > i:\n        break",
        "if kept.numel() and x.shape[0] > 3:\n    x = x * 2",
    ],
)
def test_a_setting_alone_does_not_help_where_the_size_decides(further: str) -> None:
    (advice,) = advise(_sized(further))
    assert advice.code == ""
    assert "let torch.cond decide" in advice.text


@pytest.mark.parametrize(
    "further",
    [
        "return kept",
        "if x.sum() > 3:\n    x = x * 2",
        "if kept.shape[1] == 2:\n    x = x * 2",
        "total = kept.sum()\nif total.numel() == 1:\n    x = x * 2",
        "kept = x\nif kept.numel() == 0:\n    x = x * 2",
    ],
)
def test_a_size_that_decides_nothing_is_captured(further: str) -> None:
    (advice,) = advise(_sized(further))
    assert advice.code == SIZE


def test_a_loop_to_a_size_is_moved_out() -> None:
    (advice,) = advise(_sized("while kept.numel() > 3:\n    kept = kept[1:]"))
    assert advice.text.startswith("Move the loop out")


def test_a_condition_on_a_number_is_none_of_where() -> None:
    """A captured size or item is no tensor."""
    broken = Broken(
        type="Consider annotating your code using torch._check*()",
        explanation="Could not guard on data-dependent expression u0 > 3",
        lines=("if not n:", "    y = y * 2"),
        tensors=(("y", "float32"),),
    )
    assert [advice.code for advice in advise(broken)] == [
        "y = torch.cond(torch.sym_not(n != 0), lambda y: y * 2, lambda y: y.clone(), (y,))",
        "torch._check(torch.sym_not(n != 0))",
    ]
    (general,) = advise(replace(broken, lines=("y = y * 2 if n else y",)))
    assert "torch.where" not in general.text


def _sized(further: str) -> Broken:
    line = "kept = torch.nonzero(x)"
    return Broken(
        type="Dynamic shape operator", context="aten.nonzero.default",
        lines=(line, *further.splitlines()), column=7, end_column=len(line),
    )  # fmt: skip
