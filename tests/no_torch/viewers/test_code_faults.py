"""What generated loops do worse than they could."""

from __future__ import annotations

from msgspec import structs

from tcw.compiler.protocol.torch_settings import read_setting
from tcw.compiler.trace.records import (
    Decided,
    Environment,
    Graph,
    Kernel,
    LoopLine,
    NestLoops,
    Node,
    Partition,
    SavedValue,
    SchedulerNode,
    TensorMeta,
    Text,
)
from tcw.viewers.recording import Recording
from tcw.viewers.summary.code_faults import REALIZE, CodeFault, code_faults, vector_axis
from tests.inductor_loops import nest_in
from tests.no_torch import traces

GRAPH = "0/0/inference/lowered"
ROWS = "for p0 in 512:\n  for p1 in 4096:\n"
SIN = "    load = load(arg0_1, 4096*p0 + p1)\n    sin = sin(load)\n    store(buf0, p1, sin)\n"
EVERY_SECOND = (
    "for p0 in 1048576:\n  load = load(arg0_1, 2*p0)\n  sin = sin(load)\n"
    "  store(buf1, p0, sin)\n"
)  # fmt: skip
HEAD = "for(int64_t x0=0L; x0<static_cast<int64_t>(9L); x0+=static_cast<int64_t>({}L))"
VECTORS = (
    f"    #pragma omp parallel\n    {{\n    {HEAD.format(8)}\n    {{ at::vec::f(); }}\n    }}\n"
)
SCALARS = f"    {HEAD.format(1)}\n    {{ std::sin(x); }}\n"


def lines_of(text: str) -> tuple[LoopLine, ...]:
    """A nest whose `sin` is that of the node `sin`."""
    return tuple(
        structs.replace(line, node="sin") if line.operation == "sin" else line
        for line in nest_in(text)
    )


def faults(nests: list[str], code: str = "", threads: int = 2) -> list[CodeFault]:
    operations = [
        SchedulerNode(graph=GRAPH, name=f"op{n}", kind="pointwise", origins=("sin",), label="sin")
        for n in range(len(nests))
    ]
    loops = tuple(
        NestLoops(nodes=(f"op{n}",), lines=lines_of(text)) for n, text in enumerate(nests)
    )
    kernel = Kernel(
        id="k0", graph=GRAPH, name="f", label="sin", language="cpp", text="code", nests=loops
    )  # fmt: skip
    meta = TensorMeta(shape=(512, 4096), dtype="float32")
    sin = Node(
        name="sin", op="call_function", target="aten.sin.default", value=meta,
        location=traces.at(5),
    )  # fmt: skip
    graph = Graph(id=GRAPH, kind="lowered", compile_id="0/0", nodes=(sin,))
    opening = [structs.replace(one, threads=threads) if isinstance(one, Environment) else one
               for one in traces.opening()]  # fmt: skip
    records = [*opening, Text(hash="code", body=code), graph, *operations, kernel]
    return list(code_faults(Recording(records)))


def test_a_value_in_two_loops_is_computed_again() -> None:
    (again,) = faults([ROWS + SIN, EVERY_SECOND])
    assert (again.kind, again.weight, again.kernels) == ("computed again", 1048576, ("k0",))
    assert again.text.startswith("sin is computed 1.5 times ")
    assert again.location is not None
    assert again.location.line == 5


def test_the_setting_for_it_is_one_of_torchs() -> None:
    assert read_setting(REALIZE).name == "realize_opcount_threshold"


def test_a_value_in_a_loop_over_more_elements_is_computed_again() -> None:
    (again,) = faults(["for p2 in 8:\n  for p0 in 512:\n    for p1 in 4096:\n"
                       "      load = load(x, p1)\n      sin = sin(load)\n"])  # fmt: skip
    assert again.text.startswith("sin is computed 8 times ")


def test_a_loop_computes_the_same_value_once() -> None:
    """The code generator finds what is the same, however it is written."""
    twice = SIN.replace("sin", "sin_1").replace("4096*p0 + p1", "(p1 + 4096*p0)")
    twice = twice.replace("sin_1(", "sin(").replace("load =", "load_2 =").replace(
        "(load)", "(load_2)"
    )  # fmt: skip
    assert faults([ROWS + SIN + twice]) == []
    other = twice.replace("p1 + 4096*p0", "p1 + 4096*p0 + 1")
    assert [one.kind for one in faults([ROWS + SIN + other])] == ["computed again"]


def test_masked_parts_and_symbolic_sizes_say_nothing() -> None:
    masked = "    masked_subblock1:\n" + SIN.replace("    ", "      ")
    assert faults([ROWS + SIN + masked]) == []
    assert faults([(ROWS + SIN).replace("512", "s0"), (ROWS + SIN).replace("512", "s0")]) == []


def test_a_scalar_loop_with_its_gaps_and_its_thread() -> None:
    found = {one.kind: one for one in faults([EVERY_SECOND], SCALARS)}
    assert set(found) == {"no vectors", "one thread"}
    assert "arg0_1 with a step of 2 elements" in found["no vectors"].text
    assert found["no vectors"].line == 1
    assert [one.kind for one in faults([EVERY_SECOND], SCALARS, threads=1)] == ["no vectors"]
    assert [one.kind for one in faults([EVERY_SECOND], VECTORS)] == ["strided reads"]


def test_the_axis_of_the_vectors() -> None:
    assert vector_axis([HEAD.format(1), HEAD.replace("x0", "x1").format(8)]) == 1
    assert vector_axis([HEAD.format(16)]) == 0
    assert vector_axis([HEAD.format(1)]) is None


def test_our_engine_says_why() -> None:
    operation = SchedulerNode(
        graph=GRAPH, name="op0", kind="pointwise", origins=("sin",), label="sin",
        nest=nest_in(ROWS + SIN),
    )  # fmt: skip
    kernel = Kernel(
        id="k0", graph=GRAPH, name="f", label="sin", language="cpp", nodes=("op0",),
        origins=("sin",),
    )  # fmt: skip
    scalar = Decided(
        id="tcw/0/0/inference/vector/sin", graph="0/0/inference", kind="vector", default="1",
        choice="1", reason="whose elements lie apart",
    )  # fmt: skip
    records = [*traces.opening(), operation, kernel, scalar]
    (found,) = code_faults(Recording(records))
    assert found.kind == "no vectors"
    assert found.text.endswith("whose elements lie apart")
    fine = structs.replace(scalar, choice="8")
    assert code_faults(Recording([*records[:-1], fine])) == ()


def test_what_the_backward_computes_again() -> None:
    again = SavedValue(node="exp", choice="recomputed", bytes=1 << 20, location=traces.at(9))
    split = Partition(
        compile_id="0/0", joint="0/0/joint", forward="0/0/forward", backward="0/0/backward",
        values=(again,),
    )  # fmt: skip
    (found,) = code_faults(Recording([*traces.opening(), split]))
    assert (found.kind, found.location) == ("recomputed", traces.at(9))
    small = structs.replace(split, values=(structs.replace(again, bytes=8),))
    assert code_faults(Recording([*traces.opening(), small])) == ()
