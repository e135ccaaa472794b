"""Rules for programs, which read only what has been computed by then, and for nests: axes, levels,
completion of reductions, reads and writes."""

from __future__ import annotations

from collections.abc import Mapping

from tcw.compiler.loops.expressions import (
    Address,
    Expression,
    Local,
    Position,
    Read,
    ReadIndexed,
    walk,
)
from tcw.compiler.loops.graph import Call, Input, Operand
from tcw.compiler.loops.nest import (
    Let,
    Nest,
    Program,
    Reduction,
    ScanAlong,
    Statement,
    Write,
    reads_in,
    runs_over,
)
from tcw.compiler.loops.verifier.check_expressions import check_dtype, check_expression
from tcw.compiler.loops.verifier.check_graphs import check_call, check_operand, check_reduction
from tcw.compiler.loops.verifier.spaces import Numbers, ValueSpace, fresh, require, within

Defined = dict[str, Let | Reduction | ScanAlong]


def check_nest(nest: Nest, spaces: Mapping[str, ValueSpace], numbers: Numbers) -> None:
    """Raises Malformed, naming statement and rule. `spaces`: the memory that the nest may use."""
    numbers.check_symbols((axis.size for axis in nest.axes), f"nest {nest.name}")
    require(bool(nest.writes()), f"nest {nest.name}", "writes nothing")
    known: Defined = {}
    for statement in nest.statements:
        name = statement.buffer if isinstance(statement, Write) else statement.name
        where = f"nest {nest.name}, {type(statement).__name__} {name}"
        _check_statement(nest, statement, known, spaces, numbers, where)
        if not isinstance(statement, Write):
            fresh(known, name, where)
            known[name] = statement
    _check_hazards(nest)


def is_rider(nest: Nest, statement: Statement) -> bool:
    """Whether this is a reduction that finishes only after the whole nest."""
    return isinstance(statement, Reduction) and not nest.is_main(statement)


def _check_statement(
    nest: Nest,
    statement: Statement,
    known: Defined,
    spaces: Mapping[str, ValueSpace],
    numbers: Numbers,
    where: str,
) -> None:
    check_dtype(statement.dtype, where)
    axes = runs_over(statement)
    require(len(set(axes)) == len(axes), where, f"an axis occurs twice in {axes}")
    require(all(0 <= a < len(nest.axes) for a in axes), where, f"there are no axes {axes}")
    require(tuple(sorted(statement.axes)) == statement.axes, where, "its axes are not in order")

    def leaf(expression: Expression, where: str) -> None:
        if isinstance(expression, Local):
            _check_local(nest, statement, expression, known, where)
        elif isinstance(expression, Position):
            _reach(nest, expression.address, axes, numbers, where)
        else:
            require(
                isinstance(expression, (Read, ReadIndexed)),
                where,
                f"{type(expression).__name__} occurs only in value graphs",
            )
            assert isinstance(expression, (Read, ReadIndexed))
            where = f"{where}, {expression.buffer}"
            _check_memory(expression.buffer, expression.dtype, spaces, where)
            reached = _reach(nest, expression.address, axes, numbers, where)
            if isinstance(expression, ReadIndexed):
                reached = numbers.terms(reached, expression.terms, where)
            within(reached, spaces[expression.buffer].size, where)

    check_expression(statement.expression, numbers, leaf, where)
    if isinstance(statement, Reduction):
        check_reduction(statement.op, statement.dtype, where)
        return
    if isinstance(statement, ScanAlong):
        require(statement.axis in axes, where, f"it does not run over axis {statement.axis}")
        return
    require(
        statement.expression.dtype == statement.dtype,
        where,
        f"it is {statement.dtype}, its expression {statement.expression.dtype}",
    )
    if isinstance(statement, Write):
        for term in statement.terms:
            check_expression(term.index, numbers, leaf, where)
        _check_memory(statement.buffer, statement.dtype, spaces, where)
        reached = _reach(nest, statement.address, axes, numbers, where)
        within(numbers.terms(reached, statement.terms, where), spaces[statement.buffer].size, where)
        still = [a for a in axes if statement.address.strides[a] == 0 and nest.axes[a].size != 1]
        require(
            statement.ordered or bool(statement.terms) or not still,
            where,
            f"positions along axes {still} hit the same element, but it is not ordered",
        )


def _check_local(
    nest: Nest, statement: Statement, local: Local, known: Defined, where: str
) -> None:
    require(local.name in known, where, f"{local.name} is not an earlier statement of the nest")
    source = known[local.name]
    require(
        local.dtype == source.dtype, where, f"{local.name} is {source.dtype}, not {local.dtype}"
    )
    require(
        set(source.axes) <= set(runs_over(statement)),
        where,
        f"{local.name} varies over axes {source.axes}, this runs over {runs_over(statement)}",
    )
    if not is_rider(nest, source):
        return
    others = [part for part in walk(statement.expression) if isinstance(part, Local)]
    require(
        isinstance(statement, Write) and all(is_rider(nest, known[o.name]) for o in others),
        where,
        f"{local.name} is finished only after the nest: it can be written, not used",
    )


def _check_memory(name: str, dtype: str, spaces: Mapping[str, ValueSpace], where: str) -> None:
    require(name in spaces, where, f"{name} is not in memory here")
    require(
        spaces[name].dtype == dtype, where, f"{name} is {spaces[name].dtype} in memory, not {dtype}"
    )


def _reach(
    nest: Nest, address: Address, axes: tuple[int, ...], numbers: Numbers, where: str
) -> tuple[int, int] | None:
    require(len(address.strides) == len(nest.axes), where, "an address needs one stride per axis")
    numbers.check_symbols((*address.strides, address.offset), where)
    for axis, stride in enumerate(address.strides):
        require(
            stride == 0 or axis in axes or nest.axes[axis].size == 1,
            where,
            f"an address varies over axis {axis}, the statement over {axes}",
        )
    sizes = tuple(axis.size for axis in nest.axes)
    return numbers.through(
        address.then, numbers.reach(sizes, address.strides, address.offset, where), where
    )


def _check_hazards(nest: Nest) -> None:
    """A buffer that the nest writes may be read only at the address of the write."""
    writes = [s for s in nest.statements if isinstance(s, Write)]
    written: dict[str, list[Write]] = {}
    for write in writes:
        written.setdefault(write.buffer, []).append(write)
    for part in reads_in(nest.statements):
        same = all(
            isinstance(part, Read) and write.address == part.address and not write.terms
            for write in written.get(part.buffer, ())
        )
        words = f"reads {part.buffer}, which it writes at other addresses"
        require(same, f"nest {nest.name}", words)


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
