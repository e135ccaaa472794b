"""A value graph as text: one line per node.

input x: float32[3, 5]
for i < 3: amax[i]: float32 = max over j < 5 of x[5*i + j]              # amax
for i < 3, j < 5: exp[i, j]: float32 = exp(x[5*i + j] - amax[i])        # sub, exp
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcw.compiler.loops.graph import (
    Buffer,
    Call,
    Compute,
    Graph,
    Input,
    Node,
    Operand,
    Reduce,
    Result,
    Scan,
    Store,
)
from tcw.compiler.loops.layouts import Shape, row_major, same_strides
from tcw.compiler.loops.printer.print_addresses import (
    STORE_SIGNS,
    axis_name,
    escaped,
    shape_text,
    view_text,
    with_comment,
)
from tcw.compiler.loops.printer.print_expressions import expression_text, with_terms
from tcw.compiler.loops.sizes import Size


def graph_text(graph: Graph) -> str:
    """The whole graph; ends with a newline."""
    return "\n".join(_lines(graph)) + "\n"


def _lines(graph: Graph) -> Iterator[str]:
    yield f"graph {escaped(graph.name)}"
    symbols = [name for name in graph.parameters if name not in {n.name for n in graph.nodes}]
    for name in symbols:
        hint = f", compiled for {graph.hints[name]}" if name in graph.hints else ""
        yield f"size {escaped(name)}{hint}"
    for name, text in graph.symbols.items():
        yield f"size {escaped(name)} = {escaped(text)}"
    for node in graph.nodes:
        yield node_text(node)
    for output in graph.outputs:
        yield f"output {output_text(output)}"


def node_text(node: Node) -> str:
    """One node as one line."""
    if isinstance(node, Input):
        word = "constant" if node.constant else "input"
        return f"{word} {_tensor(node)}"
    if isinstance(node, Buffer):
        return f"buffer {escaped(node.name)}: {node.dtype}{shape_text(node.shape)}"
    if isinstance(node, Call):
        return call_text(node)
    return _compute(node)


def _compute(node: Compute) -> str:
    sizes = node.domain
    names = [axis_name(d) for d in range(len(sizes))]
    loops = [d for d in range(len(sizes)) if not (isinstance(node, Reduce) and node.reduced[d])]
    value = expression_text(node.expression, sizes)
    if isinstance(node, Store):
        place = with_terms(view_text(node.view, sizes), node.terms, sizes)
        sign = STORE_SIGNS[node.mode]
        text = f"{escaped(node.buffer)}[{place}] {sign} {value}"
    else:
        indices = ", ".join(names[d] for d in loops)
        if isinstance(node, Reduce):
            over = _ranges(node, [d for d in range(len(sizes)) if node.reduced[d]])
            value = f"{node.op} over {over or 'nothing'} of {value}"
        elif isinstance(node, Scan):
            way = "from the end of" if node.reverse else "along"
            value = f"running {node.op} {way} {names[node.digit]} of {value}"
        text = f"{escaped(node.name)}[{indices}]: {node.dtype} = {value}"
    ranges = _ranges(node, loops)
    return with_comment(f"for {ranges}: {text}" if ranges else text, node.origins)


def _ranges(node: Compute, digits: Sequence[int]) -> str:
    return ", ".join(f"{axis_name(d)} < {node.domain[d]}" for d in digits)


def call_text(call: Call) -> str:
    """`mm: float32[3, 3] = aten.mm.default(x, y)`, with the reason for the call if it has one."""
    arguments = [argument_text(item) for item in call.arguments]
    arguments += [f"{escaped(name)}={argument_text(item)}" for name, item in call.keywords]
    text = f"{escaped(call.target)}({', '.join(arguments)})"
    results = [_tensor(result) if result is not None else "_" for result in call.results]
    if results:
        text = f"{', '.join(results)} = {text}"
    notes = [escaped(call.reason)] if call.reason else []
    if call.mutates:
        notes.append(f"writes {', '.join(map(escaped, call.mutates))}")
    return with_comment(text, [*call.origins, *notes])


def argument_text(argument: object) -> str:
    if isinstance(argument, Operand):
        return output_text(argument)
    if isinstance(argument, (tuple, list)):
        return f"[{', '.join(map(argument_text, argument))}]"
    return escaped(str(argument))


def output_text(output: Operand | Size | bool | float | None) -> str:
    """`div[3, 5]`, with strides and offset unless it is row-major from the first element."""
    if not isinstance(output, Operand):
        return str(output)
    return f"{escaped(output.value)}{shape_text(output.shape)}" + _layout(
        output.shape, output.strides, output.offset
    )


def _tensor(value: Input | Result) -> str:
    text = f"{escaped(value.name)}: {value.dtype}{shape_text(value.shape)}"
    return text + _layout(value.shape, value.strides, 0)


def _layout(shape: Shape, strides: tuple[Size, ...], offset: Size) -> str:
    text = ""
    plain = row_major(shape).strides
    if not same_strides(shape, strides, plain):
        text = f":{shape_text(strides)}"
    return text if offset == 0 else f"{text}+{offset}"
