"""Rules for programs: each nest is valid, and reads only what has been computed by then."""

from __future__ import annotations

from tcw.compiler.loops.graph import Call, Input, Operand
from tcw.compiler.loops.program import Program
from tcw.compiler.loops.verifier.graphs import check_call, check_operand
from tcw.compiler.loops.verifier.nests import check_nest
from tcw.compiler.loops.verifier.spaces import Numbers, ValueSpace, require


def verify_program(program: Program) -> None:
    """Raises Malformed, naming the step and the rule."""
    graph = program.graph
    numbers = Numbers(graph)
    here = {node.name: numbers.space(node) for node in graph.nodes if isinstance(node, Input)}
    memories = {}
    for name, memory in program.memories.items():
        require(name == memory.name, graph.name, f"memory {memory.name} is registered as {name}")
        require(name not in here, graph.name, f"{name} is an input, not memory of the program")
        numbers.check_symbols((memory.size, *memory.shape), f"{graph.name}, memory {name}")
        memories[name] = ValueSpace(memory.dtype, numbers.of(memory.size))
    names: set[str] = set()
    for step in program.steps:
        require(step.name not in names, graph.name, f"two steps are called {step.name}")
        names.add(step.name)
        if isinstance(step, Call):
            check_call(step, here, numbers, f"{graph.name}, Call {step.name}")
            for result in step.results:
                if result is not None:
                    here[result.name] = numbers.space(result)
            continue
        writes = {n: memories[n] for n in step.writes() if n in memories}
        check_nest(step, {**here, **writes}, numbers)
        here.update(writes)
    for output in graph.outputs:
        if isinstance(output, Operand):
            check_operand(output, here, numbers, f"{graph.name}, an output")
