"""Collective operations in Inductor's code, in the order of its final schedule.

`torch._inductor.debug.log_collective_schedule` receives the scheduled nodes of every graph that is
compiled. What runs between the start of an operation and the wait for it overlaps with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tcw.compiler.control.hooks import RecordingHook, Uninstall, before_call
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.current import current_compile_id
from tcw.compiler.graphs.nodes import format_argument, user_line
from tcw.compiler.graphs.tensors import dtype_name, element_bytes, size
from tcw.compiler.inductor.lowered_graphs import lowering_of
from tcw.compiler.inductor.predicted import predicting
from tcw.compiler.inductor.scheduler_nodes import computed_by
from tcw.compiler.trace.records import Collective, Collectives, TensorMeta


def install(recorder: Recorder) -> Uninstall:
    from torch._inductor import debug
    from torch._inductor.virtualized import V

    safely = Safely(recorder, HOOK.name)

    def write(nodes: Sequence[Any], *_: Any, **__: Any) -> None:
        if predicting.get() or not current_compile_id():
            return
        operations, details = described_collectives(nodes)
        if operations:
            recorder.emit(
                Collectives(
                    compile_id=current_compile_id(),
                    graph=lowering_of(recorder, V.graph).base,
                    operations=operations,
                    details=details,
                )
            )

    return before_call(debug, "log_collective_schedule", safely.guarded(write))


def described_collectives(nodes: Sequence[Any]) -> tuple[tuple[str, ...], tuple[Collective, ...]]:
    """Of the scheduled nodes, those that torch's own schedule lists, with their details."""
    from torch._inductor import ir

    steps = [member for node in nodes for member in (node.get_nodes() if node else ())]
    operations: list[str] = []
    details: list[Collective] = []
    started: dict[str, tuple[int, int]] = {}
    """Buffer -> (place in `operations`, step) of what writes it, until it is waited for."""
    for step, node in enumerate(steps):
        kernel = getattr(node, "node", None)
        if not isinstance(kernel, ir._CollectiveKernel):
            continue
        waits_for, meanwhile = None, steps[step:step]
        if isinstance(kernel, ir._WaitKernel):
            found = next((started.pop(one) for one in _touched(node) if one in started), None)
            if found is not None:
                waits_for, begun = found
                meanwhile = [one for one in steps[begun + 1 : step] if _works(one, ir)]
        else:
            started |= dict.fromkeys(_touched(node), (len(operations), step))
        operations.append(str(getattr(kernel, "python_kernel_name", None) or "unknown"))
        origins = _own(kernel) or computed_by(node)
        details.append(
            Collective(
                tensors=tuple(filter(None, map(_meta, _tensors(kernel)))),
                arguments=_arguments(kernel),
                step=step,
                waits_for=waits_for,
                meanwhile=len(meanwhile),
                meanwhile_bytes=sum(_bytes(one) for one in meanwhile),
                origins=tuple(origin.name for origin in origins),
                location=next(filter(None, map(user_line, origins)), None),
            )
        )
    return tuple(operations), tuple(details)


def _own(kernel: Any) -> list[Any]:
    """The nodes of the operation itself: torch attributes a kernel that is waited for to the wait's
    node, with the nodes of its inputs as further origins."""
    name = _name(getattr(kernel, "op_overload", None))
    return [origin for origin in kernel.get_origins() if name and _name(origin.target) == name]


def _name(operation: Any) -> str:
    """`_c10d_functional::all_reduce`, also of `all_reduce_`, its form in place."""
    schema = getattr(operation, "_schema", None)
    return str(schema.name).rstrip("_") if schema is not None else ""


def _works(node: Any, ir: Any) -> bool:
    """Whether a step is a kernel or a library call."""
    kernel = getattr(node, "node", None)
    return not isinstance(kernel, (ir._CollectiveKernel, ir.MultiOutput)) and (
        type(node).__name__ != "NopKernelSchedulerNode"
    )


def _touched(node: Any) -> list[str]:
    """The buffers that a step writes, and those that it reads or mutates."""
    names = dict.fromkeys(node.get_buffer_names())
    names |= dict.fromkeys(write.name for write in node.read_writes.writes)
    names |= dict.fromkeys(read.name for read in node.read_writes.reads)
    for buffer in node.get_outputs():
        names |= dict.fromkeys(buffer.get_mutations())
        names |= dict.fromkeys(buffer.get_aliases())
    return list(names)


def _tensors(kernel: Any) -> Iterable[Any]:
    for one in kernel.inputs:
        yield from one if isinstance(one, (list, tuple)) else (one,)


def _meta(value: Any) -> TensorMeta | None:
    try:
        shape = tuple(map(size, value.get_size()))
        dtype = value.get_dtype()
    except Exception:  # a value without a layout, such as a torchbind object
        return None
    return TensorMeta(
        shape=shape,
        dtype=dtype_name(dtype),
        device=str(value.get_device()),
        bytes=element_bytes(shape, dtype),
    )


def _arguments(kernel: Any) -> tuple[str, ...]:
    """The arguments that are not tensors, by the names of the operation's schema."""
    schema = getattr(getattr(kernel, "op_overload", None), "_schema", None)
    names = [
        argument.name
        for argument in (schema.arguments if schema is not None else ())
        if "Tensor" not in str(argument.type)
    ]
    values = [*kernel.constant_args, *kernel.kwargs.values()]
    return tuple(
        f"{name}={format_argument(value)[:200]}" for name, value in zip(names, values, strict=False)
    )


def _bytes(node: Any) -> int:
    try:
        return int(node.get_read_write_buffers_sizes())
    except Exception:  # sizes that are not known
        return 0


HOOK = RecordingHook(
    name="collectives",
    offers="collective operations in the order of the code, and what overlaps with each",
    needs=(
        "torch._inductor.debug:log_collective_schedule(nodes)",
        "torch._inductor.ir:_CollectiveKernel",
        "torch._inductor.ir:_WaitKernel",
    ),
    install=install,
    stage="codegen",
    test="inductor/test_collectives.py",
)
