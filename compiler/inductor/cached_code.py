"""Code from the FX graph cache: nothing was lowered or fused, but the text exists.

torch stores the wrapper's text in a cache entry (`CompiledFxGraph.source_code`,
torch/_inductor/output_code.py) and loads it in `after_deserialization`. The wrapper and its kernels
are read from that text. torch does not store their origins, so these are reported as unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from tcw.compiler.control.hooks import RecordingHook, Uninstall, after_call
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.current import lowering_graph_id
from tcw.compiler.inductor.code_nests import nests_of
from tcw.compiler.inductor.predicted import predicting
from tcw.compiler.trace.generated_code import definitions
from tcw.compiler.trace.loop_nests import loop_lines
from tcw.compiler.trace.records import Kernel, Wrapper

NO_LINE = "its code came from the FX graph cache, which keeps no nodes and no lines"

_LIBRARY = re.compile(
    r"^ +(?:\w+ = )?(?P<name>(?:extern_kernels|torch\.ops|aten)\.[\w.]+)\(", re.MULTILINE
)


def install(recorder: Recorder) -> Uninstall:
    from torch._inductor.output_code import CompiledFxGraph

    note = Safely(recorder, HOOK.name).guarded(_record, recorder)
    return after_call(CompiledFxGraph, "after_deserialization", note)


def _record(recorder: Recorder, _path: Any, compiled: Any, *_: Any, **__: Any) -> None:
    options = getattr(compiled, "fx_kwargs", None) or {}
    parent = lowering_graph_id(options.get("is_backward"), options.get("is_inference"))
    arch = predicting.get()
    graph = f"{parent}@{arch}/lowered" if arch else f"{parent}/lowered"
    source = str(compiled.source_code)
    for name, language, text in kernels_in(source):
        recorder.emit(
            Kernel(
                id=recorder.next_kernel(),
                graph=graph,
                name=name,
                label=label_of(name),
                language=language,
                text=recorder.text(text),
                no_line=NO_LINE,
                loops=loop_lines(text) if language == "cpp" else (),
                loop_nests=nests_of(text, language),
                predicted=bool(arch),
            )
        )
    recorder.emit(
        Wrapper(graph=graph, language="python", text=recorder.text(source), predicted=bool(arch))
    )
    recorder.served_from_torch_caches()


def kernels_in(source: str) -> Iterator[tuple[str, Literal["cpp", "triton", "aten"], str]]:
    """(name, language, text) of each kernel that a wrapper defines, then of each library call."""
    end = 0
    for definition in definitions(source):
        if definition.how in ("cpp_pybinding", "triton"):
            language: Literal["cpp", "triton"] = "triton" if definition.how == "triton" else "cpp"
            yield definition.name, language, definition.text.removeprefix("\n")
            end = definition.end
    for match in _LIBRARY.finditer(source, end):
        yield match["name"], "aten", ""


def label_of(name: str) -> str:
    """A label from torch's name for a kernel: `cpp_fused_gelu_mul_0` -> `gelu_mul`."""
    match = re.fullmatch(r"(?:cpp|triton_\w{3})_fused_(.*)_\d+", name)
    return match[1].strip("_") if match else name.rpartition(".")[2]


HOOK = RecordingHook(
    name="cached code",
    offers="the wrapper and the kernels of a graph found in the FX graph cache",
    needs=("torch._inductor.output_code:CompiledFxGraph.after_deserialization",),
    install=install,
    stage="codegen",
    test="inductor/test_codegen.py",
)
