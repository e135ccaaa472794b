"""What each step of a program reads and writes, and the sizes of its values in bytes."""

from __future__ import annotations

from dataclasses import dataclass

from tcw.compiler.loops.dtypes import BYTES, WIDEST_ITEM
from tcw.compiler.loops.graph import Call, Input, Operand, Result, operands
from tcw.compiler.loops.nest import Memory, Nest, Program
from tcw.compiler.loops.sizes import Size, multiply, product
from tcw.compiler.loops.verifier.spaces import Numbers


@dataclass(frozen=True, slots=True)
class Access:
    """Names of values in the order of the step's text, without duplicates."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]


def access(step: Nest | Call) -> Access:
    if isinstance(step, Nest):
        return Access(step.reads(), step.writes())
    results = tuple(result.name for result in step.results if result is not None)
    reads = dict.fromkeys([operand.value for operand in step.operands()])
    return Access(tuple(reads), tuple(dict.fromkeys((*step.mutates, *results))))


class Values:
    """The values of a program: their origins, sizes in bytes, and possible aliases."""

    def __init__(self, program: Program) -> None:
        self.program = program
        graph = program.graph
        self.inputs = {node.name: node for node in graph.nodes if isinstance(node, Input)}
        self.results: dict[str, tuple[Call, Result]] = {}
        self.written: set[str] = set()
        """Everything that a nest writes or a call mutates."""
        self.refusals: dict[tuple[int, str, str], tuple[str, str] | None] = {}
        """(id of a nest, written, read) -> why one cannot overwrite the other (`reuse.py`)."""
        self._accesses: dict[int, Access] = {}
        self._shared: dict[str, str] = {}
        self._aliased: set[str] = set()
        for step in program.steps:
            self.written.update(step.mutates if isinstance(step, Call) else step.writes())
            if not isinstance(step, Call):
                continue
            named = [result for result in step.results if result is not None]
            self.results.update((result.name, (step, result)) for result in named)
            if step.aliases:
                self._join([*step.aliases, *(result.name for result in named)])
        self.outputs: dict[str, list[Operand]] = {}
        """The graph's outputs that are in each value's memory."""
        for output in operands(graph.outputs):
            self.outputs.setdefault(output.value, []).append(output)
        self._numbers = Numbers(program.graph)

    def access(self, step: Nest | Call) -> Access:
        """What a step of the program reads and writes, cached."""
        found = self._accesses.get(id(step))
        if found is None:
            found = self._accesses[id(step)] = access(step)
        return found

    def _join(self, names: list[str]) -> None:
        first = self.memory(names[0])
        self._aliased.update(names)
        for name in names[1:]:
            self._shared[self.memory(name)] = first
        self._shared.pop(first, None)

    def memory(self, value: str) -> str:
        """The representative of all values that may share memory according to the calls."""
        while value in self._shared:
            value = self._shared[value]
        return value

    def aliased(self, value: str) -> bool:
        """Whether another value may share its memory according to a call."""
        return value in self._aliased

    def bytes(self, value: str) -> Size:
        """The size of its memory in bytes; inputs and results count as if dense."""
        form = self.form(value)
        if isinstance(form, Memory):
            return form.bytes
        return multiply(product(form.shape), BYTES.get(form.dtype, WIDEST_ITEM))

    def form(self, value: str) -> Memory | Input | Result:
        """Its memory if a nest writes it, or what the caller or a call says of it."""
        memory = self.program.memories.get(value)
        if memory is not None:
            return memory
        return self.inputs[value] if value in self.inputs else self.results[value][1]

    def dtype(self, value: str) -> str:
        return self.form(value).dtype

    def number(self, size: Size) -> int | None:
        """A size for the inputs at compile time, or None if a symbol has no hint."""
        return self._numbers.of(size)
