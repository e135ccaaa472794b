"""Builds of C++ kernels: already loaded, on disk, or to be built."""

from __future__ import annotations

import inspect

from torch._inductor.codecache import CppCodeCache

from tcw.compiler.inductor import kernel_builds
from tcw.compiler.trace.records import CacheLookup
from tests.cpu.recorded import record

CODE = 'extern "C" int answer() { return 42; }'
PLAIN = (
    {"needs_vec_isa": False}  # since torch 2.13
    if "needs_vec_isa" in inspect.signature(CppCodeCache.load_async).parameters
    else {}
)


def test_a_library_is_built_once_and_then_found() -> None:
    before = vars(CppCodeCache)["load_async"]
    with record((kernel_builds.HOOK,), caches=True) as recorded:
        load = CppCodeCache.load_async(CODE, **PLAIN)
        assert load().answer() == 42
        CppCodeCache.load_async(CODE, **PLAIN)
        CppCodeCache.cache.clear()  # as in another process
        CppCodeCache.load_async(CODE, **PLAIN)
    found = recorded.all(CacheLookup)
    assert [lookup.verdict for lookup in found] == ["miss", "hit", "hit"]
    assert {lookup.cache for lookup in found} == {"kernel build"}
    assert len({lookup.key for lookup in found}) == 1
    assert [bool(lookup.missed) for lookup in found] == [True, False, False]
    assert vars(CppCodeCache)["load_async"] is before


def test_a_build_that_a_worker_has_begun_is_a_miss() -> None:
    with record((kernel_builds.HOOK,), caches=True) as recorded:
        begun = []
        CppCodeCache.load_async(CODE, **PLAIN, submit_fn=begun.append)
    (lookup,) = recorded.all(CacheLookup)
    assert len(begun) == 1
    assert lookup.verdict == "miss"


def test_a_function_that_holds_no_path_is_not_judged() -> None:
    assert kernel_builds.library_found(lambda: None) is None
    assert kernel_builds.library_found(len) is None
