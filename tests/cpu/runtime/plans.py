"""Hand-written graphs, plans and kernels, as the earlier stages would produce."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tcw.compiler.codegen.unit import Function, Unit
from tcw.compiler.loops.graph import Call, Graph, Input, Operand
from tcw.compiler.loops.nest import Memory, Nest, Program
from tcw.compiler.loops.sizes import Size, product
from tcw.compiler.memory.plan import New, Placement, Plan, Segment, Step
from tcw.compiler.runtime.artifact import Artifact
from tcw.compiler.runtime.assemble import assemble

Strides = tuple[Size, ...]


def dense(shape: Sequence[Size]) -> Strides:
    return tuple(product(shape[d + 1 :]) for d in range(len(shape)))


def tensor(name: str, shape: Sequence[Size], dtype: str = "float32") -> Input:
    return Input(name, dtype, tuple(shape), dense(shape))


def operand(name: str, shape: Sequence[Size], dtype: str = "float32") -> Operand:
    return Operand(name, dtype, tuple(shape), dense(shape))


@dataclass
class Kernel:
    """A kernel in C++: `body` reads p[i] as T*, `n` sizes, and sets *error."""

    name: str
    pointers: tuple[str, ...]
    body: str
    sizes: tuple[str, ...] = ()
    workspace_bytes: Size = 0

    @property
    def code(self) -> str:
        head = "void* const* p, const long* s, char* workspace, int* error"
        return f"static void {self.name}({head}) {{\n{self.body}\n}}\n"

    @property
    def function(self) -> Function:
        return Function(self.code, self.pointers, self.sizes, self.workspace_bytes)

    @property
    def nest(self) -> Nest:
        """Only its name matters here."""
        return Nest(self.name, (), ())


@dataclass
class Planned:
    """A hand-written graph."""

    inputs: list[Input]
    outputs: list[object]
    steps: list[Step]
    kernels: list[Kernel]
    made: list[Memory]
    parameters: list[str] | None = None
    placements: dict[str, Placement] = field(default_factory=dict)
    symbols: dict[str, str] = field(default_factory=dict)

    def artifact(self, name: str = "0/0/forward") -> Artifact:
        calls = [step.run for step in self.steps if isinstance(step.run, Call)]
        graph = Graph(
            name,
            [*self.inputs, *calls],
            self.parameters or [node.name for node in self.inputs if not node.constant],
            self.outputs,  # type: ignore[arg-type]
            self.symbols,
        )
        runs: list[Nest | Call] = []
        for step in self.steps:
            runs.extend([step.run] if isinstance(step.run, Call) else step.run.nests)
        memories = {memory.name: memory for memory in self.made}
        placements = {memory.name: New() for memory in self.made} | self.placements
        plan = Plan(tuple(self.steps), placements, None, None)
        return assemble(
            plan,
            Program(graph, tuple(runs), memories),
            self._unit(),
        )

    def _unit(self) -> Unit:
        code, lines = "", {}
        for kernel in self.kernels:
            lines[kernel.name] = code.count("\n") + 1
            code += f"{kernel.code}\n"
        kernels = {kernel.name: (kernel.name, kernel.function) for kernel in self.kernels}
        return Unit(code, kernels, lines)


def memory(name: str, shape: Sequence[Size], dtype: str = "float32") -> Memory:
    return Memory(name, dtype, tuple(shape), product(shape))


def segment(
    kernels: Sequence[Kernel],
    takes: Sequence[str],
    gives: Sequence[str],
    sizes: Sequence[str] = (),
    arena: Size = 0,
    name: str = "segment_0",
) -> Segment:
    nests = tuple(kernel.nest for kernel in kernels)
    return Segment(name, nests, tuple(takes), tuple(gives), tuple(sizes), arena)


ADD_MUL = """\
  const float *x = (const float*)p[0], *y = (const float*)p[1];
  float* __restrict q = (float*)p[2];
  for (long i = 0; i < {count}; i++) q[i] = (x[i] + y[i]) * 2.f;"""


def add_mul(size: Size = 8, symbols: Sequence[str] = ()) -> Planned:
    """(x + y) * 2 on one dimension; one segment, so it is called directly."""
    count = "s[0]" if symbols else str(size)
    kernel = Kernel("add_mul", ("x", "y", "q"), ADD_MUL.format(count=count), tuple(symbols))
    return Planned(
        [tensor("x", [size]), tensor("y", [size])],
        [operand("q", [size])],
        [Step(segment([kernel], ("x", "y"), ("q",), symbols))],
        [kernel],
        [memory("q", [size])],
        [*symbols, "x", "y"],
    )
