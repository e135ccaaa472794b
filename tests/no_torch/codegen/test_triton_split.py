"""A nest as GPU kernels: which form each has, and what goes through the workspace."""

from __future__ import annotations

from tcw.compiler.codegen.triton.limits import Limits
from tcw.compiler.codegen.triton.parts import Part
from tcw.compiler.codegen.triton.split_nest import Split
from tcw.compiler.codegen.triton.tiles import choose
from tcw.compiler.gpu.architectures import ARCHITECTURES
from tcw.compiler.loops.expressions import Address, Local, Op, Read
from tcw.compiler.loops.nest import Axis, Let, Nest, Reduction, Statement, Write
from tcw.compiler.loops.sizes import Size, multiply, symbol

F32 = "float32"
LIMITS = Limits(ARCHITECTURES["sm_90"], {"s0": 4096})


def parts(rows: Size, columns: Size, *statements: Statement) -> list[Part]:
    return Split(Nest("nest", (Axis(rows), Axis(columns)), statements), LIMITS).parts()


def whole(columns: Size) -> Address:
    return Address((columns, 1))


def sum_of(name: str, value: str, over: int) -> Reduction:
    return Reduction(name, F32, "sum", Local(value, F32), (over,), (1 - over,))


def times(name: str, left: str, right: str) -> Let:
    return Let(name, F32, Op("mul", (Local(left, F32), Local(right, F32)), F32), (0, 1))


def norm_backward(columns: Size) -> tuple[Statement, ...]:
    """Rows that need their own sum, and a sum over these rows."""
    return (
        Let("v", F32, Read("x", whole(columns), F32), (0, 1)),
        sum_of("row", "v", 1),
        times("scaled", "v", "row"),
        Write("y", F32, whole(columns), Local("scaled", F32), (0, 1)),
        sum_of("column", "scaled", 0),
        Write("z", F32, Address((0, 1)), Local("column", F32), (1,)),
    )


def forms(found: list[Part]) -> list[str]:
    return [part.form for part in found]


def test_sums_over_rows_ride_with_the_rows() -> None:
    riding, totals = parts(32768, 512, *norm_backward(512))
    assert (riding.form, totals.form) == ("riding", "rows")
    assert riding.programs == 4 * LIMITS.processors
    assert riding.partials["column"].width == 512
    assert totals.nest.axes == (Axis(riding.programs, True), Axis(512))
    assert totals.nest.writes() == ("z",)


def test_rows_that_no_program_can_hold_are_read_again() -> None:
    for columns in (100_000, symbol("s0")):
        found = parts(4096, columns, *norm_backward(columns))
        assert "riding" not in forms(found)
        split = Split(Nest("n", (Axis(4096), Axis(columns)), norm_backward(columns)), LIMITS)
        split.parts()
        assert any(name.startswith("row") for name in split.workspace.places), "the rows' sums"


def test_rows_that_lie_across_memory_have_no_riders() -> None:
    found = parts(
        64,
        70_000,
        Let("v", F32, Read("x", whole(70_000), F32), (0, 1)),
        sum_of("column", "v", 0),
        times("scaled", "v", "column"),
        sum_of("row", "scaled", 1),
        Write("z", F32, Address((1, 0)), Local("row", F32), (0,)),
    )
    assert "riding" not in forms(found)
    for part in found:
        row = [axis.size for axis in part.nest.axes if axis.reduced]
        tile = choose(part, LIMITS)
        held = tile.looped or not row or tile.r_block >= LIMITS.number(multiply(1, *row))
        assert held, f"{part.form}: {tile}"


def test_few_long_rows_are_shared_by_programs() -> None:
    partial, totals = parts(
        2,
        1 << 22,
        Let("v", F32, Read("x", whole(1 << 22), F32), (0, 1)),
        sum_of("row", "v", 1),
        Write("z", F32, Address((1, 0)), Local("row", F32), (0,)),
    )
    assert (partial.form, totals.form) == ("partial", "rows")
    assert partial.programs * 2 >= 2 * LIMITS.processors
    assert totals.nest.axes == (Axis(partial.programs, True), Axis(2))


def test_a_write_waits_for_the_last_read_of_what_it_overwrites() -> None:
    columns = 100_000
    found = parts(
        4096,
        columns,
        Let("v", F32, Read("x", whole(columns), F32), (0, 1)),
        sum_of("row", "v", 1),
        times("scaled", "v", "row"),
        Write("x", F32, whole(columns), Local("scaled", F32), (0, 1)),
        sum_of("column", "v", 0),
        Write("z", F32, Address((0, 1)), Local("column", F32), (1,)),
    )
    order = [("x" in part.nest.writes(), "x" in part.nest.reads()) for part in found]
    last_read = max(number for number, (_, reads) in enumerate(order) if reads)
    (write,) = [number for number, (writes, _) in enumerate(order) if writes]
    assert write == last_read


def test_what_one_program_would_compute_of_many_rows_their_programs_compute() -> None:
    """The mean of a cross entropy: each row's program computes its loss."""

    def loss(rows: int) -> list[Part]:
        return parts(
            rows,
            1024,
            Let("v", F32, Read("x", whole(1024), F32), (0, 1)),
            sum_of("row", "v", 1),
            Let("log", F32, Op("log", (Local("row", F32),), F32), (0,)),
            Reduction("all", F32, "sum", Local("log", F32), (0,), ()),
            Write("y", F32, Address((0, 0)), Local("all", F32), ()),
        )

    rows, last = loss(8192)
    assert [s.name for s in rows.nest.statements if isinstance(s, (Let, Reduction))][-1] == "log"
    assert not any(isinstance(s, Let) for s in last.nest.statements)
