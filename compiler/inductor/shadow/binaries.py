"""A Triton kernel compiled for an architecture: every stage's text, and the kernel's resources.

Compiled by `CachingAutotuner._precompile_config`, the function that a real run uses
(torch/_inductor/runtime/triton_heuristics.py), for the first configuration that the stock heuristic
lists. If it lists several, a GPU would time them and might keep another.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from torch._inductor import config
from torch._inductor.runtime.autotune_cache import AutotuneCache

from tcw.compiler.control.hooks import patch
from tcw.compiler.gpu.architectures import Architecture
from tcw.compiler.gpu.binaries import Binary, read, words
from tcw.compiler.inductor.shadow.triton_sources import KernelSource, describe, load

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
            autotuner = load(kernel)
            first = autotuner.configs[0]
            configuration = describe(first, len(autotuner.configs))
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
