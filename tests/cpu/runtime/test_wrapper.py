"""Graphs with ATen calls: the wrapper's text, and what it does."""

from __future__ import annotations

import gc
import sys
import traceback
import weakref
from types import FrameType
from typing import Any

import pytest
import torch

from tcw.compiler.loops.graph import Call, Input, Operand, Result
from tcw.compiler.loops.sizes import symbol
from tcw.compiler.memory.plan import Step, TakesOver
from tcw.compiler.runtime.compiled import Compiled, load
from tcw.compiler.runtime.operations import PLAIN, UnknownOperation, operation
from tcw.compiler.runtime.store import FileStore
from tests.cpu.runtime.plans import (
    Kernel,
    Planned,
    dense,
    memory,
    operand,
    segment,
    tensor,
)


def doubled(name: str, source: str, target: str, count: Any = 16) -> Kernel:
    size = "s[0]" if not isinstance(count, int) else str(count)
    sizes = () if isinstance(count, int) else ("s0",)
    body = f"for (long i = 0; i < {size}; i++) ((float*)p[1])[i] = ((float*)p[0])[i] * 2;"
    return Kernel(name, (source, target), body, sizes)


def aten(
    name: str,
    target: str,
    arguments: tuple[object, ...],
    shape: tuple[Any, ...] = (4, 4),
    **others: Any,
) -> Call:
    return Call(
        name, target, arguments, results=(Result(name, "float32", shape, dense(shape)),), **others
    )


def mm_then_double(**others: Any) -> Planned:
    """mm(x, y) * 2, with the product dead afterwards."""
    call = aten("mm", "aten.mm.default", (operand("x", [4, 4]), operand("y", [4, 4])))
    kernel = doubled("twice", "mm", "q")
    return Planned(
        [tensor("x", [4, 4]), tensor("y", [4, 4])],
        [operand("q", [4, 4])],
        [Step(call, ("x",)), Step(segment([kernel], ("mm",), ("q",)), ("mm", "y"))],
        [kernel],
        [memory("q", [4, 4])],
        **others,
    )


def compiled(plan: Planned, store: FileStore, **others: Any) -> Compiled:
    return load(plan.artifact(), store, **others)


def test_the_text_reads_like_the_graph(store: FileStore) -> None:
    assert compiled(mm_then_double(), store).artifact.wrapper == (
        "def call(args):\n"
        "    x, y = args\n"
        "    args.clear()\n"
        "    mm = aten_mm(x, y)  # aten.mm.default\n"
        "    del x\n"
        "    q, = segment_0(mm)\n"
        "    del mm, y\n"
        "    return [q]\n"
    )


def test_it_computes(store: FileStore) -> None:
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    arguments = [x, y]
    (q,) = compiled(mm_then_double(), store).call(arguments)
    assert arguments == []
    torch.testing.assert_close(q, torch.mm(x, y) * 2)


def test_arguments_die_after_their_last_use(store: FileStore) -> None:
    died: list[bool] = []
    plan = mm_then_double()
    call = compiled(plan, store).call
    x = torch.randn(4, 4)
    seen = weakref.ref(x)
    names = call.__globals__  # type: ignore[attr-defined]
    names["segment_0"] = lambda mm: (died.append(seen() is None), (mm,))[1]
    arguments = [x, torch.randn(4, 4)]
    del x
    call(arguments)
    gc.collect()
    assert died == [True]


def test_names_that_python_or_the_wrapper_has(store: FileStore) -> None:
    """Values may have the name of anything in the text: `args`, `torch`, a keyword, an
    operation."""
    call = aten("aten_mm", "aten.mm.default", (operand("args", [4, 4]), operand("lambda", [4, 4])))
    kernel = doubled("twice", "aten_mm", "torch")
    plan = Planned(
        [tensor("args", [4, 4]), tensor("lambda", [4, 4])],
        [
            operand("torch", [4, 4]),
            Operand("laid_out", "float32", (4,), (1,)),
            operand("segment_0", [2]),
        ],
        [Step(call), Step(segment([kernel], ("aten_mm",), ("torch",)))],
        [kernel],
        [memory("torch", [4, 4])],
    )
    plan.inputs += [tensor("laid_out", [4]), tensor("segment_0", [2])]
    x, y, z = torch.randn(4, 4), torch.randn(4, 4), torch.randn(4)
    q, same, _ = compiled(plan, store).call([x, y, z, torch.randn(2)])
    torch.testing.assert_close(q, torch.mm(x, y) * 2)
    assert same is z


def test_what_comes_as_foretold_takes_no_function_of_python(store: FileStore) -> None:
    """The result's strides are compared in the wrapper, its views and ATen are built-in
    functions: the only Python function is the wrapper."""
    views = [Operand("x", "float32", (4,), (1,), 4), Operand("x", "float32", (4,), (1,))]
    plan = Planned(
        [tensor("x", [4, 4])],
        [operand("c", [4])],
        [Step(aten("c", "aten.atan2.default", tuple(views), (4,)))],
        [],
        [],
    )
    call = compiled(plan, store).call
    called: list[str] = []

    def calls(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.append(frame.f_code.co_name)

    x = torch.randn(4, 4)
    sys.setprofile(calls)
    try:
        (c,) = call([x])
    finally:
        sys.setprofile(None)
    assert called == ["call"]
    assert torch.equal(c, torch.atan2(x[1], x[0]))


def test_strides_that_were_not_foretold(store: FileStore) -> None:
    call = aten("c", "aten.clone.default", (operand("x", [4, 4]),))
    kernel = doubled("twice", "c", "q")
    plan = Planned(
        [tensor("x", [4, 4])],
        [operand("q", [4, 4])],
        [Step(call), Step(segment([kernel], ("c",), ("q",)))],
        [kernel],
        [memory("q", [4, 4])],
    )
    made = compiled(plan, store)
    wrapper = made.artifact.wrapper
    assert "    if c.stride() != (4, 1) or c.shape != (4, 4):\n" in wrapper
    assert "        c = laid_out(c, (4, 4), (4, 1))\n" in wrapper
    x = torch.randn(4, 4)
    assert torch.equal(made.call([x.t()])[0], x.t() * 2)
    with pytest.raises(RuntimeError, match=r"returned \(16,\), not \(4, 4\)"):
        made.call([x.view(16)])


def test_views_of_operands(store: FileStore) -> None:
    """A call reads a loop's value through strides, an offset, and as another dtype."""
    kernel = doubled("twice", "x", "t")
    calls = [
        aten("a", "aten.clone.default", (Operand("t", "float32", (4, 4), (1, 4)),)),
        aten("b", "aten.clone.default", (Operand("t", "float32", (4,), (1,), 8),), (4,)),
        Call(
            "c",
            "aten.clone.default",
            (Operand("t", "int32", (16,), (1,)),),
            results=(Result("c", "int32", (16,), (1,)),),
        ),
    ]
    plan = Planned(
        [tensor("x", [4, 4])],
        [
            operand("t", [4, 4]),
            operand("a", [4, 4]),
            operand("b", [4]),
            operand("c", [16], "int32"),
        ],
        [Step(segment([kernel], ("x",), ("t",))), *map(Step, calls)],
        [kernel],
        [memory("t", [4, 4])],
    )
    x = torch.randn(4, 4)
    t, a, b, c = compiled(plan, store).call([x])
    assert torch.equal(a, t.t())
    assert torch.equal(b, t[2])
    assert torch.equal(c, t.view(torch.int32).view(16))


def test_memory_that_is_taken_over(store: FileStore) -> None:
    """The second segment overwrites the call's result, with other sizes and with the same."""
    call = aten("mm", "aten.mm.default", (operand("x", [4, 4]), operand("x", [4, 4])))
    kernel = doubled("twice", "mm", "q")
    plan = Planned(
        [tensor("x", [4, 4])],
        [operand("q", [2, 8])],
        [Step(call), Step(segment([kernel], ("mm",), ("q",)), ("mm",))],
        [kernel],
        [memory("q", [2, 8])],
        placements={"q": TakesOver("mm", True)},
    )
    made = compiled(plan, store)
    assert "segment_0(mm)\n    q = reinterpreted(mm, (2, 8), (8, 1), 0)" in made.artifact.wrapper
    x = torch.randn(4, 4)
    (q,) = made.call([x])
    torch.testing.assert_close(q, torch.mm(x, x).view(2, 8) * 2)
    plan.outputs = [operand("q", [4, 4])]
    made = compiled(plan, store)
    assert "    q = mm\n" in made.artifact.wrapper
    torch.testing.assert_close(made.call([x])[0], torch.mm(x, x) * 2)


def test_a_mutated_input(store: FileStore) -> None:
    kernel = doubled("twice", "x", "x")
    plan = Planned(
        [tensor("x", [4, 4])],
        [operand("x", [4, 4])],
        [Step(segment([kernel], ("x",), ()))],
        [kernel],
        [],
    )
    made = compiled(plan, store)
    assert made.artifact.entry
    x = torch.ones(4, 4)
    (same,) = made.call([x])
    assert same is x
    assert torch.equal(x, torch.full((4, 4), 2.0))


def test_constants_and_symbols(store: FileStore) -> None:
    """A constant comes from the graph module; a size that no argument passes follows from the
    others."""
    z0 = symbol("z0")
    kernel = Kernel(
        "scale",
        ("x", "c", "q"),
        "for (long i = 0; i < s[0]; i++)((float*)p[2])[i] = ((float*)p[0])[i] * ((float*)p[1])[0];",
        ("z0",),
    )
    plan = Planned(
        [tensor("x", [symbol("s0")]), Input("c", "float32", (1,), (1,), True)],
        [operand("q", [z0]), z0, True, 0.5],
        [Step(segment([kernel], ("x", "c"), ("q",), ("z0",)))],
        [kernel],
        [memory("q", [z0])],
        ["s0", "x"],
        symbols={"z0": "s0//2"},
    )
    x = torch.randn(9)
    made = compiled(plan, store, constants={"c": torch.tensor([3.0])})
    q, size, flag, number = made.call([9, x])
    torch.testing.assert_close(q, x[:4] * 3)
    assert (size, flag, number) == (4, True, 0.5)


def test_calls_that_answer_several(store: FileStore) -> None:
    def several(name: str, wanted: tuple[bool, bool]) -> Call:
        results = tuple(
            Result(f"{name}{i}", dtype, (4,), (1,)) if want else None
            for i, (want, dtype) in enumerate(zip(wanted, ("float32", "int64"), strict=True))
        )
        arguments = (operand("x", [4, 4]), 1)
        return Call(name, "aten.max.dim", arguments, results=results, single=False)

    calls = [several("a", (True, True)), several("b", (False, True)), several("c", (False, False))]
    plan = Planned(
        [tensor("x", [4, 4])],
        [operand("a0", [4]), operand("a1", [4], "int64"), operand("b1", [4], "int64")],
        [Step(call) for call in calls],
        [],
        [],
    )
    made = compiled(plan, store)
    assert made.artifact.unit == ""
    x = torch.randn(4, 4)
    values, indices, again = made.call([x])
    assert torch.equal(values, x.max(1).values)
    assert torch.equal(indices, again)


@pytest.mark.parametrize(
    ("target", "arguments", "keywords", "want"),
    [
        (
            "aten.full.default",
            ((4, 4), float("-inf")),
            (),
            lambda x: torch.full((4, 4), -torch.inf),
        ),
        (
            "aten.full.default",
            ((4, 4), 1),
            (("dtype", torch.float32), ("device", torch.device("cpu"))),
            lambda x: torch.ones(4, 4),
        ),
        (
            "aten.clone.default",
            (operand("x", [4, 4]),),
            (("memory_format", torch.contiguous_format),),
            lambda x: x,
        ),
        ("aten.cat.default", ([operand("x", [4, 4])], 0), (), lambda x: x),
        ("aten.cat.default", ((operand("x", [4, 4]),),), (), lambda x: x),
        ("aten.sum.dim_IntList", (operand("x", [4, 4]), (0,), True), (), lambda x: x.sum(0, True)),
        ("aten.gelu.default", (operand("x", [4, 4]),), (("approximate", "tanh"),), None),
    ],
)
def test_arguments_of_every_kind(
    store: FileStore,
    target: str,
    arguments: tuple[object, ...],
    keywords: tuple[tuple[str, object], ...],
    want: Any,
) -> None:
    x = torch.randn(4, 4)
    expected = torch.nn.functional.gelu(x, approximate="tanh") if want is None else want(x)
    shape = tuple(expected.shape)
    call = Call("q", target, arguments, keywords, results=(Result("q", "float32", shape, (4, 1)),))
    plan = Planned([tensor("x", [4, 4])], [operand("q", list(shape))], [Step(call)], [], [])
    (q,) = compiled(plan, store).call([x])
    assert torch.equal(q, expected)


def test_a_traceback_shows_the_wrappers_line(store: FileStore) -> None:
    call = compiled(mm_then_double(), store).call
    try:
        call([torch.randn(4, 4), torch.randn(5, 5)])
    except RuntimeError as error:
        text = "".join(traceback.format_exception(error))
    assert "mm = aten_mm(x, y)  # aten.mm.default" in text
    assert "<tcw graph 0/0/forward" in text


def test_reasons_are_words_and_nothing_else(store: FileStore) -> None:
    plan = mm_then_double()
    plan.steps[0] = Step(
        aten(
            "mm",
            "aten.mm.default",
            (operand("x", [4, 4]), operand("y", [4, 4])),
            reason="no lowering\n    import os",
        )
    )
    text = compiled(plan, store).artifact.wrapper
    assert "# aten.mm.default: no lowering?    import os\n" in text


def test_operations_by_name() -> None:
    x = torch.arange(3.0)
    assert torch.equal(operation("aten.add.Tensor")(x, x, alpha=2), 3 * x)
    for name, plain in PLAIN.items():
        assert operation(name) is getattr(torch, plain)
        overload = getattr(torch.ops.aten, plain).default
        assert overload._schema.overload_name == ""
    with pytest.raises(UnknownOperation, match=r"there is no operation nothing\.at\.all"):
        operation("nothing.at.all")
