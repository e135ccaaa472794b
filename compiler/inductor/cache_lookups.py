"""Compile caches: each lookup, and why it missed.

A compile that AOTAutograd's cache serves is not partitioned, transformed or lowered again. Its hit
is the record of that, and the trace then has no graphs of that compile.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Literal

from tcw.compiler.control.hooks import (
    RecordingHook,
    Uninstall,
    after_call,
    before_call,
    patch,
    undo_all,
)
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.current import current_compile_id, lowering_graph_id
from tcw.compiler.trace.key_components import Lookups

LookupVerdict = Literal["hit", "miss", "bypass"]
FX, AUTOGRAD = "fx graph", "aot autograd"


class _Asked(threading.local):
    def __init__(self) -> None:
        self.graph = ""
        """The graph whose FX key is being made."""
        self.autograd: list[dict[str, Any]] = []
        """torch's metadata of the AOTAutograd lookups in progress."""


class Caches:
    """Writes the lookups of one recording, and remembers keys to explain misses."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.asked = _Asked()
        self._lookups = Lookups()

    def lookup(
        self, cache: str, verdict: LookupVerdict, info: Mapping[str, Any], graph: str = ""
    ) -> None:
        """`info`: as for `Lookups.record`."""
        saved = _saved_seconds(info) if verdict == "hit" else None
        text, compile_id = self.recorder.text, current_compile_id()
        self.recorder.emit(
            self._lookups.record(cache, verdict, compile_id, graph, info, saved, text)
        )

    def graph_asked(
        self, gm: Any, example_inputs: Any, fx_kwargs: Mapping[str, Any], *_: Any, **__: Any
    ) -> None:
        """Inductor computes a graph's FX key, given the arguments of `compile_fx_inner`."""
        self.asked.graph = lowering_graph_id(
            fx_kwargs.get("is_backward"), fx_kwargs.get("is_inference")
        )

    def graph_prepared(self, result: Any, *_: Any, **__: Any) -> None:
        """The key has been computed, or the graph cannot be cached."""
        info = result[1]
        if info and info.get("cache_state") == "bypass":
            self.lookup(FX, "bypass", info, self.asked.graph)
            self.asked.graph = ""

    def graph_loaded(self, found: bool, info: Mapping[str, Any], is_backward: bool) -> None:
        graph, self.asked.graph = self.asked.graph, ""
        if not graph:  # on behalf of an AOTAutograd entry
            entry = self.asked.autograd[-1] if self.asked.autograd else {}
            if is_backward or "is_inference" in entry:
                graph = lowering_graph_id(is_backward, entry.get("is_inference"))
        self.lookup(FX, "hit" if found else "miss", info, graph)

    def autograd_loaded(self, info: Mapping[str, Any], hit: bool) -> None:
        state = info.get("cache_state")
        if state in ("hit", "miss", "bypass"):
            self.lookup(AUTOGRAD, state, info)
        else:
            self.lookup(AUTOGRAD, "hit" if hit else "miss", info)
        if hit:
            self.recorder.graphs_unknown = True
            self.recorder.served_from_torch_caches()

    def remote_asked(self, found: Any, remote: Any, key: Any, *_: Any, **__: Any) -> None:
        cache = type(remote).__name__
        where = "local" if cache.startswith("Local") else "remote"
        name = _NAMES.get(cache, f"{where}: {cache}")
        self.lookup(name, "miss" if found is None else "hit", {"key": str(key)})


_NAMES = {"LocalAutotuneCache": "triton configurations"}
"""Class of a remote cache in torch -> what it keeps; some are files of this machine."""


def _saved_seconds(info: Mapping[str, Any]) -> float | None:
    if (nanoseconds := info.get("time_saved_ns")) is not None:
        return float(nanoseconds) / 1e9
    if (milliseconds := info.get("time_saved_ms")) is not None:
        return float(milliseconds) / 1e3
    return None


def install(recorder: Recorder) -> Uninstall:
    from torch._dynamo.utils import CompileEventLogger
    from torch._functorch._aot_autograd.autograd_cache import (
        AOTAutogradCache,
        AOTAutogradCacheDetails,
        AOTAutogradCachePickler,
    )
    from torch._inductor.codecache import FxGraphCache
    from torch._inductor.remote_cache import RemoteCache

    caches = Caches(recorder)
    safely = Safely(recorder, HOOK.name)
    try_load = AOTAutogradCache.try_load

    def loaded(result: Any, key: Any, debug_lines: Any, *args: Any, **kwargs: Any) -> None:
        is_backward = kwargs.get("is_backward", args[3] if len(args) > 3 else False)
        safely(caches.graph_loaded, result[0] is not None, result[1], bool(is_backward))

    def autograd_loaded(*args: Any, **kwargs: Any) -> Any:
        info: dict[str, Any] = {}
        caches.asked.autograd.append(info)
        hit = False
        try:
            result = try_load(*args, **kwargs)
            hit = (result[0] if isinstance(result, tuple) else result) is not None
            return result
        finally:
            caches.asked.autograd.pop()
            safely(caches.autograd_loaded, info, hit)

    def looked_up(result: Any, *_: Any, **__: Any) -> None:
        if result is not None and caches.asked.autograd:
            entry = result[0] if isinstance(result, tuple) else result
            caches.asked.autograd[-1]["is_inference"] = getattr(entry, "compiled_bw", False) is None

    def said(event_name: Any, metadata: Any = None, *_: Any, **__: Any) -> None:
        if caches.asked.autograd and str(event_name).startswith("autograd_cache_"):
            known = {name: value for name, value in (metadata or {}).items() if value}
            caches.asked.autograd[-1].update(known)

    def keyed(result: Any, pickler: Any, details: Any) -> None:
        # from 2.12 on, torch itself makes the components only where debug messages are on
        if caches.asked.autograd and isinstance(details, AOTAutogradCacheDetails):
            caches.asked.autograd[-1]["components"] = pickler.debug_lines(details)

    return undo_all(
        after_call(AOTAutogradCachePickler, "get_hash", safely.guarded(keyed)),
        before_call(FxGraphCache, "prepare_key", safely.guarded(caches.graph_asked)),
        after_call(FxGraphCache, "prepare_key", safely.guarded(caches.graph_prepared)),
        after_call(FxGraphCache, "load_with_key", loaded),
        patch(AOTAutogradCache, "try_load", staticmethod(autograd_loaded)),
        after_call(AOTAutogradCache, "_lookup", looked_up),
        before_call(CompileEventLogger, "instant", said),
        after_call(RemoteCache, "get", safely.guarded(caches.remote_asked)),
    )


_AUTOGRAD_CACHE = "torch._functorch._aot_autograd.autograd_cache:AOTAutogradCache"

HOOK = RecordingHook(
    name="caches",
    offers="hits and misses of torch's compile caches, and why each miss missed",
    needs=(
        "torch._inductor.codecache:FxGraphCache.prepare_key(gm, example_inputs, fx_kwargs)",
        "torch._inductor.codecache:FxGraphCache.load_with_key(key, debug_lines, is_backward)",
        f"{_AUTOGRAD_CACHE}Details",
        f"{_AUTOGRAD_CACHE}Pickler.get_hash",
        f"{_AUTOGRAD_CACHE}Pickler.debug_lines",
        f"{_AUTOGRAD_CACHE}.try_load",
        f"{_AUTOGRAD_CACHE}._lookup",
        "torch._dynamo.utils:CompileEventLogger.instant(event_name, metadata)",
        "torch._inductor.remote_cache:RemoteCache.get(key)",
    ),
    install=install,
    stage="autograd",
    test="inductor/test_caches.py",
)
