"""Builds of C++ kernels: whether the library already existed or a compiler had to be started.

`CppCodeCache.load_async` (torch/_inductor/codecache.py) returns a function that will load a
library, the same one as before for a library loaded in this process. For any other, it submits a
build to torch's workers if the file does not exist; the function then holds the file's path and the
future of that build. If the function of this torch holds no path, nothing is recorded.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tcw.compiler.control.hooks import RecordingHook, Uninstall, patch
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.current import current_compile_id
from tcw.compiler.trace.records import CacheLookup

CACHE = "kernel build"


def install(recorder: Recorder) -> Uninstall:
    from torch._inductor.codecache import CppCodeCache

    safely = Safely(recorder, HOOK.name)
    original = CppCodeCache.load_async.__func__

    def load_async(cls: Any, *args: Any, **kwargs: Any) -> Any:
        known = set(cls.cache)
        load = original(cls, *args, **kwargs)
        safely(_record, recorder, cls.cache, known, load)
        return load

    return patch(CppCodeCache, "load_async", classmethod(load_async))


def _record(recorder: Recorder, cache: dict[str, Any], known: set[str], load: Any) -> None:
    key = next((key for key, value in cache.items() if value is load), "")
    found = True if key in known else library_found(load)
    if not key or found is None:
        return
    recorder.emit(
        CacheLookup(
            cache=CACHE,
            verdict="hit" if found else "miss",
            compile_id=current_compile_id(),
            key=key,
            missed="" if found else "the library has to be built",
        )
    )


def library_found(load: Callable[[], object]) -> bool | None:
    """Whether the file that `load` will load already existed; None if unknown."""
    code, cells = getattr(load, "__code__", None), getattr(load, "__closure__", None)
    if code is None or cells is None:
        return None
    held = dict(zip(code.co_freevars, cells, strict=False))
    if "binary_path" not in held or "future" not in held:
        return None
    building, path = held["future"].cell_contents, held["binary_path"].cell_contents
    return building is None and isinstance(path, str) and os.path.exists(path)


HOOK = RecordingHook(
    name="kernel builds",
    offers="which C++ kernels had to be built, and which libraries were there",
    needs=(
        "torch._inductor.codecache:CppCodeCache.load_async",
        "torch._inductor.codecache:CppCodeCache.cache",
    ),
    install=install,
    stage="build",
    test="inductor/test_kernel_builds.py",
)
