"""Random programs: nests that read and write each other's values, calls, mutations, aliases."""

from __future__ import annotations

from hypothesis import strategies as st

from tcw.compiler.loops.expressions import Address, Const, Expression, Local, Op, Read
from tcw.compiler.loops.graph import Call, Graph, Input, Operand, Result
from tcw.compiler.loops.nest import Axis, Let, Memory, Nest, Program, Reduction, Statement, Write
from tcw.compiler.loops.sizes import Size, multiply, symbol

ROWS = (3, symbol("s0"))
COLUMNS = 40


def operand(name: str, rows: Size) -> Operand:
    return Operand(name, "float32", (rows, COLUMNS), (COLUMNS, 1))


def matrix(name: str, rows: Size) -> Memory:
    return Memory(name, "float32", (rows, COLUMNS), multiply(rows, COLUMNS))


@st.composite
def nests(draw: st.DrawFn, name: str, reads: list[str], rows: Size, written: list[str]) -> Nest:
    """Rows of sums: each write is of an earlier or a later loop over the row."""
    at, flipped = Address((COLUMNS, 1)), Address((COLUMNS, -1), COLUMNS - 1)
    statements: list[Statement] = []
    total: Expression = Const(1.0, "float32")
    for place, read in enumerate(reads):
        address = flipped if draw(st.integers(0, 4)) == 0 else at
        total = Op("add", (total, Read(read, address, "float32")), "float32")
        if draw(st.booleans()):
            local = f"{name}_{place}"
            statements.append(Let(local, "float32", total, (0, 1)))
            total = Local(local, "float32")
    for place, value in enumerate(written):
        kind = draw(st.sampled_from(["plain", "plain", "row", "rider"]))
        if kind == "row":
            row = f"{name}_row_{place}"
            statements.append(Reduction(row, "float32", "max", total, (1,), (0,)))
            total = Op("sub", (total, Local(row, "float32")), "float32")
        elif kind == "rider":
            statements.append(Reduction(f"{name}_sum_{place}", "float32", "sum", total, (0,), (1,)))
        statements.append(Write(value, "float32", at, total, (0, 1)))
    return Nest(name, (Axis(rows), Axis(COLUMNS, True)), tuple(statements))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """At most 14 steps on matrices of two sizes, one of them symbolic."""
    known: dict[str, Size] = {}
    nodes: list[Input | Call] = []
    for i in range(draw(st.integers(1, 3))):
        rows = ROWS[draw(st.integers(0, 1))]
        known[f"input{i}"] = rows
        nodes.append(Input(f"input{i}", "float32", (rows, COLUMNS), (COLUMNS, 1)))
    inputs = list(known)
    owner = {name: name for name in inputs}
    """Of each value: the one whose memory it shows."""
    steps: list[Nest | Call] = []
    memories: dict[str, Memory] = {}
    for i in range(draw(st.integers(1, 14))):
        rows = known[draw(st.sampled_from(sorted(known)))]
        same = [name for name, size in known.items() if size == rows]
        reads = draw(st.lists(st.sampled_from(same[-4:]), min_size=1, max_size=3, unique=True))
        if draw(st.integers(0, 3)) == 0:
            call = _call(f"call{i}", reads, rows, draw(st.integers(0, 5)))
            nodes.append(call)
            steps.append(call)
            if call.results:
                known[f"call{i}"] = rows
                owner[f"call{i}"] = owner[reads[0]] if call.aliases else f"call{i}"
            continue
        written = [f"value{i}_{j}" for j in range(draw(st.integers(1, 2)))]
        read = {owner[name] for name in reads}
        mutable = [name for name in inputs if known[name] == rows and name not in read]
        if mutable and draw(st.integers(0, 6)) == 0:
            written.append(mutable[0])
        steps.append(draw(nests(f"nest{i}", reads, rows, written)))
        for name in written:
            if name not in known:
                known[name] = rows
                owner[name] = name
                memories[name] = matrix(name, rows)
    wanted = draw(st.lists(st.sampled_from(sorted(known)), min_size=1, max_size=3, unique=True))
    graph = Graph(
        "random",
        list(nodes),
        ["s0", *inputs],
        [operand(name, known[name]) for name in wanted],
        hints={"s0": draw(st.sampled_from([0, 1, 3, 5]))},
    )
    return Program(graph, tuple(steps), memories)


def _call(name: str, reads: list[str], rows: Size, kind: int) -> Call:
    first = operand(reads[0], rows)
    result = Result(name, "float32", (rows, COLUMNS), (COLUMNS, 1))
    if kind == 0:
        return Call(name, "aten.mul_.Scalar", (first, 0.5), mutates=(reads[0],))
    if kind == 1:
        return Call(name, "aten.alias.default", (first,), results=(result,), aliases=(reads[0],))
    if kind == 2:
        return Call(name, "aten.neg.default", (first,), results=(result,))
    return Call(
        name,
        "aten.addmm.default",
        (first, Operand(reads[0], "float32", (rows, 1), (COLUMNS, 1)), _row(reads[-1])),
        results=(result,),
    )


def _row(name: str) -> Operand:
    return Operand(name, "float32", (1, COLUMNS), (COLUMNS, 1))
