"""Generated code: the wrapper, every kernel that it calls, and every library call.

`GraphLowering.codegen` (torch/_inductor/graph.py) generates the code of one graph. Kernels are
defined by the backend's `define_kernel` (codegen/cpp.py, codegen/triton.py), which is called
several times for a kernel whose text repeats. A library call is `Scheduler.codegen_extern_call`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from tcw.compiler.control.hooks import RecordingHook, Uninstall, after_call, patch, undo_all
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.labels import copy_label, user_label
from tcw.compiler.graphs.realised import kept_graphs
from tcw.compiler.inductor.generation import Draft, Generation, generations
from tcw.compiler.inductor.kernel_lines import origins_of_lines
from tcw.compiler.inductor.kernel_nests import cpp_nests, triton_nests, watch_nests
from tcw.compiler.inductor.lowered_graphs import Lowering, lowering_of
from tcw.compiler.inductor.scheduler_nodes import computed_by, sorted_nodes
from tcw.compiler.trace.records import Wrapper

_CALL_LINES = ("OutLine", "AllocLine", "FallbackLine", "KernelCallLine")
"""Suffixes of the class names of wrapper lines that call something."""
_RESULTS = ("MultiOutput",)
"""IR classes of nodes that only name one result of the preceding call."""


def install(recorder: Recorder) -> Uninstall:
    from torch._inductor.codegen.cpp import CppScheduling
    from torch._inductor.codegen.triton import TritonScheduling
    from torch._inductor.graph import GraphLowering
    from torch._inductor.scheduler import Scheduler
    from torch._inductor.virtualized import V

    safely = Safely(recorder, HOOK.name)
    generate, call_out = GraphLowering.codegen, Scheduler.codegen_extern_call

    def codegen(self: Any, *args: Any, **kwargs: Any) -> Any:
        lowering = safely(lowering_of, recorder, self)
        if lowering is None:
            return generate(self, *args, **kwargs)
        generation = Generation(recorder, lowering)
        generations.stack.append(generation)
        try:
            result = generate(self, *args, **kwargs)
        finally:
            generations.stack.remove(generation)
        safely(generation.write)
        safely(_write_wrapper, recorder, lowering, self, result)
        kept = kept_graphs(recorder).get(lowering.id)
        if kept is not None:
            kept.unstored.update(getattr(self, "inplaced_to_remove", ()))
        return result

    def codegen_extern_call(self: Any, scheduler_node: Any, *args: Any, **kwargs: Any) -> Any:
        if not generations.stack or recorder.quiet:
            return call_out(self, scheduler_node, *args, **kwargs)
        start = len(V.graph.wrapper_code.lines)
        result = call_out(self, scheduler_node, *args, **kwargs)
        safely(_record_call, recorder, generations.stack[-1], scheduler_node, start)
        return result

    return undo_all(
        patch(GraphLowering, "codegen", codegen),
        patch(Scheduler, "codegen_extern_call", codegen_extern_call),
        after_call(CppScheduling, "define_kernel", safely.guarded(_record_kernel, recorder, "cpp")),
        after_call(
            TritonScheduling,
            "define_kernel",
            safely.guarded(_record_kernel, recorder, "triton"),
        ),
        watch_nests(safely),
    )


def _write_wrapper(recorder: Recorder, lowering: Lowering, graph: Any, result: Any) -> None:
    text = getattr(result[0], "value", None) if isinstance(result, tuple) else None
    if isinstance(text, str):
        recorder.emit(
            Wrapper(
                graph=lowering.id,
                language="cpp" if graph.cpp_wrapper else "python",
                text=recorder.text(text),
                predicted=lowering.predicted,
            )
        )


def _record_kernel(
    recorder: Recorder,
    language: Literal["cpp", "triton"],
    defined: Any,
    scheduling: Any,
    src_code: str,
    nodes: Iterable[Any],
    *_: Any,
    **__: Any,
) -> None:
    if not generations.stack:
        return
    from torch._inductor.virtualized import V

    generation, name = generations.stack[-1], str(defined)
    lowering = lowering_of(recorder, V.graph)
    draft = generation.by_name.get(name)
    if draft is None:
        draft = Draft(recorder.next_kernel(), name, language, lowering)
        draft.text = final_text(src_code, name, language)
        generation.drafts.append(draft)
        generation.by_name[name] = draft
    members = [
        member
        for node in nodes
        if hasattr(node, "get_nodes") and hasattr(node, "get_name")
        for member in node.get_nodes()
    ]
    _add(draft, members, lowering)
    for number, origin in origins_of_lines(src_code).items():
        draft.line_origins.setdefault(number, {})[origin] = None
    draft.nests += cpp_nests(scheduling) if language == "cpp" else triton_nests(nodes)


def _add(draft: Draft, members: Iterable[Any], lowering: Lowering) -> None:
    found: dict[Any, None] = {}
    for member in members:
        draft.nodes[member.get_name()] = None
        found.update(dict.fromkeys(computed_by(member)))
    nodes = sorted_nodes(list(found), lowering)
    draft.origins.update(dict.fromkeys(node.name for node in nodes))
    if not draft.label:
        draft.label = user_label(nodes, lowering.originals)
        words = [lowering.labels.get(name, "") for name in draft.nodes]
        if draft.language != "aten" and all(word.startswith("copy") for word in words):
            draft.label = copy_label(draft.label)


def final_text(source: str, name: str, language: str) -> str:
    """The kernel's text as in the wrapper, with torch's placeholders filled in."""
    from torch._inductor import config
    from torch._inductor.utils import Placeholder

    called = "kernel"
    if language == "triton":
        called = name if config.triton.unique_kernel_names else "triton_"
    return source.replace(str(Placeholder.DESCRIPTIVE_NAME), name).replace(
        str(Placeholder.KERNEL_NAME), called
    )


def _record_call(recorder: Recorder, generation: Generation, node: Any, start: int) -> None:
    from torch._inductor.virtualized import V

    if any(base.__name__ in _RESULTS for base in type(node.node).__mro__):
        return
    lowering = lowering_of(recorder, V.graph)
    draft = Draft(recorder.next_kernel(), call_name(node.node), "aten", lowering)
    _add(draft, [node], lowering)
    draft.label = draft.label or draft.name.rpartition(".")[2]
    generation.drafts.append(draft)
    wrapper = V.graph.wrapper_code
    place = call_line(wrapper.lines, start)
    if place is not None:
        generation.calls[id(wrapper), place] = draft


def call_line(lines: list[Any], start: int) -> int | None:
    """Index of the line, from `start` on, that makes the call: not an allocation or a comment."""
    for place in range(start, len(lines)):
        line = lines[place]
        if isinstance(line, str):
            if line.strip() and not line.lstrip().startswith("#"):
                return place
        elif type(line).__name__.endswith(_CALL_LINES):
            return place
    return None


def call_name(ir: Any) -> str:
    """What the wrapper calls: `extern_kernels.addmm`, `torch.ops.aten…`, else the IR's class."""
    name = getattr(ir, "python_kernel_name", None)
    if not name and hasattr(ir, "try_get_kernel_name"):
        name = ir.try_get_kernel_name()
    return str(name) if name else type(ir).__name__


HOOK = RecordingHook(
    name="generated code",
    offers="the wrapper, each kernel's source with its nodes and lines, and each library call",
    needs=(
        "torch._inductor.graph:GraphLowering.codegen",
        "torch._inductor.scheduler:Scheduler.codegen_extern_call",
        "torch._inductor.codegen.cpp:CppScheduling.define_kernel(src_code, nodes)",
        "torch._inductor.codegen.cpp:CppScheduling.codegen_outer_loop_node(node)",
        "torch._inductor.codegen.cpp:KernelGroup.finalize_kernel(new_kernel, nodes)",
        "torch._inductor.codegen.triton:TritonScheduling.define_kernel(src_code, node_schedule)",
        "torch._inductor.utils:Placeholder.KERNEL_NAME",
    ),
    install=install,
    stage="codegen",
    test="inductor/test_codegen.py",
)
