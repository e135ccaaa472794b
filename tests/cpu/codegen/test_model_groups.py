"""Groups and models as a GPU runs them: Triton's interpreter equals eager, and all compile.

`model_groups.py` has the fused groups that most models of `transformers` have; `count_groups` found
them. All of it, for every architecture:

    pytest -n0 -m "long or not long" tests/cpu/codegen/test_model_groups.py
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tcw.compiler.gpu.architectures import ARCHITECTURES
from tcw.compiler.runtime.gpu.binaries import binaries, code_of, threads_for
from tcw.compiler.runtime.store import FileStore
from tests.cpu.codegen.interpreted_models import DTYPES, SAMPLES, Module
from tests.cpu.codegen.model_groups import GROUPS

pytest.importorskip("triton")
pytestmark = pytest.mark.timeout(1800)  # a test waits for what others asked for, too

SLOWEST = ("groups", "gpt", "troubled_block", "transformer_block", "llama_block")
"""Begun first, so that none of them is alone at the end."""


class Interpreters:
    """Processes that import torch once, each with a model at a time: one a processor."""

    def __init__(self, names: list[str], folder: Path, stack: ExitStack) -> None:
        """`folder`: where they leave the kernels of each."""
        self.folder = folder
        order = [*(one for one in SLOWEST if one in names)]
        order += [name for name in names if name not in order]
        free: queue.SimpleQueue[subprocess.Popen[str]] = queue.SimpleQueue()
        command = [sys.executable, "-m", "tests.cpu.codegen.interpreted_models"]
        for _ in range(threads_for(len(order))):
            process = subprocess.Popen(
                [*command, "--modules", str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "TRITON_INTERPRET": "1"},
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            free.put(process)

        def run(name: str) -> dict[str, str]:
            process = free.get()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{name}\n")
            process.stdin.flush()
            line = process.stdout.readline()
            free.put(process)
            assert line, f"the interpreter ended in {name}"
            return dict(json.loads(line))

        pool = stack.enter_context(ThreadPoolExecutor(threads_for(len(order))))
        self._found: dict[str, Future[dict[str, str]]] = {n: pool.submit(run, n) for n in order}

    def wrong(self, name: str) -> dict[str, str]:
        """What is wrong with a model, or with the groups."""
        found = self._found[name].result()
        assert len(found) == len(DTYPES) * (len(GROUPS) if name == "groups" else 1)
        return {one: words for one, words in found.items() if words}

    def modules(self) -> list[Module]:
        """The kernels of all of them."""
        for one in self._found.values():
            one.result()
        found = []
        for file in sorted(self.folder.glob("*.json")):
            found += msgspec.json.decode(file.read_bytes(), type=list[Module])
        return found


@pytest.fixture(scope="module")
def interpreters(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Interpreters]:
    """At work on everything that the selected tests ask for."""
    chosen: dict[str, Any] = {"groups": None}
    for item in request.session.items:
        if item.path == request.path and hasattr(item, "callspec"):
            chosen[item.callspec.params.get("sample", "groups")] = None
    with ExitStack() as stack:
        yield Interpreters(list(chosen), tmp_path_factory.mktemp("modules"), stack)


def test_there_are_thirty() -> None:
    assert len(GROUPS) == 30
    assert {name.rpartition("(")[2] for name in GROUPS} == {"forward)", "backward)"}


def test_groups_in_the_interpreter(interpreters: Interpreters) -> None:
    """Forward and backward ones, in float32 and bfloat16."""
    assert interpreters.wrong("groups") == {}


@pytest.mark.long
@pytest.mark.parametrize("sample", SAMPLES)
def test_sample_models_in_the_interpreter(interpreters: Interpreters, sample: str) -> None:
    assert interpreters.wrong(sample) == {}


@pytest.mark.long
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_all_that_ran_compiles(interpreters: Interpreters, arch: str, tmp_path: Path) -> None:
    store, count = FileStore(tmp_path), 0
    for module in interpreters.modules():
        if module.arch == arch:
            found = binaries(module.text, module.kernels, arch, store)
            assert all(code_of(one, store) for one in found)
            count += len(found)
    assert count >= 2 * len(GROUPS)
