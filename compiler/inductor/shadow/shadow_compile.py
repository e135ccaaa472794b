"""The shadow compile: each graph that Inductor compiles for the CPU is also compiled for a GPU.

Capture, AOTAutograd and the run stay on the CPU. At the inner compile the ATen graph is copied,
retargeted to a fake `cuda:0` and passed to stock Inductor, which is stopped once it has generated
code. The real compile then proceeds unaffected.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch._dynamo.utils import dynamo_timed
from torch._functorch import config as functorch_config
from torch._inductor import compile_fx, config
from torch._inductor.graph import GraphLowering

from tcw.compiler.cache_folder import CacheRefused, cache_folder
from tcw.compiler.control.hooks import Uninstall, during, patch
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.gpu.architectures import Architecture
from tcw.compiler.gpu.machine_code import Binary, record
from tcw.compiler.gpu.retarget import retarget, tell_of_cpu_calls
from tcw.compiler.inductor.predicted import predicting
from tcw.compiler.inductor.shadow.device import NoGuard, pretending
from tcw.compiler.inductor.shadow.triton_sources import assemble, kernel_sources
from tcw.compiler.inductor.shadow.undisturbed import undisturbed
from tcw.compiler.protocol.error_words import error_line
from tcw.compiler.trace.records import Kernel, Progress, Record

WITHOUT_TIMING: dict[str, object] = dict.fromkeys(
    (
        *("fx_graph_cache", "fx_graph_remote_cache", "max_autotune", "max_autotune_gemm"),
        *("coordinate_descent_tuning", "benchmark_fusion", "benchmark_combo_kernel"),
        *("benchmark_kernel", "cpp_wrapper", "triton.cudagraphs"),
        "triton.autotune_at_compile_time",
    ),
    False,
)
"""Settings that would make Inductor run something on a GPU during code generation."""

TIMED = ("max_autotune", "max_autotune_gemm", "coordinate_descent_tuning", "benchmark_fusion")
"""The measuring settings whose outcome is a choice that users want to see."""


class Generated(BaseException):
    """Ends a shadow compile once the code exists. No `except Exception` in torch catches it."""

    def __init__(self, code: str) -> None:
        self.code = code


class Shadow:
    """Predicts GPU code for the graphs of one recording."""

    def __init__(self, recorder: Recorder, architecture: Architecture) -> None:
        self.recorder = recorder
        self.architecture = architecture
        self._binaries: dict[str, Binary] = {}

    def predict(self, compile_graph: Callable[..., Any], args: Any, kwargs: Any) -> None:
        """Record the GPU code of the graph that `compile_graph(*args, **kwargs)` compiles.

        Internal errors are not raised but recorded as `Warned`.
        """
        token = predicting.set(self.architecture.name)
        try:
            with self.recorder.aside():
                self._predict(compile_graph, args, kwargs)
        except (NoGuard, CacheRefused) as error:
            message = f"no {self.architecture.name} code is predicted: {error}"
            self.recorder.warn_once(message, asked=True)
        except Exception as error:
            self.recorder.warn_once(
                f"the {self.architecture.name} code of {self._graph(kwargs)} is not predicted"
                f"{_operation(error)}: {error_line(error, 500)}"
            )
        finally:
            predicting.reset(token)

    def _predict(self, compile_graph: Callable[..., Any], args: Any, kwargs: Any) -> None:
        arch = self.architecture.name
        cache = cache_folder()
        self.recorder.emit(Progress(stage="codegen", activity=f"predicting {arch} code"))
        module, inputs, *rest = args
        for name in TIMED:
            if getattr(config, name, False):
                self.recorder.warn_once(
                    f"{name} makes Inductor time candidates on the GPU; "
                    f"the predicted {arch} code is generated without it"
                )
        with ExitStack() as around:
            seen = around.enter_context(_kernels_seen(self.recorder))
            around.enter_context(undisturbed(inputs))
            around.enter_context(dynamo_timed(f"predict {arch}"))
            around.enter_context(pretending(self.architecture))
            tell_of_cpu_calls(self.recorder, module, arch)
            code = _generated(compile_graph, module, inputs, rest, kwargs)
            kernels = kernel_sources(code)
            fresh = [each for each in kernels if each.text not in self._binaries]
            if fresh:
                doing = f"compiling {len(fresh)} kernels for {arch}"
                self.recorder.emit(Progress(stage="codegen", activity=doing))
            done = assemble(fresh, self.architecture, cache)
            self._binaries.update(
                (each.text, binary) for each, binary in zip(fresh, done, strict=True)
            )
        for kernel in kernels:
            identity = seen.get(kernel.name, kernel.name)
            record(self.recorder, self._binaries[kernel.text], identity)

    def _graph(self, kwargs: Any) -> str:
        half = "backward" if kwargs.get("is_backward") else "forward"
        return f"{self.recorder.compile_id or 'a graph'} ({half})"


def _generated(
    compile_graph: Callable[..., Any], module: Any, inputs: Any, rest: Any, kwargs: Any
) -> str:
    """The wrapper code, kernels included, of the graph on the pretended device; "" if none."""
    copied, moved = retarget(module, inputs)
    settings = {name: value for name, value in WITHOUT_TIMING.items() if name in config._config}
    options = {**kwargs, "cpp_wrapper": False}
    if options.get("cudagraphs") is not None:
        # The compile may write into this box; the real one keeps its own.
        options["cudagraphs"] = type(options["cudagraphs"])(False)
    with ExitStack() as around:
        around.callback(patch(GraphLowering, "compile_to_module", _stop_after_codegen))
        around.enter_context(config.patch(settings))
        # torch's warnings here concern a device that does not exist.
        around.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        try:
            compile_graph(copied, moved, *rest, **options)
        except Generated as generated:
            return generated.code
    return ""


def _stop_after_codegen(graph: Any) -> Any:
    code, _ = graph.codegen()
    if GraphLowering.save_output_code is not None:
        GraphLowering.save_output_code(code.value)
    raise Generated(code.value)


@contextmanager
def _kernels_seen(recorder: Recorder) -> Iterator[dict[str, str]]:
    """Ids of the kernels recorded inside the block, by name of the generated function."""
    seen: dict[str, str] = {}
    emit = recorder.emit

    def listen(record: Record) -> None:
        if isinstance(record, Kernel):
            seen[record.name] = record.id
        emit(record)

    with during(patch(recorder, "emit", listen)):
        yield seen


def _operation(error: Exception) -> str:
    """` (at aten.foo.default)` if torch reports at which operation it failed."""
    match = re.search(r"target: (\S+)|While executing (%\S+ : [^\n]*)", str(error))
    return f" (at {(match.group(1) or match.group(2))[:200]})" if match else ""


def install(recorder: Recorder, architecture: Architecture) -> Uninstall:
    """Predict code for every graph that Inductor compiles from now on."""
    shadow = Shadow(recorder, architecture)
    compile_graph = compile_fx._compile_fx_inner

    def compile_both(*args: Any, **kwargs: Any) -> Any:
        if not recorder.quiet and not predicting.get():
            shadow.predict(compile_graph, args, kwargs)
        return compile_graph(*args, **kwargs)

    undo = ExitStack()
    # A hit in this cache returns finished code, which leaves no graph to predict from.
    undo.enter_context(functorch_config.patch(enable_autograd_cache=False))
    undo.callback(patch(compile_fx, "_compile_fx_inner", compile_both))
    return undo.close
