"""Builds of Triton kernels: found in Triton's cache, or compiled.

`AsyncCompile.triton` (torch/_inductor/async_compile.py) has a kernel compiled here or in a worker,
and `CachingAutotuner.precompile` takes in one binary for each configuration. Triton
(triton/compiler/compiler.py) keeps each in a folder named by its key, and never writes one that it
finds: a binary was found if its description (a `.json`) is older than the request. If another
process compiled it meanwhile, it counts as compiled.

Triton's key is a hash of the function's source, its signature, constants, the target, the options
and some environment variables; what of these is known here is the key's components.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tcw.compiler.control.hooks import RecordingHook, Uninstall, after_call, before_call, undo_all
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.current import current_compile_id, current_graph_id
from tcw.compiler.trace.key_components import CODE, Key, key_texts
from tcw.compiler.trace.records import CacheLookup
from tcw.compiler.trace.writer import text_hash

CACHE = "triton"
_MADE_BY_COMPILING = frozenset(
    {
        *("hash", "name", "shared", "tmem_size", "ptx_version", "cluster_dims", "global_scratch"),
        *("global_scratch_size", "global_scratch_align", "profile_scratch_size", "num_gsan"),
        *("profile_scratch_align", "tensordesc_meta", "warp_size", "n_regs", "n_spills"),
    }
)
"""Parts of a binary's description that are results."""
_OURS = frozenset({"num_warps", "num_stages"})
"""Options that the configuration has."""
_FILES = "FileCacheManager"


@dataclass(frozen=True)
class _Request:
    """A kernel that was asked for."""

    name: str
    text: str
    time: float
    """Unix time."""
    compile_id: str
    graph: str


def install(recorder: Recorder) -> Uninstall:
    from torch._inductor.async_compile import AsyncCompile, CompiledTritonKernels
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    safely = Safely(recorder, HOOK.name)
    requests: dict[str, _Request] = {}

    def asked(self: Any, kernel_name: str, source_code: str, *_: Any, **__: Any) -> None:
        compile_id, graph = current_compile_id(), current_graph_id()
        request = _Request(kernel_name, source_code, time.time(), compile_id, graph)
        requests[CompiledTritonKernels.key(source_code)] = request

    def taken_in(_result: None, kernel: Any, *_: Any, **kwargs: Any) -> None:
        request = requests.pop(kwargs.get("static_triton_bundle_key") or "", None)
        if request is not None:
            safely(_record, recorder, kernel, request)

    return undo_all(
        before_call(AsyncCompile, "triton", safely.guarded(asked)),
        after_call(CachingAutotuner, "precompile", taken_in),
    )


def _record(recorder: Recorder, autotuner: Any, request: _Request) -> None:
    from torch._inductor.runtime.runtime_utils import triton_cache_dir, triton_hash_to_path_key

    manager = _manager()
    if manager != _FILES:
        recorder.warn_once(
            f"Triton's cache is {manager}: which kernels it had is not known, only that of files is"
        )
        return
    cache = triton_cache_dir(autotuner.triton_meta.get("device", 0))
    for result in autotuner.compile_results:
        key = str(result.kernel.hash)
        found = binary_description(os.path.join(cache, triton_hash_to_path_key(key)))
        if found is None:
            continue
        written_at, description = found
        hit = written_at < request.time
        made_of = Key(request.graph, dict(_components(autotuner, result, request, description)))
        recorder.emit(
            CacheLookup(
                cache=CACHE,
                verdict="hit" if hit else "miss",
                compile_id=request.compile_id,
                graph=request.graph,
                key=key,
                missed="" if hit else "kernels have to be compiled",
                components=tuple(map(recorder.text, key_texts(made_of))),
            )
        )


def _manager() -> str:
    """The class of Triton's cache: `FileCacheManager`, unless a remote one is set."""
    from triton import knobs

    found = knobs.cache.manager_class
    return str(getattr(found, "__name__", found) or _FILES)


def binary_description(folder: str) -> tuple[float, dict[str, Any]] | None:
    """(when it was written, Triton's description of a binary); None if there is none."""
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".json")]
        name = next(name for name in names if not name.startswith("__grp__"))
        path = os.path.join(folder, name)
        with open(path, encoding="utf-8") as stream:
            description = json.load(stream)
        return os.stat(path).st_mtime, description if isinstance(description, dict) else {}
    except (OSError, ValueError, StopIteration):
        return None


def _components(
    autotuner: Any, result: Any, request: _Request, description: dict[str, Any]
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Name -> (hash, text) of what the key is made of."""
    meta = autotuner.triton_meta
    code = request.text.rpartition("@triton.jit\n")[2]
    yield CODE, (text_hash(code), request.name)
    config = result.config
    chosen = {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}
    known: dict[str, object] = {
        "configuration": f"({', '.join(f'{name}={value}' for name, value in chosen.items())})",
        "signature": meta.get("signature"),
        "constants": meta.get("constants"),
        "attributes": meta.get("configs"),
    }
    for name, value in known.items():
        yield name, (text_hash(str(value)), str(value))
    for name, value in sorted(description.items()):
        if name not in _MADE_BY_COMPILING | _OURS:
            yield f"config[{name}]", (text_hash(str(value)), str(value))


_AUTOTUNER = "torch._inductor.runtime.triton_heuristics:CachingAutotuner"

HOOK = RecordingHook(
    name="triton builds",
    offers="which Triton kernels had to be compiled, and which were in Triton's cache",
    needs=(
        "torch._inductor.async_compile:AsyncCompile.triton(kernel_name, source_code)",
        "torch._inductor.async_compile:CompiledTritonKernels.key",
        f"{_AUTOTUNER}.precompile(static_triton_bundle_key)",
        "torch._inductor.runtime.runtime_utils:triton_cache_dir",
        "torch._inductor.runtime.runtime_utils:triton_hash_to_path_key",
        "triton.knobs:cache",
    ),
    install=install,
    stage="build",
    test="inductor/test_triton_builds.py",
)
