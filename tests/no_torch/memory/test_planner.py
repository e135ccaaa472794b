"""The planner, checked on random programs and by hand on small ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcw.compiler.control.gate import Gate
from tcw.compiler.loops.expressions import Address, Local, Op, Read
from tcw.compiler.loops.graph import Call, Graph, Result
from tcw.compiler.loops.nest import Axis, Let, Nest, Program, Reduction, Statement, Write
from tcw.compiler.loops.sizes import multiply, symbol
from tcw.compiler.memory import reuse
from tcw.compiler.memory.accesses import Values
from tcw.compiler.memory.plan import InArena, New, Plan, Segment, TakesOver
from tcw.compiler.memory.planner import plan
from tcw.compiler.protocol.decision import decision_id
from tests.no_torch.loops.samples import memory, pointwise_nest, source, tensor
from tests.no_torch.memory.checked_plan import WrongPlan, check_plan
from tests.no_torch.memory.programs import programs


@settings(max_examples=300)
@given(programs())
def test_no_random_nest_writes_what_it_reads_by_another_name(program: Program) -> None:
    """Fusion makes none: such a nest would read elements that it has overwritten."""
    owner: dict[str, str] = {}
    for step in program.steps:
        if isinstance(step, Call):
            for result in step.results if step.aliases else ():
                owner[result.name] = owner.get(step.aliases[0], step.aliases[0])
            continue
        read = {owner.get(name, name) for name in step.reads()}
        assert not read & set(step.writes())


@settings(max_examples=200)
@given(programs(), st.booleans())
def test_random_programs(program: Program, donate: bool) -> None:
    donated = tuple(p for p in program.graph.parameters if p.startswith("input")) if donate else ()
    made = plan(program, donated=donated)
    check_plan(program, made, donated)
    assert made == plan(program, Gate(), donated)
    assert made.peak_bytes is not None
    assert made.without_reuse_bytes is not None
    assert made.peak_bytes <= made.without_reuse_bytes + 64 * len(program.memories) * 8


@settings(max_examples=50)
@given(programs())
def test_an_overwrite_is_judged_once_for_all_orders(program: Program) -> None:
    judged: list[tuple[str, str, str]] = []
    real = reuse._refusal

    def counted(nest: Nest, written: str, read: str, values: Values) -> reuse.Refusal | None:
        judged.append((nest.name, written, read))
        return real(nest, written, read, values)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reuse, "_refusal", counted)
        plan(program)
    assert len(judged) == len(set(judged))


@settings(max_examples=100)
@given(programs())
def test_every_reuse_can_be_refused(program: Program) -> None:
    ids = [decision_id("random", "reuse", name) for name in program.memories]
    made = plan(program, Gate(dict.fromkeys(ids, "own")))
    check_plan(program, made)
    assert not any(isinstance(p, TakesOver) for p in made.placements.values())


ROWS = 8


def small(*steps: Nest | Call, outputs: tuple[str, ...]) -> Program:
    """Steps on values of 64 x 8 float32 elements; `x` and `y` are inputs."""
    size = 64 * ROWS
    memories = {
        name: memory(name, (size,))
        for step in steps
        if isinstance(step, Nest)
        for name in step.writes()
        if name not in ("x", "y")
    }
    calls = [step for step in steps if isinstance(step, Call)]
    graph = Graph(
        "0/0/forward",
        [source("x", (size,)), source("y", (size,)), *calls],
        ["x", "y"],
        [tensor(name, (size,)) for name in outputs],
    )
    return Program(graph, steps, memories)


def loop(reads: str, writes: str) -> Nest:
    return pointwise_nest(f"nest_{writes}", tuple(reads.split()), writes, 64 * ROWS)


def mm(name: str, *reads: str, target: str = "aten.mm.default") -> Call:
    size = 64 * ROWS
    return Call(
        name,
        target,
        tuple(tensor(read, (size,)) for read in reads),
        results=(Result(name, "float32", (size,), (1,)),),
    )


def planned(program: Program, gate: Gate | None = None, donated: tuple[str, ...] = ()) -> Plan:
    made = plan(program, gate, donated)
    check_plan(program, made, donated)
    return made


def test_one_segment_keeps_its_temporaries_in_an_arena_and_in_place() -> None:
    program = small(loop("x", "a"), loop("a", "b"), loop("b y", "c"), outputs=("c",))
    made = planned(program)
    (step,) = made.steps
    assert isinstance(step.run, Segment)
    assert step.run.takes == ("x", "y")
    assert step.run.gives == ("c",)
    assert made.placements == {"a": InArena(0), "b": TakesOver("a", True), "c": New()}
    assert step.run.arena_bytes == 2048
    assert (made.peak_bytes, made.without_reuse_bytes) == (4096, 3 * 2048)


def test_an_output_takes_over_what_a_matmul_answered() -> None:
    program = small(mm("h", "x", "y"), loop("h x", "out"), outputs=("out",))
    made = planned(program)
    assert made.placements["out"] == TakesOver("h", True)
    segment = made.steps[1].run
    assert isinstance(segment, Segment)
    assert segment.takes == ("h", "x")
    assert segment.gives == ("out",)
    assert made.peak_bytes == 2048


def test_the_memory_of_an_input_is_taken_only_where_it_is_given_up() -> None:
    program = small(loop("x", "out"), outputs=("out",))
    assert planned(program).placements["out"] == New()
    assert planned(program, donated=("x",)).placements["out"] == TakesOver("x", True)


@pytest.mark.parametrize("target", ["aten.view.default", "mine.anything.default"])
def test_what_may_be_shared_is_not_taken(target: str) -> None:
    program = small(mm("h", "x", target=target), loop("h", "out"), outputs=("out",))
    assert planned(program).placements["out"] == New()


def test_an_alias_keeps_its_memory() -> None:
    call = replace(mm("view", "h", target="aten.alias.default"), aliases=("h",))
    program = small(mm("h", "x"), call, loop("h", "out"), outputs=("out", "view"))
    assert planned(program).placements["out"] == New()


def test_nests_gather_between_calls() -> None:
    steps = (
        loop("x", "a"),
        mm("first", "a"),
        loop("first", "b"),
        mm("second", "a"),
        loop("second", "c"),
        mm("third", "b", "c"),
    )
    made = planned(small(*steps, outputs=("third",)))
    runs = [step.run for step in made.steps]
    assert [run.name for run in runs] == ["segment_0", "first", "second", "segment_1", "third"]


def test_a_large_value_is_made_late() -> None:
    steps = (
        loop("x", "a"),
        loop("y", "mask"),
        mm("first", "a"),
        loop("first", "b"),
        mm("second", "b"),
        loop("second mask", "c"),
    )
    program = small(*steps, outputs=("c",))
    gate = Gate()
    made = planned(program, gate)
    last = made.steps[-1].run
    assert isinstance(last, Segment)
    assert [nest.name for nest in last.nests] == ["nest_mask", "nest_c"]
    (order,) = [one for one in gate.decided if one.decision.kind == "order"]
    assert order.choice == "late"
    early = planned(program, Gate({"tcw/0/0/forward/order/steps": "early"}))
    assert early.peak_bytes is not None
    assert made.peak_bytes is not None
    assert early.peak_bytes > made.peak_bytes


@pytest.mark.parametrize("freed", [True, False])
def test_the_last_reader_of_what_is_freed_stands_early(freed: bool) -> None:
    """The incoming gradient is summed before the large products, not after them. Its last other
    reader is the call right before the nests."""
    steps = (
        loop("y", "mask"),
        mm("first", "x"),
        loop("first", "b"),
        loop("x", "sum"),
        mm("second", "b"),
        loop("second mask", "c"),
    )
    made = plan(small(*steps, outputs=("c", "sum")), freed_inputs=("x",) if freed else ())
    runs = [step.run for step in made.steps]
    first, last = (run for run in runs if isinstance(run, Segment))
    names = [[nest.name for nest in one.nests] for one in (first, last)]
    if freed:
        assert names == [["nest_b", "nest_sum"], ["nest_mask", "nest_c"]]
    else:
        assert names == [["nest_b"], ["nest_mask", "nest_sum", "nest_c"]]


@pytest.mark.parametrize("target", ["aten.mm.default", "mine.matmul.default"])
def test_of_neighbouring_calls_the_one_that_lets_go_more_stands_first(target: str) -> None:
    steps = (
        mm("gradient", "x"),
        mm("wide", "gradient", target=target),
        mm("weight", "gradient", "saved", target=target),
        loop("wide weight", "out"),
    )
    program = small(*steps, outputs=("out",))
    graph = program.graph
    graph = replace(graph, nodes=[source("saved", (64 * ROWS,)), *graph.nodes])
    graph = replace(graph, parameters=[*graph.parameters, "saved"])
    made = planned(replace(program, graph=graph), donated=("saved",))
    moved = ["gradient", "weight", "wide", "segment_0"]
    known = target.startswith("aten")
    assert [s.run.name for s in made.steps] == (moved if known else program_order(steps))


def program_order(steps: Sequence[Nest | Call]) -> list[str]:
    return [*(step.name for step in steps if isinstance(step, Call)), "segment_0"]


def test_a_reuse_is_a_decision_with_its_reason() -> None:
    program = small(mm("h", "x", "y"), loop("h x", "out"), outputs=("out",))
    gate = Gate({"tcw/0/0/forward/reuse/out": "own"})
    assert planned(program, gate).placements["out"] == New()
    (one,) = gate.decided
    assert one.overridden
    assert one.decision.rule == "in-place"
    assert "h is read at the same addresses for the last time" in one.decision.reason
    assert one.decision.numbers == {"bytes": 2048}


def flipped(reads: str, writes: str) -> Nest:
    size = 64 * ROWS
    read = Read(reads, Address((-1,), size - 1), "float32")
    write = Write(writes, "float32", Address((1,)), read, (0,))
    return Nest(f"nest_{writes}", (Axis(size),), (write,))


def test_a_forced_reuse_is_refused_where_the_addresses_differ() -> None:
    program = small(mm("h", "x", "y"), flipped("h", "out"), outputs=("out",))
    gate = Gate({"tcw/0/0/forward/reuse/out": "reuse"})
    assert planned(program, gate).placements["out"] == New()
    (one,) = gate.decided
    assert "rule addresses" in one.refused


def softmax_like(middle: bool) -> Nest:
    """A row's maximum, then the write; `middle`: a second row loop uses x again."""
    at = Address((64, 1))
    x = Read("h", at, "float32")
    statements: list[Statement] = [
        Reduction("amax", "float32", "max", x, (1,), (0,)),
        Let("less", "float32", Op("sub", (x, Local("amax", "float32")), "float32"), (0, 1)),
        Write("out", "float32", at, Local("less", "float32"), (0, 1)),
    ]
    if middle:
        total = Reduction("total", "float32", "sum", Local("less", "float32"), (1,), (0,))
        rest = Op("div", (Local("less", "float32"), Local("total", "float32")), "float32")
        statements += [total, Write("last", "float32", at, rest, (0, 1))]
    return Nest("rows", (Axis(ROWS), Axis(64, True)), tuple(statements))


def test_rows_are_written_in_place_only_in_the_last_loop_that_reads_them() -> None:
    made = planned(small(mm("h", "x", "y"), softmax_like(False), outputs=("out",)))
    assert made.placements["out"] == TakesOver("h", True)
    made = planned(small(mm("h", "x", "y"), softmax_like(True), outputs=("out", "last")))
    assert made.placements == {"out": New(), "last": TakesOver("h", True)}


def test_the_checker_finds_a_wrong_plan() -> None:
    program = small(mm("h", "x", "y"), loop("h", "a"), loop("h a", "out"), outputs=("out",))
    made = plan(program)
    wrong = replace(made, placements={**made.placements, "a": TakesOver("h", True)})
    with pytest.raises(WrongPlan):
        check_plan(program, wrong)
    program = small(loop("x", "a"), loop("x", "b"), loop("a b", "out"), outputs=("out",))
    made = plan(program)
    wrong = replace(made, placements={**made.placements, "b": InArena(0), "a": InArena(0)})
    with pytest.raises(WrongPlan, match="reads a, but b is there"):
        check_plan(program, wrong)


def test_symbolic_temporaries_share_slots_of_equal_size() -> None:
    size = multiply(64, symbol("s0"))
    steps = [
        pointwise_nest("one", ("x",), "a", size),
        pointwise_nest("two", ("a", "x"), "b", size),
        pointwise_nest("three", ("a", "b"), "c", size),
        pointwise_nest("four", ("c", "x"), "out", size),
    ]
    graph = Graph("sizes", [source("x", (size,))], ["s0", "x"], [tensor("out", (size,))])
    graph.hints["s0"] = 16
    memories = {name: memory(name, (size,)) for name in ("a", "b", "c", "out")}
    program = Program(graph, tuple(steps), memories)
    made = planned(program)
    (step,) = made.steps
    assert isinstance(step.run, Segment)
    assert step.run.sizes == ("s0",)
    assert step.run.arena_bytes == multiply(512, symbol("s0"))
    assert made.placements["c"] == TakesOver("a", True)


def test_lone_sizes_are_not_padded_to_death() -> None:
    size = symbol("s0")
    steps = (pointwise_nest("one", ("x",), "a", size), pointwise_nest("two", ("a",), "out", size))
    graph = Graph("sizes", [source("x", (size,))], ["s0", "x"], [tensor("out", (size,))])
    memories = {name: memory(name, (size,)) for name in ("a", "out")}
    program = Program(graph, steps, memories)
    graph.hints["s0"] = 100000
    made = planned(program)
    assert made.placements["a"] == New()
    assert made.placements["out"] == New()
    assert made.steps[0].dies == ("x", "a")
    graph.hints["s0"] = 10
    assert planned(program).placements["a"] == InArena(0)


def test_nothing_to_do() -> None:
    assert planned(Program(Graph("empty"), ())) == Plan((), {}, 0, 0)
