"""Cache lookups, against torch's own counters."""

from __future__ import annotations

from collections import Counter
from inspect import signature

import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor import remote_cache
from torch._inductor.remote_cache import RemoteCache
from torch._inductor.runtime import autotune_cache

from tcw.compiler.inductor import cache_lookups
from tcw.compiler.trace.key_components import (
    changed_components,
    key_of_texts,
    key_texts,
    read_key,
    value_difference,
    why_missed,
)
from tcw.compiler.trace.records import CacheLookup
from tests.cpu.recorded import Recorded, record

NAMES = {
    "fx graph": ("inductor", "fxgraph_cache_"),
    "aot autograd": ("aot_autograd", "autograd_cache_"),
}


def f(x, w):
    return x @ w  # a call into ATen, so that nothing has to be built


def counted() -> Counter:
    """(cache, verdict) -> times, as torch's counters have it."""
    counter: Counter = Counter()
    for cache, (group, prefix) in NAMES.items():
        for verdict in ("hit", "miss", "bypass"):
            counter[cache, verdict] = counters[group].get(prefix + verdict, 0)
    return +counter


def ours(recorded: Recorded) -> Counter:
    return Counter((lookup.cache, lookup.verdict) for lookup in recorded.all(CacheLookup))


@pytest.fixture(scope="module")
def session():
    """Two sizes, then the first again, from empty caches."""
    counters.clear()
    w = torch.randn(8, 8, requires_grad=True)
    with record((cache_lookups.HOOK,), caches=True) as recorded:
        compiled = torch.compile(f, dynamic=False)
        compiled(torch.randn(4, 8), w).backward(torch.ones(4, 8))
        compiled(torch.randn(6, 8), w)
        torch._dynamo.reset()
        torch.compile(f, dynamic=False)(torch.randn(4, 8), w).backward(torch.ones(4, 8))
        yield recorded, counted()


def test_verdicts_are_torchs_counters(session):
    recorded, says = session
    assert ours(recorded) == says
    assert says == {
        ("aot autograd", "miss"): 2,
        ("aot autograd", "hit"): 1,
        ("fx graph", "miss"): 3,
        ("fx graph", "hit"): 2,
    }


def test_a_hit_says_what_it_saved(session):
    recorded, _ = session
    hits = [r for r in recorded.all(CacheLookup) if r.verdict == "hit"]
    assert [r.graph for r in hits] == ["0/0/forward", "0/0/backward", ""]
    assert all(r.saved_seconds > 0 and r.key and not r.missed for r in hits)


def test_a_miss_says_what_changed(session):
    recorded, _ = session
    first, second = [
        r
        for r in recorded.all(CacheLookup)
        if r.cache == "fx graph" and r.graph.endswith("forward")
    ][:2]
    assert (first.verdict, first.graph, first.missed) == (
        "miss", "0/0/forward", "no entry with this key",
    )  # fmt: skip
    assert second.graph == "0/1/forward"
    assert "0/0/forward" in second.missed
    assert "input 0: shape [4, 8] → [6, 8]" in second.missed
    assert first.key != second.key


def test_a_bypass_says_why():
    counters.clear()
    unhashable = torch._inductor.config.patch(post_grad_custom_pre_pass=lambda graph: None)
    with record((cache_lookups.HOOK,), caches=True) as recorded, torch.no_grad(), unhashable:
        torch.compile(f)(torch.randn(4, 4), torch.randn(4, 4))
        says = counted()
    assert ours(recorded) == says
    for lookup in recorded.all(CacheLookup):
        if lookup.verdict == "bypass":
            assert lookup.missed
            assert lookup.missed != "torch gives no reason"
    assert any(lookup.verdict == "bypass" for lookup in recorded.all(CacheLookup))


def test_caches_that_are_off_are_not_asked():
    with record((cache_lookups.HOOK,)) as recorded, torch.no_grad():
        torch.compile(f)(torch.randn(4, 4), torch.randn(4, 4))
    assert recorded.all(CacheLookup) == []


def test_an_entry_whose_code_is_gone():
    from torch._inductor.codecache import FxGraphCache

    x, w = torch.randn(4, 4), torch.randn(4, 4)
    with record((cache_lookups.HOOK,), caches=True) as recorded, torch.no_grad():
        torch.compile(f)(x, w)
        FxGraphCache.clear()
        torch._dynamo.reset()
        torch.compile(f)(x, w)
    last = [r for r in recorded.all(CacheLookup) if r.cache == "aot autograd"][-1]
    assert last.verdict == "miss"
    assert last.missed == "the entry is there, but the code that it points to is not"
    # once for the entry, then again by Inductor
    code = [r for r in recorded.all(CacheLookup) if r.cache == "fx graph"]
    assert [r.verdict for r in code] == ["miss", "miss", "miss"]
    assert code[2].missed == "no entry with this key; an equal key was looked up before"


def test_an_entry_for_other_sizes():
    with record((cache_lookups.HOOK,)) as recorded:
        lookups = cache_lookups.Caches(recorded.recorder)
        info = {"cache_status_detailed": "guard_miss", "cache_status_guard_expr": "L[0] < 9"}
        lookups.lookup(cache_lookups.AUTOGRAD, "miss", info)
    (lookup,) = recorded.all(CacheLookup)
    assert lookup.missed == "an entry with this key, but not for these sizes: L[0] < 9"


def test_a_remote_cache(monkeypatch):
    class Away(RemoteCache):
        def __init__(self) -> None:
            pass

        def _get(self, key, sample):
            return {"found": 1} if key == "there" else None

        def _create_sample(self):
            return None

        def _log_sample(self, sample) -> None:
            pass

    with record((cache_lookups.HOOK,)) as recorded:
        assert Away().get("there") == {"found": 1}
        assert Away().get("not there") is None
    found = [(r.cache, r.verdict, r.key) for r in recorded.all(CacheLookup)]
    assert found == [("remote: Away", "hit", "there"), ("remote: Away", "miss", "not there")]


def test_configurations_of_triton_kernels_are_files_of_this_machine(tmp_path):
    """torch's class for them is one of remote caches."""
    made = getattr(autotune_cache, "LocalAutotuneCache", None) or remote_cache.LocalAutotuneCache
    cache = made(*(["any"] if "cache_id" in signature(made.__init__).parameters else []))
    place = str(tmp_path / "kernel.best_config")
    with record((cache_lookups.HOOK,)) as recorded:
        assert cache.get(place) is None
        cache.put(place, {"XBLOCK": 256})
        assert cache.get(place) == {"XBLOCK": 256}
    found = [(r.cache, r.verdict) for r in recorded.all(CacheLookup)]
    assert found == [("triton configurations", "miss"), ("triton configurations", "hit")]


def test_it_is_put_back():
    from torch._functorch._aot_autograd.autograd_cache import AOTAutogradCache
    from torch._inductor.codecache import FxGraphCache

    before = dict(vars(FxGraphCache)), dict(vars(AOTAutogradCache)), RemoteCache.get
    with record((cache_lookups.HOOK,)):
        assert vars(FxGraphCache)["load_with_key"] is not before[0]["load_with_key"]
    assert (dict(vars(FxGraphCache)), dict(vars(AOTAutogradCache)), RemoteCache.get) == before


def test_components():
    old = read_key("0/0/forward", ["[a1] gm: text", "[b1] n[0]: T(shape=[4], dtype=f32)", "junk"])
    new = read_key("0/1/forward", ["[a1] gm: text", "[b2] n[0]: T(shape=[6], dtype=f32)"])
    assert changed_components(old, new) == ["n[0]"]
    assert why_missed(new, [old]).endswith("against the key of 0/0/forward: n[0]: shape [4] → [6]")
    assert why_missed(new, []) == "no entry with this key"
    assert "equal key" in why_missed(new, [new])
    assert value_difference("x" * 999, "y" * 999) == "differs"
    assert value_difference("False", "True") == "False → True"


def test_components_in_a_trace(session):
    """Every lookup of torch's caches by key has its components, AOTAutograd's too."""
    recorded, _ = session
    lookups = recorded.all(CacheLookup)[:8]  # later ones are of other tests
    assert {lookup.cache for lookup in lookups} == {"fx graph", "aot autograd"}
    for lookup in lookups:
        assert lookup.components, lookup
        key = key_of_texts(lookup.graph, [recorded.text(part) for part in lookup.components])
        assert key.components["gm"][0]
        assert any(name.startswith("inductor_config[") for name in key.components)
    hashes = {lookup.components for lookup in lookups if lookup.cache == "fx graph"}
    assert len({parts[0] for parts in hashes}) == 1  # one text of the settings
    key = read_key("", ["[h] a: one\\ntwo\\nthree \\\\", "[i] inductor_config[x]: 1"])
    assert key_of_texts("", key_texts(key)) == key
