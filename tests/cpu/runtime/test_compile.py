"""Under torch.compile: a hand-written graph as the compiled function, warm starts, keys."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd

from tcw.compiler.codegen.cpp.isa import detect
from tcw.compiler.engine.uncompiled import run_uncompiled
from tcw.compiler.runtime import graph_cache as cached
from tcw.compiler.runtime.graph_cache import Hit, Miss, compiled_graph, miss_in_words
from tcw.compiler.runtime.graph_key import graph_key
from tcw.compiler.runtime.store import FileStore
from tests.cpu.runtime.plans import add_mul


def add_and_double(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x + y) * 2


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


Seen = list[tuple[str, Any]]


def backend(store: FileStore, seen: Seen) -> Callable[..., Any]:
    """Our kernel for graphs of (x + y) * 2 on eight elements, ATen for others."""

    def compile(module: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        values = [node.meta["val"] for node in module.graph.nodes if node.op == "placeholder"]
        lazy = any(isinstance(value, torch.Tensor) and value.is_neg() for value in values)
        reason = "negated" if lazy else ""
        if reason or [tuple(value.shape) for value in inputs] != [(8,), (8,)]:
            seen.append(("aten", reason))
            return run_uncompiled(module)
        outcome = compiled_graph(
            graph_key(module, {"kind": "inference"}),
            store,
            lambda: add_mul().artifact(),
            otherwise=run_uncompiled(module),
        )
        seen.append(("ours", outcome.found))
        return outcome.compiled.call

    return aot_autograd(fw_compiler=compile)  # type: ignore[no-any-return]


@pytest.fixture
def cache(store: FileStore, tmp_path: Path) -> FileStore:
    """A graph cache for this test only; units and the launcher are from the session's cache."""
    (tmp_path / "cache").mkdir()
    for kind in ("objects", "kernels"):
        (store.folder / kind).mkdir(exist_ok=True)
        (tmp_path / "cache" / kind).symlink_to(store.folder / kind)
    return FileStore(tmp_path / "cache")


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_modes(cache: FileStore, mode: Any) -> None:
    seen: Seen = []
    compiled = torch.compile(add_and_double, backend=backend(cache, seen), fullgraph=True)
    with mode():
        x, y = torch.randn(8), torch.randn(8)
        for _ in range(3):
            assert torch.equal(compiled(x, y), (x + y) * 2)
    assert [kind for kind, _ in seen] == ["ours"]


def test_a_negated_view_compiles_anew_and_is_right(cache: FileStore) -> None:
    """Its memory holds the values without the sign."""
    seen: Seen = []
    compiled = torch.compile(add_and_double, backend=backend(cache, seen))
    x = torch.randn(8)
    plain = x.clone()
    compiled(x, plain)
    lazy = torch.randn(8, dtype=torch.complex64).conj().imag
    assert lazy.is_neg()
    assert torch.equal(compiled(lazy, plain), (lazy + plain) * 2)
    assert [kind for kind, _ in seen] == ["ours", "aten"]
    assert "negated" in seen[1][1]


def test_the_same_tensor_twice(cache: FileStore) -> None:
    compiled = torch.compile(add_and_double, backend=backend(cache, []))
    x = torch.randn(8)
    assert torch.equal(compiled(x, x.view(8)), x * 4)


def test_a_second_process_starts_warm(cache: FileStore) -> None:
    seen: Seen = []
    for _ in range(2):
        torch._dynamo.reset()
        compiled = torch.compile(add_and_double, backend=backend(cache, seen))
        x, y = torch.randn(8), torch.randn(8)
        assert torch.equal(compiled(x, y), (x + y) * 2)
    assert [type(found) for _, found in seen] == [Miss, Hit]


def captured(
    function: Callable[..., Any], *arguments: Any, dynamic: bool = False
) -> fx.GraphModule:
    """The ATen graph of a function."""
    found: list[fx.GraphModule] = []

    def compile(module: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        found.append(module)
        return run_uncompiled(module)

    torch._dynamo.reset()
    torch.compile(function, backend=aot_autograd(fw_compiler=compile), dynamic=dynamic)(*arguments)
    return found[0]


def key_digest(*arguments: Any, function: Any = add_and_double, **others: Any) -> str:
    return graph_key(captured(function, *arguments, **others), {}).digest


def test_a_key_is_the_same_for_the_same_graph() -> None:
    x = torch.randn(8)
    assert key_digest(x, x.clone()) == key_digest(torch.randn(8), torch.randn(8))
    assert key_digest(x, x.clone(), dynamic=True) == key_digest(
        torch.randn(9), torch.randn(9), dynamic=True
    )


def test_a_key_tells_graphs_apart() -> None:
    x = torch.randn(8, 8)
    keys = [
        key_digest(x, x.clone()),  # 0
        key_digest(x.t(), x.clone()),
        key_digest(x.double(), x.double()),
        key_digest(x[1:], x[1:].clone()),
        key_digest(torch.randn(64)[5:61].view(7, 8), x[1:].clone()),
        key_digest(x, x.clone(), dynamic=True),
        key_digest(x, x.clone(), function=lambda x, y: (x + y) * 3),
        key_digest(x, x.clone(), function=lambda x, y: (x - y) * 2),
        key_digest(x, x.clone(), function=lambda x, y: torch.cat([x, y], 1)),
        key_digest(x, x.clone(), function=lambda x, y: torch.cat([x, y], 0)),
        key_digest(x, x.clone(), function=lambda x, y: x + torch.tensor([1.0, 2.0]).repeat(4)),
        key_digest(x, x.clone(), function=lambda x, y: x + torch.tensor([1.0, 3.0]).repeat(4)),
    ]
    assert {i: keys.index(key) for i, key in enumerate(keys) if keys.index(key) != i} == {}


def test_a_miss_says_in_words_what_changed(
    cache: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = captured(add_and_double, torch.randn(8), torch.randn(8))
    first = compiled_graph(graph_key(module, {"overrides": ""}), cache, add_mul().artifact)
    assert miss_in_words(first.found) == "no entry of a similar graph"
    second = compiled_graph(graph_key(module, {"overrides": "x"}), cache, add_mul().artifact)
    assert miss_in_words(second.found) == "overrides: none → x"
    monkeypatch.setenv("TCW_ISA", "portable")
    assert detect().name == "portable"
    third = compiled_graph(graph_key(module, {"overrides": "x"}), cache, add_mul().artifact)
    assert miss_in_words(third.found) == "" or "instruction set" in miss_in_words(third.found)


def test_an_entry_without_its_library_is_built_again(cache: FileStore) -> None:
    key = graph_key(captured(add_and_double, torch.randn(8), torch.randn(8)), {})
    artifact = compiled_graph(key, cache, add_mul().artifact).compiled.artifact
    (cache.folder / "objects").unlink()
    again = compiled_graph(key, cache, add_mul().artifact)
    assert isinstance(again.found, Hit)
    assert not again.compiled.hit
    assert again.compiled.artifact.library == artifact.library


def test_what_makes_an_artifact_may_raise(cache: FileStore) -> None:
    def make() -> Any:
        raise ZeroDivisionError

    key = graph_key(captured(add_and_double, torch.randn(8), torch.randn(8)), {})
    with pytest.raises(ZeroDivisionError):
        compiled_graph(key, cache, make)
    assert isinstance(cached.look_up(key, cache), Miss)


WITHOUT_COMPILER = """
import sys, torch
from pathlib import Path
from tcw.compiler.runtime.compiled import load
from tcw.compiler.runtime.artifact import Unavailable
from tcw.compiler.runtime.store import FileStore
from tests.cpu.runtime.plans import add_mul
artifact = add_mul().artifact()
try:
    load(artifact, FileStore(Path(sys.argv[1])))
except Unavailable as error:
    print(error)
"""


def test_no_compiler_is_said(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_COMPILER, str(tmp_path)],
        capture_output=True,
        text=True,
        env={"PATH": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
        timeout=120,
    )
    assert done.stdout.startswith("no C++ compiler: neither g++ nor clang++ runs"), done.stderr
