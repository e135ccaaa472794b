"""Which operation each line of a kernel computes, for both C++ and Triton.

Inductor fuses pointwise nodes while lowering them, by composing their `inner_fn`s (`Loops` in
torch/_inductor/ir.py). Each is tagged with the FX node that was being lowered when it was created;
operations traced while it runs belong to that node, others (the final store, the reduction itself)
to the realised node.

While an operation of a loop body is turned into code, torch's `InterpreterShim` (loop_body.py)
identifies it. A `Mark` is inserted before each line that is then written into one of the kernel's
own buffers: a buffer entry that prints nothing, and moves with its line when buffers are spliced.
When the buffer of a whole kernel is printed, the marks are read back as line numbers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from torch import fx

from tcw.compiler.control.hooks import RecordingHook, Uninstall, after_call, patch, undo_all
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.inductor.loop_bodies import LOWERED_NODE

Origin = tuple[str, str]
"""(lowered node, or "" if only the scheduler node is known; scheduler node)."""

_BUFFERS = (
    *("compute", "loads", "stores", "preloads", "poststores", "indexing_code", "body"),
    *("reduction_prefix", "reduction_suffix", "parallel_reduction_suffix"),
    *("non_parallel_reduction_suffix", "local_reduction_stores", "post_loop_combine"),
    "post_loop_store",
)
_KEPT = 16

_maps: OrderedDict[str, dict[int, Origin]] = OrderedDict()


def origins_of_lines(text: str) -> dict[int, Origin]:
    """Origin of each line (from 1) of a kernel's printed text; {} if unknown."""
    return _maps.get(text, {})


class _Active:
    """What is running now; compiles run one at a time."""

    node: str = ""
    """The FX node whose `inner_fn` it is."""
    shim: Any = None
    """The one that turns a loop body into code."""


def install(recorder: Recorder) -> Uninstall:
    from torch._inductor.codegen import cpp
    from torch._inductor.codegen.common import DeferredLine
    from torch._inductor.ir import Loops
    from torch._inductor.loop_body import InterpreterShim, LightTracer
    from torch._inductor.utils import IndentedBuffer
    from torch._inductor.virtualized import V

    active = _Active()

    def tagged(function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def inner_fn(*args: Any, **kwargs: Any) -> Any:
            outer, active.node = active.node, name
            try:
                return function(*args, **kwargs)
            finally:
                active.node = outer

        return inner_fn

    def tag_loops(_result: None, loops: Any) -> None:
        node = V.get_current_node()
        if isinstance(node, fx.Node) and not recorder.quiet:
            object.__setattr__(loops, "inner_fn", tagged(loops.inner_fn, node.name))

    def tag_operation(operation: Any, *_: Any, **__: Any) -> None:
        if active.node:
            operation.meta[LOWERED_NODE] = active.node

    class Mark(DeferredLine):  # type: ignore[misc]
        """A buffer entry that prints nothing: the origin of the next line."""

        def __init__(self, origin: Origin) -> None:
            self.origin = origin
            self.name = ""
            self.line = ""

        def __call__(self) -> None:
            return None

        def _new_line(self, line: str) -> Mark:
            return Mark(self.origin)

    def is_kernels_own(buffer: Any, kernel: Any) -> bool:
        for name in _BUFFERS:  # noqa: SIM110 - a generator costs more, for each line of each kernel
            if getattr(kernel, name, None) is buffer:
                return True
        return False

    def writeline(original: Callable[..., None]) -> Callable[..., None]:
        def write(self: Any, line: Any) -> None:
            shim = active.shim
            if shim is not None and shim.current_node is not None and type(line) is not Mark:
                kernel = V.kernel
                if is_kernels_own(self, kernel):
                    node = getattr(kernel, "current_node", None)
                    operation = node.get_name() if node is not None else ""
                    self._lines.append(
                        Mark((shim.current_node.meta.get(LOWERED_NODE, ""), operation))
                    )
            original(self, line)

        return write

    def printed(original: Callable[..., Any]) -> Callable[..., Any]:
        def getvaluewithlinemap(self: Any) -> Any:
            value = original(self)
            if any(type(line) is Mark for line in self._lines):
                _maps[value.value] = _read(self._lines, Mark)
                while len(_maps) > _KEPT:
                    _maps.popitem(last=False)
            return value

        return getvaluewithlinemap

    def run(original: Callable[..., Any]) -> Callable[..., Any]:
        def run_shim(self: Any, *args: Any, **kwargs: Any) -> Any:
            outer = active.shim
            active.shim = None if recorder.quiet else self
            try:
                return original(self, *args, **kwargs)
            finally:
                active.shim = outer

        return run_shim

    def moved(original: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap torch's one function that rebuilds each line of a buffer from its text: it gets no
        marks, which are reinserted before the same lines of its result."""

        def move_code_under_inner_loop(code: Any, *args: Any, **kwargs: Any) -> Any:
            marks: dict[int, Any] = {}
            plain = type(code)(code._indent)
            for line in code._lines:
                if type(line) is Mark:
                    marks[len(plain._lines)] = line
                else:
                    plain._lines.append(line)
            result = original(plain, *args, **kwargs)
            around = len(result._lines) - len(plain._lines)
            if marks and around == len(("for", "{", "}")):
                lines = []
                for place, line in enumerate(result._lines, -(around - 1)):
                    if place in marks:
                        lines.append(marks[place])
                    lines.append(line)
                result._lines = lines
            return result

        return move_code_under_inner_loop

    def lines_ref(original: Callable[..., Any]) -> Callable[..., Any]:
        def get_lines_ref(self: Any) -> Any:
            lines = original(self)
            if any(type(line) is Mark for line in lines):
                return [line for line in lines if type(line) is not Mark]
            return lines

        return get_lines_ref

    undo = [
        after_call(Loops, "__post_init__", tag_loops),
        after_call(LightTracer, "create_node", tag_operation),
        patch(IndentedBuffer, "writeline", writeline(IndentedBuffer.writeline)),
        patch(IndentedBuffer, "getvaluewithlinemap", printed(IndentedBuffer.getvaluewithlinemap)),
        patch(InterpreterShim, "run", run(InterpreterShim.run)),
        patch(cpp, "move_code_under_inner_loop", moved(cpp.move_code_under_inner_loop)),
    ]
    if hasattr(IndentedBuffer, "get_lines_ref"):
        undo.append(patch(IndentedBuffer, "get_lines_ref", lines_ref(IndentedBuffer.get_lines_ref)))

    return undo_all(*undo, _maps.clear)


def _read(lines: list[Any], mark: type[Any]) -> dict[int, Origin]:
    """Line numbers of the marked lines, counted as in torch's `getvaluewithlinemap`."""
    found: dict[int, Origin] = {}
    number = 1
    pending: Origin | None = None
    for line in lines:
        if type(line) is mark:
            pending = line.origin
            continue
        if type(line).__name__ == "LineContext":
            continue
        text = line if isinstance(line, str) else line()
        if text is None:
            pending = None
            continue
        count = 1 + text.count("\n")
        if pending is not None and text.strip():
            for offset in range(count):
                found[number + offset] = pending
        pending = None
        number += count
    return found


HOOK = RecordingHook(
    name="origins of kernel lines",
    offers="which nodes and user lines each line of a generated kernel computes",
    needs=(
        "torch._inductor.utils:IndentedBuffer.writeline",
        "torch._inductor.utils:IndentedBuffer.getvaluewithlinemap",
        "torch._inductor.loop_body:InterpreterShim.run",
        "torch._inductor.codegen.common:DeferredLine",
        "torch._inductor.codegen.cpp:move_code_under_inner_loop",
        "torch._inductor.ir:Loops.__post_init__",
        "torch._inductor.loop_body:LightTracer.create_node",
        "torch._inductor.virtualized:V.get_current_node",
    ),
    install=install,
    stage="codegen",
    test="inductor/test_codegen.py",
)
