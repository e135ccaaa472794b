"""The text of a unit with clocks in it."""

from __future__ import annotations

from compiler.codegen.launcher.segment import (
    KernelCall,
    Number,
    SegmentFunction,
    Tensor,
    TensorForm,
    segment_text,
)
from compiler.loops.sizes import symbol
from compiler.measure.probes.engine_unit import clocked, kernel_sites

UNIT = "\n".join(
    segment_text(one)
    for one in (
        SegmentFunction(
            name="segment_0",
            parameters=(Tensor("x"), Number("s0")),
            outputs=(("y", TensorForm("float32", (symbol("s0"),), (1,))),),
            calls=(
                KernelCall(
                    "nest_mul", ("x", "t"), (symbol("s0"),), 0, "mul void* const p[] = {0};"
                ),
                KernelCall("nest_add", ("t", "y"), (symbol("s0"),), 64, "nest_x(p, s, 0, error);"),
            ),
            temporaries=(("t", 128),),
            arena_bytes=256,
        ),
        SegmentFunction(
            name="segment_1",
            parameters=(Tensor("y"),),
            outputs=(),
            calls=(KernelCall("nest_mul", ("y", "y")),),
        ),
    )
)


def test_sites_are_calls_in_order_whatever_comments_say() -> None:
    found = kernel_sites(UNIT)
    assert [(one.segment, one.function) for one in found] == [
        ("segment_0", "nest_mul"),
        ("segment_0", "nest_add"),
        ("segment_1", "nest_mul"),
    ]
    assert [one.symbols for one in found] == [("s0",), ("s0",), ()]
    assert found[0].text == "nest_mul(t[0], arena + 128)"
    assert found[2].text == "nest_mul(t[0], t[0])"


def test_each_call_stands_between_its_own_readings() -> None:
    lines = [line.strip() for line in clocked(UNIT).splitlines()]
    for number, call in enumerate(
        (
            "nest_mul(p, s, 0, error);",
            "nest_add(p, s, workspace, error);",
            "nest_mul(p, 0, 0, error);",
        )
    ):
        place = lines.index(f"probe_starts({number}, p, n);")
        assert lines[place : place + 3] == [
            f"probe_starts({number}, p, n);",
            call,
            f"probe_ends({number}, p, n);",
        ]
    assert "ProbeReading probe_readings[3];" in lines


def test_a_unit_keeps_all_its_own_text() -> None:
    assert [line for line in UNIT.splitlines() if line not in clocked(UNIT).splitlines()] == []
