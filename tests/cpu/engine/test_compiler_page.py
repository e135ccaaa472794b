"""`docs/compiler.md` matches the compiler: every block is regenerated."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tcw.compiler.engine.backend import backend
from tcw.compiler.fusion.rules import RULES
from tcw.compiler.fusion.rules.order_in_loop import few_pointers
from tcw.compiler.lowering import calls
from tcw.compiler.lowering.registry import LOWERINGS
from tests.conftest import Golden
from tests.cpu.engine.compiler_page import Walk, blocks, load, walk, with_blocks

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "compiler.md"
TORCH = "2.13."
"""The torch release that the page describes."""

PRELUDE = (
    "typedef float f32x16 ",
    "INLINE f32x16 broadcast16(",
    "typedef f32x16 f32x16_in_memory",
    "INLINE f32x16 load16(const float* p)",
    "INLINE f32x16 max_quick(",
    "INLINE f32x16 exp(",
    "void parallel(",
)


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(page: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the page tells its reader to write."""
    folder = tmp_path_factory.mktemp("page")
    for name, text in blocks(page, "file").items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def own_lowerings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Remove the lowerings that a test registers."""
    before = dict(LOWERINGS)
    monkeypatch.setattr(calls, "_operations", {})
    yield
    for name in LOWERINGS.keys() - before.keys():
        del LOWERINGS[name]


@pytest.mark.skipif(
    not torch.__version__.startswith(TORCH), reason=f"the page shows what torch {TORCH}x prints"
)
def test_every_block_is_what_the_compiler_makes(
    page: str, folder: Path, golden: Golden, own_lowerings: None
) -> None:
    made = {"rules": "".join(f"{name:15}{words}\n" for name, words in RULES.items())}
    made["rule"] = inspect.getsource(few_pointers)
    made |= softmax(folder) | scaled(folder) | attend(folder) | backward(folder)
    made |= squareplus(folder)
    assert made.keys() == blocks(page, "made").keys()
    golden(PAGE, with_blocks(page, made))


def softmax(folder: Path) -> dict[str, str]:
    plain = walk(folder / "softmax.py")
    apart = walk(folder / "softmax.py", overrides(folder / "apart.toml"))
    return {
        "captured": plain.captured[0],
        "aten": plain.aten[0],
        "value-graph": plain.value_graph(),
        "decisions": of_kinds(plain, "fuse"),
        "nest": plain.program(),
        "memory": plain.shown("memory"),
        "kernel": plain.code("// softmax: ", "// graph: "),
        "kernel-decisions": of_kinds(plain, "lanes", "vector", "units", "threads", "row", "unroll"),
        "prelude": plain.definitions(PRELUDE),
        "segment": plain.code("// graph: "),
        "apart-nests": apart.program(),
        "apart-memory": apart.shown("memory"),
    }


def of_kinds(found: Walk, *kinds: str) -> str:
    """The decisions of these kinds, as shown."""
    parts = found.shown("decisions").split("\n\n")
    return "\n\n".join(part for part in parts if part.split()[2] in kinds)


def scaled(folder: Path) -> dict[str, str]:
    plain = walk(folder / "scaled.py")
    forced = walk(folder / "scaled.py", overrides(folder / "forced.toml"))
    refused = [line for line in forced.shown("decisions").split("\n") if "refused" in line]
    return {
        "scaled-decisions": of_kinds(plain, "fuse"),
        "scaled-nests": plain.program(),
        "forced": "\n".join(refused),
    }


def attend(folder: Path) -> dict[str, str]:
    found = walk(folder / "attend.py")
    decided = of_kinds(found, "inline", "reuse", "fuse", "order").split("\n\n")
    # decisions of kind `library` depend on the processor's vendor
    chosen = [part for part in decided if " inline " in part or " reuse " in part]
    return {
        "attend-nest": found.program(),
        "attend-decisions": "\n\n".join(chosen),
        "attend-memory": found.shown("memory"),
        "wrapper": found.artifacts[0].wrapper,
    }


def backward(folder: Path) -> dict[str, str]:
    found = walk(folder / "softmax.py", backward=True)
    first, _, _ = found.shown("decisions").partition("\n\n")
    return {"saved": first, "backward": found.program(1)}


def squareplus(folder: Path) -> dict[str, str]:
    before = walk(folder / "squareplus.py")
    learn(folder / "squareplus_lowering.py")
    after = walk(folder / "squareplus.py")
    return {"squareplus-before": before.program(), "squareplus-after": after.program()}


def learn(file: Path) -> None:
    """Register lowerings, even of operations that were seen without one."""
    load(file)
    calls._operations.clear()


def overrides(file: Path) -> dict[str, str]:
    return tomllib.loads(file.read_text(encoding="utf-8"))


def test_the_lowering_of_the_page_computes_what_the_operation_does(
    folder: Path, own_lowerings: None
) -> None:
    module = load(folder / "squareplus.py")
    learn(folder / "squareplus_lowering.py")
    (x,) = module.example_inputs
    torch.testing.assert_close(torch.compile(module.model, backend=backend)(x), module.model(x))


@pytest.mark.long
def test_the_timing_of_the_page_runs(folder: Path) -> None:
    program = (
        "import torch, runpy\n"
        "from importlib.metadata import EntryPoint\n"
        "from torch._dynamo.backends import registry\n"
        "registry._lazy_import()\n"
        "registry._BACKENDS['tcw'] = EntryPoint('tcw', 'tcw:backend', 'torch_dynamo_backends')\n"
        "runpy.run_path('timing.py', run_name='__main__')\n"
    )
    (folder / "run_timing.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "run_timing.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["model", "compiled"]
