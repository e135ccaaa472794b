"""What makes a compile long: unrolled loops, equal blocks, loop bodies that explode."""

from __future__ import annotations

from collections.abc import Iterable

from tcw.compiler.trace.records import (
    AnyRecord,
    Graph,
    Guards,
    Location,
    LoopLine,
    Node,
    Phase,
    SchedulerNode,
    TensorMeta,
)
from tcw.viewers.recording import Recording
from tcw.viewers.summary.compile_costs import CompileCost, compile_costs
from tcw.viewers.summary.findings import findings_of
from tests.no_torch import traces

META = TensorMeta(shape=(2, 4), dtype="float32")


def at(line: int, function: str = "forward") -> Location:
    return Location(file="m.py", line=line, function=function)


def node(target: str, *lines: Location, module: str = "") -> Node:
    return Node(
        name="n", op="call_function", target=target, location=lines[-1], value=META,
        stack=lines if len(lines) > 1 else (), module=module,
    )  # fmt: skip


def took(**stages: float) -> list[AnyRecord]:
    names = {"capture": "dynamo", "autograd": "backend_compile", "codegen": "Scheduler.codegen"}
    return [
        Phase(id=number, name=names[stage], start=100.0 * number, seconds=seconds)
        for number, (stage, seconds) in enumerate(stages.items())
    ]


def costs(nodes: Iterable[Node], *more: AnyRecord) -> tuple[CompileCost, ...]:
    graph = Graph(id="0/0", kind="captured", compile_id="0/0", nodes=tuple(nodes))
    return compile_costs(Recording([*traces.opening(), graph, *more]))


def test_a_loop_of_several_lines_that_call_others_is_one() -> None:
    body = [
        node("torch.tanh", at(20), at(9, "solve"), at(3, "rate")),
        node("torch.sigmoid", at(20), at(9, "solve"), at(4, "rate")),
        node("operator.add", at(20), at(10, "solve")),
    ]
    before = [node("torch.sin", at(20), at(7, "solve"))] * 40
    guards = Guards(compile_id="0/0", guards=(), counted=214)
    (found,) = costs([*before, *body * 60], guards, *took(capture=8.0, autograd=1.0))
    assert found.location == at(9, "solve"), "the first line in the loop"
    assert found.cost == "8.0 s"
    assert "tanh, sigmoid, add are in the graph 60 times" in found.title
    assert found.notes == ("180 of 220 graph nodes", "214 guards", "capture took 8.0 s of 9.0 s")
    assert costs(body * 49) == ()
    assert costs([*body * 60, *(node(f"f{n}", at(n)) for n in range(200))]) == ()


def layers(count: int) -> list[Node]:
    return [
        node(f"torch.{name}", at(11), at(6), module=f"layers.{number}.{name}")
        for number in range(count)
        for name in ("linear", "relu")
    ]


def test_equal_blocks_of_a_long_compile_are_one_finding() -> None:
    """They are no unrolled loop: each has its own parameters."""
    (found,) = costs(layers(64), *took(capture=20.0, autograd=10.0, codegen=4.0))
    assert found.cost == "34.0 s"
    assert found.title.startswith("64 equal blocks of layers ")
    assert found.location == at(11)
    assert found.notes == (
        "100% of the graph's nodes",
        "capture and autograd took 30.0 s of 34.0 s",
    )
    assert [fix.code for fix in found.advice] == [
        "for block in model.layers:\n    block.compile()",
        "@torch.compiler.nested_compile_region",
    ]


def test_blocks_of_a_short_compile_or_unlike_ones_are_none() -> None:
    long = took(capture=20.0)
    assert costs(layers(64), *took(capture=5.0)) == ()
    assert costs(layers(7), *long) == ()
    unlike = [
        node(f"torch.f{number}", at(11), at(6), module=f"layers.{number}") for number in range(20)
    ]
    assert costs(unlike, *long) == ()


def test_a_loop_body_of_few_nodes_that_explodes() -> None:
    lowered = "0/0/backward/lowered"
    origins = tuple(f"mul_{number}" for number in range(32))
    nodes = tuple(
        Node(name=name, op="call_function", target="aten.mul.Tensor", location=at(5))
        for name in origins
    )
    line = LoopLine(operation="mul", depth=1)
    body = SchedulerNode(
        graph=lowered, name="op0", kind="pointwise", origins=origins, label="mul",
        nest=(LoopLine(variable="p0", size=64), *[line] * 2000),
    )  # fmt: skip
    graph = Graph(id=lowered, kind="lowered", compile_id="0/0", nodes=nodes)
    (found,) = costs([], graph, body, *took(codegen=27.0, capture=3.0))
    assert found.cost == "27.0 s"
    assert "32 graph nodes became one loop of 2,000 operations" in found.title
    assert found.location == at(5)
    assert "codegen took 27.0 s of 30.0 s" in found.notes
    assert costs([], graph, body, *took(codegen=3.0)) == ()


def test_they_are_findings_with_their_line() -> None:
    graph = Graph(
        id="0/0", kind="captured", compile_id="0/0", nodes=(node("torch.tanh", at(7)),) * 80
    )
    (finding,) = findings_of(Recording([*traces.opening(), graph, *took(capture=2.0)]), (), ())
    assert (finding.kind, finding.cost, finding.compile_ids) == ("compile", "2.0 s", ("0/0",))
    assert finding.place is not None
    assert finding.place.line == 7
