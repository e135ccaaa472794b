"""Value graphs by hand: a few words for each node."""

from __future__ import annotations

from tcw.compiler.control.gate import Gate
from tcw.compiler.fusion.fuse import Fusion, fuse
from tcw.compiler.loops.expressions import Const, Expression, Gather, IndexTerm, Load, Op
from tcw.compiler.loops.graph import Buffer, Call, Graph, Input, Map, Operand, Reduce, Result, Store
from tcw.compiler.loops.layouts import Layout, Shape, View, row_major
from tcw.compiler.loops.nest import Nest

F = "float32"


def load(value: str, *view: Layout, dtype: str = F) -> Load:
    return Load(value, view, dtype)


def op(name: str, *args: Expression, dtype: str = F) -> Op:
    return Op(name, args, dtype)


def rows(*shape: int) -> Layout:
    """Element of a domain -> its row; the last digit is the row."""
    return Layout(shape, (*row_major(shape[:-1]).strides, 0))


def columns(*shape: int) -> Layout:
    """Element of a domain -> its column."""
    return Layout(shape, (*(0 for _ in shape[:-1]), 1))


class Builder:
    def __init__(self) -> None:
        self.graph = Graph("0/0/forward")

    def input(self, name: str, *shape: int, dtype: str = F) -> None:
        self.graph.nodes.append(Input(name, dtype, shape, row_major(shape).strides))
        self.graph.parameters.append(name)

    def map(self, name: str, domain: Shape, expression: Expression) -> None:
        self.graph.nodes.append(Map(name, expression.dtype, domain, expression, (name,)))

    def reduce(
        self, name: str, domain: Shape, reduced: str, expression: Expression, kind: str = "sum"
    ) -> None:
        """`reduced`: a letter for each digit, r or k."""
        marks = tuple(letter == "r" for letter in reduced)
        self.graph.nodes.append(
            Reduce(name, F, kind, domain, marks, expression, (name,))  # type: ignore[arg-type]
        )

    def buffer(self, name: str, *shape: int) -> None:
        self.graph.nodes.append(Buffer(name, F, shape))

    def store(
        self,
        name: str,
        buffer: str,
        domain: Shape,
        expression: Expression,
        view: View = (),
        terms: tuple[IndexTerm, ...] = (),
    ) -> None:
        self.graph.nodes.append(
            Store(name, buffer, F, domain, view, expression, terms, origins=(name,))
        )

    def call(self, name: str, operand: str, *shape: int, target: str = "aten.mm.default") -> None:
        strides = row_major(shape).strides
        argument = Operand(operand, F, shape, strides)
        result = Result(name, F, shape, strides)
        self.graph.nodes.append(Call(f"{name}_call", target, (argument,), (), (result,)))

    def output(self, name: str, *shape: int) -> None:
        self.graph.outputs.append(Operand(name, F, shape, row_major(shape).strides))


def nests(fusion: Fusion) -> list[set[str]]:
    """For each nest of the program the names of the nodes that it computes, inlined ones too."""
    return [set(group.names) for group in fusion.groups]


def together(builder: Builder, *names: str) -> bool:
    """Whether these nodes share one nest."""
    return any(set(names) <= group for group in nests(fuse(builder.graph)))


def rule(builder: Builder, first: str, second: str) -> str:
    """The rule that decided on a pair."""
    fusion = fuse(builder.graph)
    rules = [p.rule for p in fusion.pairs if {p.first, p.second} == {first, second}]
    assert rules, [(p.first, p.second) for p in fusion.pairs]
    return rules[-1]


def choices(gate: Gate, kind: str) -> list[tuple[tuple[str, ...], str, str]]:
    """The names, choice and rule of each decision of a kind, in order."""
    made = [one for one in gate.decided if one.decision.kind == kind]
    return [(one.decision.names, one.choice, one.decision.rule) for one in made]


def only_nest(fusion: Fusion) -> Nest:
    (step,) = fusion.program.steps
    assert isinstance(step, Nest)
    return step


__all__ = ["Builder", "Const", "Gather", "columns", "load", "op", "rows"]


def normalisation() -> Builder:
    """(x + y) normalised by its rows' root mean square; its column sums."""
    shape = (64, 256)
    b = Builder()
    b.input("x", *shape)
    b.input("y", *shape)
    b.map("add", shape, op("add", load("x"), load("y")))
    b.reduce("squares", shape, "kr", op("mul", load("add"), load("add")))
    b.map("rsqrt", (64,), op("rsqrt", op("mul", load("squares"), Const(1 / 256, F))))
    b.map("mul", shape, op("mul", load("add"), load("rsqrt", rows(*shape))))
    b.reduce("columns", shape, "rk", load("mul"))
    b.output("add", *shape)
    b.output("mul", *shape)
    b.output("columns", 256)
    return b
