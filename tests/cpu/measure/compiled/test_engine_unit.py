"""The text of a unit with clocks in it."""

from __future__ import annotations

from dataclasses import replace

from tcw.compiler.codegen.launcher.segment import (
    NUMBER,
    TENSOR,
    KernelCall,
    Parameter,
    SegmentFunction,
    TensorForm,
    segment_text,
)
from tcw.compiler.loops.sizes import symbol
from tcw.compiler.measure.compiled.engine_unit import clocked

SEGMENTS = (
    SegmentFunction(
        name="segment_0",
        parameters=(Parameter(TENSOR, "x"), Parameter(NUMBER, "s0")),
        outputs=(("y", TensorForm("float32", (symbol("s0"),), (1,))),),
        calls=(
            KernelCall("nest_mul", ("x", "t"), (symbol("s0"),), 0, "mul void* const p[] = {0};"),
            KernelCall("nest_add", ("t", "y"), (symbol("s0"),), 64, "nest_x(p, s, 0, error);"),
        ),
        temporaries=(("t", 128),),
        arena_bytes=256,
    ),
    SegmentFunction(
        name="segment_1",
        parameters=(Parameter(TENSOR, "y"),),
        outputs=(),
        calls=(KernelCall("nest_mul", ("y", "y")),),
    ),
)
(FIRST, _SITES), (SECOND, _MORE) = map(segment_text, SEGMENTS)
UNIT = f"{FIRST}{SECOND}"
SITES = [*_SITES, *(replace(one, line=one.line + FIRST.count("\n")) for one in _MORE)]


def test_sites_are_calls_in_order_whatever_comments_say() -> None:
    assert [(one.segment, one.function) for one in SITES] == [
        ("segment_0", "nest_mul"),
        ("segment_0", "nest_add"),
        ("segment_1", "nest_mul"),
    ]
    assert [one.symbols for one in SITES] == [("s0",), ("s0",), ()]
    assert [one.pointers for one in SITES] == [
        "t[0], arena + 128",
        "arena + 128, t[1]",
        "t[0], t[0]",
    ]
    assert [(one.sizes, one.workspace) for one in SITES] == [
        (True, False),
        (True, True),
        (False, False),
    ]


def test_each_call_stands_between_its_own_readings() -> None:
    lines = [line.strip() for line in clocked(UNIT, SITES).splitlines()]
    for number, call, probed in (
        (0, "nest_mul(p, s, 0, error);", "p, s, 0, sizeof p / sizeof *p, sizeof s / sizeof *s"),
        (1, "nest_add(p, s, workspace, error);", "p, s, workspace, "),
        (2, "nest_mul(p, 0, 0, error);", "p, 0, 0, sizeof p / sizeof *p, 0"),
    ):
        place = lines.index(f"probe_starts({number}, probe, n);")
        assert lines[place - 1].startswith(f"const ProbeCall probe = {{0, {probed}")
        assert lines[place : place + 3] == [
            f"probe_starts({number}, probe, n);",
            call,
            f"probe_ends({number}, probe, n);",
        ]
    assert "ProbeReading probe_readings[3];" in lines
    assert "probe_again" not in "".join(lines)


def test_a_unit_that_repeats_calls_knows_its_kernels() -> None:
    text = clocked(UNIT, SITES, device=1, repeats=True)
    for name, count in (("nest_mul", 2), ("nest_add", 1)):
        assert text.count(f"ProbeCall probe = {{(ProbeKernel*){name}, p, ") == count
    assert "stream = launcher->stream(1);" in text[text.index("int probe_again") :]


def test_a_unit_keeps_all_its_own_text() -> None:
    assert [
        line for line in UNIT.splitlines() if line not in clocked(UNIT, SITES).splitlines()
    ] == []
