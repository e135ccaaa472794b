"""Which FX node each operation of a loop body comes from.

Inductor fuses pointwise nodes while lowering them, by composing their `inner_fn`s (`Loops` in
torch/_inductor/ir.py), and traces the composition once a buffer is realised (loop_body.py). Each
`inner_fn` is tagged with the FX node that was being lowered when it was created. While it runs,
that node is current, and the operations that the tracer sees belong to it. Operations outside any
`inner_fn` (the final store, the reduction itself) belong to the realised node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import fx

from tcw.compiler.control.hooks import RecordingHook, Uninstall, after_call, undo_all
from tcw.compiler.control.recorder import Recorder

KEY = "lowered_node"
"""Key in the `meta` of a loop body's operations: name of the lowered node that they belong to."""


class _Current:
    """The FX node whose `inner_fn` is running; compiles run one at a time."""

    name: str = ""


def install(recorder: Recorder) -> Uninstall:
    from torch._inductor.ir import Loops
    from torch._inductor.loop_body import LightTracer
    from torch._inductor.virtualized import V

    current = _Current()

    def marked(function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def inner_fn(*args: Any, **kwargs: Any) -> Any:
            outer = current.name
            current.name = name
            try:
                return function(*args, **kwargs)
            finally:
                current.name = outer

        return inner_fn

    def mark_loops(_result: None, loops: Any) -> None:
        node = V.get_current_node()
        if isinstance(node, fx.Node) and not recorder.quiet:
            object.__setattr__(loops, "inner_fn", marked(loops.inner_fn, node.name))

    def mark_node(node: Any, *_: Any, **__: Any) -> None:
        if current.name:
            node.meta[KEY] = current.name

    return undo_all(
        after_call(Loops, "__post_init__", mark_loops),
        after_call(LightTracer, "create_node", mark_node),
    )


HOOK = RecordingHook(
    name="origins of loop operations",
    offers="which node each operation of a generated loop comes from",
    needs=(
        "torch._inductor.ir:Loops.__post_init__",
        "torch._inductor.loop_body:LightTracer.create_node",
        "torch._inductor.virtualized:V.get_current_node",
    ),
    install=install,
    stage="lowering",
    test="inductor/test_codegen.py",
)
