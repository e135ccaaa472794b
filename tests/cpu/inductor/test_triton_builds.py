"""Triton's cache: what was compiled, what was found, and what of a key differs.

No GPU is needed to compile for one; only loading the binary (`_make_launchers`) is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from torch._inductor.async_compile import AsyncCompile, CompiledTritonKernels
from torch._inductor.codecache import PyCodeCache
from torch._inductor.runtime.runtime_utils import triton_hash_to_path_key
from torch._inductor.runtime.triton_heuristics import CachingAutotuner

from tcw.compiler.gpu.architectures import ARCHITECTURES
from tcw.compiler.inductor import triton_builds
from tcw.compiler.inductor.shadow.device import pretending
from tcw.compiler.trace.key_components import changed_components, component_words, key_of_texts
from tcw.compiler.trace.records import CacheLookup, Warned
from tests.cpu.recorded import Recorded, record

triton = pytest.importorskip("triton")
from triton.runtime.cache import FileCacheManager  # noqa: E402

SOURCE = """
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.hints import DeviceProperties

@triton_heuristics.pointwise(
    size_hints={'x': 1024},
    filename=__file__,
    triton_meta={'signature': {'in_ptr0': '*fp32', 'out_ptr0': '*fp32', 'xnumel': 'i32',
                               'XBLOCK': 'constexpr'},
                 'device': DeviceProperties(type='cuda', index=0, multi_processor_count=132, cc=90,
                                            major=9, regs_per_multiprocessor=65536,
                                            max_threads_per_multi_processor=2048,
                                            max_threads_per_block=1024, warp_size=32),
                 'constants': {},
                 'configs': [{(0,): [['tt.divisibility', 16]], (1,): [['tt.divisibility', 16]]}]},
    inductor_meta={'grid_type': 'Grid1D', 'kernel_name': 'triton_poi_fused_add_0',
                   'autotune_pointwise': False, 'autotune_local_cache': False,
                   'autotune_remote_cache': False,
                   'force_disable_caches': False, 'assert_indirect_indexing': True},
    min_elem_per_thread=0
)
@triton.jit
def triton_poi_fused_add_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < 1000
    tmp0 = tl.load(in_ptr0 + (xindex), xmask)
    tl.store(out_ptr0 + (xindex), tmp0 + 1.0, xmask)
"""
NAME = "triton_poi_fused_add_0"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    monkeypatch.setattr(AsyncCompile, "use_process_pool", lambda self: False)
    monkeypatch.setattr(CachingAutotuner, "_make_launchers", lambda self: None)
    monkeypatch.setattr(CachingAutotuner, "_dynamic_scale_rblock", lambda self: None)
    CompiledTritonKernels.cache_clear()
    yield tmp_path / "triton"
    CompiledTritonKernels.cache_clear()


def asked(*sources: str) -> Recorded:
    with record((triton_builds.HOOK,)) as recorded, pretending(ARCHITECTURES["sm_90"]):
        for source in sources:
            PyCodeCache.cache_clear()  # else the kernel's module is still there
            AsyncCompile().triton(NAME, source, device_str="cuda")
    lost = [warned.message for warned in recorded.all(Warned) if warned.message.startswith("lost")]
    assert lost == []
    return recorded


def counted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What Triton itself says of each build: whether it was in the cache."""
    said: list[bool] = []

    def listener(*, cache_hit: bool, **_: Any) -> None:
        said.append(cache_hit)

    monkeypatch.setattr(triton.knobs.compilation, "listener", listener)
    return said


def test_each_build_is_found_or_compiled(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = counted(monkeypatch)
    first, second = asked(SOURCE), asked(SOURCE, SOURCE.replace("1.0", "2.0"))
    found = [*first.all(CacheLookup), *second.all(CacheLookup)]
    assert [one.verdict == "hit" for one in found] == said
    assert said == [False, True, False]
    assert {one.cache for one in found} == {"triton"}
    assert found[0].key == found[1].key != found[2].key
    assert (cache / triton_hash_to_path_key(found[0].key)).is_dir()


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (("1.0", "2.0"), ["the code of triton_poi_fused_add_0"]),
        (("'out_ptr0': '*fp32'", "'out_ptr0': '*fp16'"), ["out_ptr0"]),
        (("'x': 1024", "'x': 128"), ["XBLOCK"]),
        (("(1,): [['tt.divisibility', 16]]", ""), ["attributes"]),
        (("cc=90", "cc=80"), ["config[arch]", "config[target]"]),
    ],
)
def test_what_of_the_key_differs(cache: Path, edit: tuple[str, str], words: list[str]) -> None:
    assert edit[0] in SOURCE
    recorded = asked(SOURCE, SOURCE.replace(*edit))
    old, new = (
        key_of_texts("", [recorded.text(text) for text in lookup.components])
        for lookup in recorded.all(CacheLookup)
    )
    names = changed_components(old, new)
    told = "; ".join(component_words(name, old, new) for name in names)
    assert all(word in told for word in words), told


def test_another_cache_of_triton_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class RemoteCacheManager(FileCacheManager):
        """A user's own."""

    monkeypatch.setattr(triton.knobs.cache, "manager_class", RemoteCacheManager)
    recorded = asked(SOURCE)
    assert not recorded.all(CacheLookup)
    assert [warned.message for warned in recorded.all(Warned)] == [
        "Triton's cache is RemoteCacheManager: which kernels it had is not known, only that of "
        "files is"
    ]
