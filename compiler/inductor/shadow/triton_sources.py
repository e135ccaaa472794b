"""The Triton kernels of a generated wrapper, loaded and compiled as Inductor's own runtime does.

`CachingAutotuner._precompile_config` (torch/_inductor/runtime/triton_heuristics.py) compiles the
first configuration that the stock heuristic lists. If it lists several, a GPU would time them and
might keep another.
"""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import logging
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch._inductor import config
from torch._inductor.runtime.autotune_cache import AutotuneCache
from torch._inductor.runtime.triton_heuristics import CachingAutotuner

from tcw.compiler.control.hooks import patch
from tcw.compiler.gpu.architectures import Architecture
from tcw.compiler.gpu.machine_code import Binary, read, words
from tcw.compiler.trace.writer import text_hash


class NoKernel(Exception):
    """Generated code that is not a kernel as expected; the message says what it is."""


@dataclass(frozen=True)
class KernelSource:
    name: str
    """The generated function's name."""
    text: str
    """A self-contained module: imports, the heuristic's decorator, the function."""


def kernel_sources(wrapper: str) -> list[KernelSource]:
    """Kernels that the wrapper defines, `name = async_compile.triton('name', '''source''')`."""
    found = []
    for statement in ast.parse(wrapper).body:
        call = statement.value if isinstance(statement, ast.Assign) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        texts = [each.value for each in call.args if isinstance(each, ast.Constant)]
        if call.func.attr == "triton" and len(texts) >= 2:
            found.append(KernelSource(name=str(texts[0]), text=str(texts[1])))
    return found


def load_kernel(kernel: KernelSource) -> Any:
    """Run the kernel's module: its decorator chooses the configurations for the pretended device.

    Returns torch's `CachingAutotuner`. The source is only in `linecache`, where Triton's compiler
    finds it, so nothing is written to disk.
    """
    file = f"{kernel.name}.{text_hash(kernel.text)}.py"
    linecache.cache[file] = (len(kernel.text), None, kernel.text.splitlines(True), file)
    try:
        module: dict[str, Any] = {"__name__": kernel.name, "__file__": file}
        exec(compile(kernel.text, file, "exec"), module)
        loaded = module.get(kernel.name) or module.get("triton_")
        if not isinstance(loaded, CachingAutotuner):
            raise NoKernel(f"{kernel.name} is a {type(loaded).__name__}, not a kernel")
        # Triton reads the source again when it compiles; this makes it keep what it read.
        str(loaded.fn.src)
        return loaded
    finally:
        linecache.cache.pop(file, None)


def configuration_text(configuration: Any, of: int) -> str:
    """`XBLOCK=1024 num_warps=4 num_stages=1`, and how many candidates a GPU would time."""
    parts = [f"{name}={value}" for name, value in configuration.kwargs.items()]
    parts += [f"num_warps={configuration.num_warps}", f"num_stages={configuration.num_stages}"]
    if of > 1:
        parts.append(f"(first of {of} that a GPU would time)")
    return " ".join(parts)


HEURISTICS = "torch._inductor.runtime.triton_heuristics"
STATIC_LAUNCHERS = ("use_static_triton_launcher", "use_static_cuda_launcher")


def assemble(
    kernels: Sequence[KernelSource], architecture: Architecture, cache: Path
) -> list[Binary]:
    """Compile kernels, in order, inside `pretending`. Failures are in their facts.

    NVIDIA's tools are separate processes, and nvdisasm takes about as long as a compile, so they
    process one kernel while the next one is compiled.
    """
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as readers:
        reading: list[Future[Binary]] = []
        for kernel in kernels:
            start = time.perf_counter()
            compiled, configuration, error = _compiled(kernel, cache / "triton")
            seconds = time.perf_counter() - start
            about = architecture, cache / "sass", configuration, seconds, error
            reading.append(readers.submit(read, compiled, *about))
        return [each.result() for each in reading]


def _compiled(kernel: KernelSource, cache: Path) -> tuple[Any, str, str]:
    """Triton's compiled kernel, its configuration, and the error text."""
    configuration = ""
    try:
        with _triton_alone(cache):
            autotuner = load_kernel(kernel)
            first = autotuner.configs[0]
            configuration = configuration_text(first, len(autotuner.configs))
            return autotuner._precompile_config(first).kernel, configuration, ""
    except Exception as error:
        return None, configuration, words(error)


@contextlib.contextmanager
def _triton_alone(cache: Path) -> Iterator[None]:
    """Triton uses our cache, and writes nothing to the user's output or log."""
    name = "TRITON_CACHE_DIR"
    before = os.environ.get(name)
    launchers = {each: False for each in STATIC_LAUNCHERS if each in config._config}
    with contextlib.ExitStack() as undo:
        # A statically launched kernel keeps no texts.
        undo.enter_context(config.patch(launchers))
        undo.enter_context(contextlib.redirect_stdout(io.StringIO()))
        undo.callback(patch(logging.getLogger(HEURISTICS), "disabled", True))
        # A configuration that a real GPU chose on this machine earlier is not a prediction.
        undo.callback(patch(AutotuneCache, "create", staticmethod(lambda *a, **k: None)))
        os.environ[name] = str(cache)
        try:
            yield
        finally:
            if before is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = before
