"""Dynamo's half of the synthetic trace: captured graphs, guards, graph breaks and recompiles."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec

from tcw.compiler.trace.records import (
    Advice,
    Crossing,
    FailedGuard,
    Graph,
    GraphBreak,
    Guard,
    Guards,
    Location,
    Node,
    Recompile,
    TensorMeta,
)

FILE = "/home/ada/block.py"
LINES = (Path(__file__).parent / "data" / "block.py.txt").read_text().splitlines()
ITEM_BYTES = {"float32": 4, "float64": 8, "bool": 1, "int64": 8}


def location(line: int, column: int | None = None, end_column: int | None = None) -> Location:
    function = "attention" if 15 <= line <= 20 else "forward"
    return Location(
        file=FILE,
        line=line,
        end_line=line,
        column=column,
        end_column=end_column,
        function=function,
    )


def tensor(description: list[Any] | None) -> TensorMeta | None:
    """[[sizes], dtype, [strides]] -> TensorMeta."""
    if description is None:
        return None
    shape, dtype, stride = description
    numbers = [size for size in shape if isinstance(size, int)]
    size = math.prod(numbers) * ITEM_BYTES[dtype] if len(numbers) == len(shape) else None
    return TensorMeta(shape=tuple(shape), dtype=dtype, stride=tuple(stride), bytes=size)


def captured(cid: str, rows: list[Any], call: int) -> Graph:
    nodes = tuple(
        Node(
            name=name,
            op=op,
            target=target,
            args=args,
            inputs=tuple(inputs),
            value=tensor(value),
            module=module.removeprefix("L['self']").removeprefix("."),
            location=location(where[0]) if where else None,
        )
        for name, op, target, args, inputs, value, where, module in rows
    )
    ops = sum(node.op.startswith("call") for node in nodes)
    return Graph(id=cid, kind="captured", compile_id=cid, nodes=nodes, ops=ops, call=call)


def guards(cid: str, rows: list[Any]) -> Guards:
    found = []
    for kind, source, code, line in rows:
        if cid != "0/0" and source == "L['temperature']":
            continue
        name = source.replace("L['", "").replace("']", "", 1)
        name = name.replace("._modules['", ".").replace("']._parameters['", ".")
        found.append(
            Guard(
                kind=kind,
                name=name.replace("']", ""),
                source=source,
                code=tuple(code),
                value="0.125" if source == "L['temperature']" else "",
                location=location(line) if line else None,
            )
        )
    return Guards(
        compile_id=cid,
        guards=tuple(found),
        function="forward",
        tree_nodes=3 * len(found),
        check_us=round(0.28 * len(found), 1),
    )


H = tensor([[4, 128, 256], "float32", [32768, 256, 1]])


def print_break(cid: str, call: int) -> GraphBreak:
    kinds = "argument types ['str', 'tuple']"
    return GraphBreak(
        compile_id=cid,
        attempt=0,
        gb="GB0059",
        type="Failed to trace builtin operator",
        context="builtin print [<class 'ConstantVariable'>, <class 'TupleVariable'>] False",
        explanation=f"Dynamo does not know how to trace builtin operator `print` with {kinds} "
        "(has_kwargs False)",
        hints=(
            f"Avoid calling builtin `print` with {kinds}. Consider using an equivalent "
            "alternative function/method to `print`.",
            "If you are attempting to call a logging function (e.g. `print`), you can try adding "
            "it to `torch._dynamo.config.reorderable_logging_functions`.",
            "Please report an issue to PyTorch.",
        ),
        location=location(24, 8, 48),
        stack=(location(24, 8, 48),),
        opcode="CALL",
        url="https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0059.html",
        source_line=LINES[23],
        crossing=(Crossing(name="x", tensor=H), Crossing(name="self", kind="module Block")),
        advice=(
            Advice(
                text="Let torch.compile move the print to the end of the graph.",
                code="torch._dynamo.config.reorderable_logging_functions.add(print)",
            ),
            Advice(text="Guard the print so that it does not run while compiling.",
                   code="if not torch.compiler.is_compiling(): print(...)"),
        ),
        call=call,
        reason="Encountered graph break when attempting to trace CALL: a function call, "
        "e.g. f(x, y)",
    )  # fmt: skip


def branch_break(cid: str, call: int) -> GraphBreak:
    return GraphBreak(
        compile_id=cid,
        attempt=0,
        gb="GB0170",
        type="Data-dependent branching",
        context="attempted to jump with TensorVariable()",
        explanation="Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`). Dynamo "
        "does not support tracing dynamic control flow.",
        hints=(
            "For the common pattern `if tensor_cond: x = transform(x)` (e.g. clamping inf/nan "
            "values), consider making the code branchless by always applying the transform.",
            "This graph break is fundamental - it is unlikely that Dynamo will ever be able to "
            "trace through your code. Consider finding a workaround.",
            "Use `torch.cond` to express dynamic control flow.",
        ),
        location=location(26, 11, 28),
        stack=(location(26, 11, 28),),
        opcode="POP_JUMP_FORWARD_IF_FALSE",
        url="https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html",
        source_line=LINES[25],
        crossing=(
            Crossing(name="x", tensor=H),
            Crossing(name="h", tensor=H),
            Crossing(name="gt", tensor=tensor([[], "bool", []])),
        ),
        advice=(
            Advice(text="The clamp alone gives the same values.", code="h = h.clamp(-8, 8)"),
            Advice(
                text="Express the branch where both sides are tensor functions.",
                code="torch.cond(h.abs().max() > 8, lambda h: h.clamp(-8, 8), "
                "lambda h: h.clone(), (h,))",
            ),
        ),
        call=call,
        reason="Data-dependent branching",
    )


BREAKS = {"0": print_break, "1": branch_break}
TEMPERATURE = FailedGuard(
    entry="0/0",
    guard="temperature == 0.125",
    kind="EQUALS_MATCH",
    source="L['temperature']",
    name="temperature",
    expected="0.125",
    seen="0.25",
    tested=31,
)


def batch(entry: str, name: str) -> FailedGuard:
    return FailedGuard(
        entry=entry,
        guard=f"tensor '{name}' size mismatch at index 0. expected 4, actual 6",
        kind="TENSOR_MATCH",
        source=f"L['{name}']",
        name=f"{name}.size(0)",
        expected="4",
        seen="6",
        tested=5,
    )


def recompile(cid: str, call: int) -> Recompile:
    if cid == "0/1":
        advice = Advice(
            text="Pass temperature as a tensor, so that its value is no guard.",
            code="temperature = torch.tensor(temperature)",
        )
        failed, line = (TEMPERATURE,), 18
    else:
        name = "h" if cid == "2/1" else "x"
        advice = Advice(
            text="Mark the batch as dynamic before the first call.",
            code="torch._dynamo.mark_dynamic(x, 0)",
        )
        if cid != "0/2":
            advice = Advice(
                text=f"Or remove the graph break: {name} was made before it, so the caller "
                "cannot mark it",
                code="torch.compile(model, dynamic=True)",
            )
        failed = (batch("0/1" if cid == "0/2" else cid[:2] + "0", name),)
        line = {"0/2": 22, "1/1": 24, "2/1": 26}[cid]
        if cid == "0/2":
            failed += (msgspec.structs.replace(TEMPERATURE, seen="0.5"),)
    return Recompile(
        compile_id=cid,
        call=call,
        failed=failed,
        location=location(line),
        source_line=LINES[line - 1],
        function="forward",
        reason="\n".join(f"{one.entry}: {one.guard}" for one in failed),
        advice=(advice,),
    )
