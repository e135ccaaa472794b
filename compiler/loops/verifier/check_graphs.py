"""Rules for value graphs."""

from __future__ import annotations

from tcw.compiler.loops.expressions import Expression, Gather, Iota, Load
from tcw.compiler.loops.graph import (
    Buffer,
    Call,
    Compute,
    Graph,
    Input,
    Map,
    Operand,
    Reduce,
    Scan,
    Store,
)
from tcw.compiler.loops.sizes import Symbolic
from tcw.compiler.loops.verifier.check_expressions import check_dtype, check_expression
from tcw.compiler.loops.verifier.spaces import Numbers, ValueSpace, defined, fresh, require, within


def verify_graph(graph: Graph) -> None:
    """Raises Malformed, naming the node and the rule, if the graph breaks one."""
    numbers = Numbers(graph)
    spaces: dict[str, ValueSpace] = {}
    names: dict[str, object] = {}
    buffers: set[str] = set()
    passed = [node.name for node in graph.nodes if isinstance(node, Input) and not node.constant]
    for name in passed:
        require(graph.parameters.count(name) == 1, graph.name, f"{name} is not passed exactly once")
    for node in graph.nodes:
        where = f"{graph.name}, {type(node).__name__} {node.name}"
        fresh(names, node.name, where)
        names[node.name] = node
        if isinstance(node, Call):
            check_call(node, spaces, numbers, where)
            for result in node.results:
                if result is None:
                    continue
                if result.name != node.name:
                    fresh(names, result.name, where)
                names[result.name] = result
                numbers.check_symbols((*result.shape, *result.strides), where)
                spaces[result.name] = numbers.space(result)
            continue
        if not isinstance(node, Input):  # only calls may read an input of another dtype
            check_dtype(node.dtype, where)
        if isinstance(node, (Input, Buffer)):
            numbers.check_symbols(node.shape, where)
            if isinstance(node, Input):
                numbers.check_symbols(node.strides, where)
                require(
                    len(node.shape) == len(node.strides), where, "it needs one stride per dimension"
                )
            buffers.add(node.name)
        else:
            _check_compute(node, spaces, numbers, where)
            if isinstance(node, Store):
                require(
                    node.buffer in buffers, where, f"{node.buffer} is neither a buffer nor an input"
                )
                _check_store(node, spaces[node.buffer], numbers, where)
                continue
        spaces[node.name] = numbers.space(node)
    for output in graph.outputs:
        where = f"{graph.name}, an output"
        if isinstance(output, Operand):
            check_operand(output, spaces, numbers, where)
        elif isinstance(output, Symbolic):
            numbers.check_symbols((output,), where)


def check_call(call: Call, spaces: dict[str, ValueSpace], numbers: Numbers, where: str) -> None:
    for operand in call.operands():
        check_operand(operand, spaces, numbers, where)
    for name in (*call.mutates, *call.aliases):
        defined(spaces, name, where)
    require(call.target.count(".") >= 2, where, f"{call.target} is not a namespace.name.overload")
    if call.single:
        require(len(call.results) <= 1, where, "one tensor with several results")


def check_operand(
    operand: Operand, spaces: dict[str, ValueSpace], numbers: Numbers, where: str
) -> None:
    """Check that an operand has the dtype of its value and stays within its memory."""
    defined(spaces, operand.value, where)
    space = spaces[operand.value]
    require(
        operand.dtype == space.dtype,
        where,
        f"{operand.value} is {space.dtype}, its operand {operand.dtype}",
    )
    numbers.check_symbols((*operand.shape, *operand.strides, operand.offset), where)
    within(
        numbers.reach(operand.shape, operand.strides, operand.offset, where),
        space.size,
        f"{where}, operand of {operand.value}",
    )


def _check_compute(
    node: Compute, spaces: dict[str, ValueSpace], numbers: Numbers, where: str
) -> None:
    numbers.check_symbols(node.domain, where)

    def leaf(expression: Expression, where: str) -> None:
        require(
            isinstance(expression, (Load, Gather, Iota)),
            where,
            f"{type(expression).__name__} occurs only in nests",
        )
        if isinstance(expression, Iota):
            numbers.view(expression.view, node.domain, where)
            return
        assert isinstance(expression, (Load, Gather))
        defined(spaces, expression.value, where)
        space = spaces[expression.value]
        require(
            expression.dtype == space.dtype,
            where,
            f"{expression.value} is {space.dtype}, loaded as {expression.dtype}",
        )
        where = f"{where}, {expression.value}"
        reached = numbers.view(expression.view, node.domain, where)
        if isinstance(expression, Gather):
            reached = numbers.terms(reached, expression.terms, where)
        within(reached, space.size, where)

    check_expression(node.expression, numbers, leaf, where)
    if isinstance(node, Reduce):
        require(len(node.reduced) == len(node.domain), where, "each digit is kept or reduced")
        check_reduction(node.op, node.dtype, where)
    elif isinstance(node, Scan):
        require(0 <= node.digit < len(node.domain), where, f"there is no digit {node.digit}")
    elif isinstance(node, (Map, Store)):
        require(
            node.expression.dtype == node.dtype,
            where,
            f"it is {node.dtype}, its expression {node.expression.dtype}",
        )
    if isinstance(node, Store):
        for term in node.terms:
            check_expression(term.index, numbers, leaf, where)


def check_reduction(op: str, dtype: str, where: str) -> None:
    """Check the result dtype of a reduction."""
    expected = {"argmax": "int64", "argmin": "int64", "any": "bool", "all": "bool"}.get(op, dtype)
    require(dtype == expected, where, f"{op} returns {expected}, not {dtype}")
    if op in ("exp_sum", "deviations"):
        require(dtype in ("float32", "float64"), where, f"{op} returns a wide float, not {dtype}")


def _check_store(node: Store, space: ValueSpace, numbers: Numbers, where: str) -> None:
    require(node.dtype == space.dtype, where, f"{node.buffer} is {space.dtype}, not {node.dtype}")
    reached = numbers.view(node.view, node.domain, where)
    within(numbers.terms(reached, node.terms, where), space.size, f"{where}, {node.buffer}")
