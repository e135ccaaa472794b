"""Measured tiles: which one is chosen, and what happens to one that does not run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import tcw.compiler.runtime.gpu.kernel_times as measure
from tcw.compiler.codegen.triton.kernel import TritonKernel
from tcw.compiler.codegen.triton.limits import Limits
from tcw.compiler.codegen.triton.triton_unit import unit
from tcw.compiler.fusion.weights import GPU
from tcw.compiler.gpu.architectures import ARCHITECTURES
from tcw.compiler.loops.nest import Program
from tcw.compiler.runtime.gpu.driver import DriverError
from tcw.compiler.runtime.gpu.kernel_times import Timing
from tcw.compiler.runtime.store import FileStore
from tests.cpu.codegen.nests import programs

pytest.importorskip("triton")


def softmax() -> Program:
    (program,) = programs(lambda x: x.softmax(-1), torch.randn(1024, 1024), machine=GPU)
    return program


class Card:
    """A GPU on which the tile `fastest` takes 1 µs, others 2, and `refused` do not launch."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fastest: str, refused: set[str]) -> None:
        self.timed: list[str] = []

        @contextlib.contextmanager
        def memory(sizes: Sequence[int], device: int) -> Iterator[list[int]]:
            yield list(sizes)

        @contextlib.contextmanager
        def nothing(*_: Any) -> Iterator[None]:
            yield

        def loaded(device: int, codes: Sequence[tuple[bytes, str, int, int]]) -> list[None]:
            assert all(code[:4] == b"\x7fELF" for code, *_ in codes)
            return [None] * len(codes)

        def time(self_: Timing, kernel: TritonKernel, *_: Any) -> float:
            self.timed.append(kernel.tile.words)
            if kernel.tile.words in refused:
                raise DriverError("cuFuncSetAttribute: invalid argument (1)")
            return 1.0 if kernel.tile.words == fastest else 2.0

        monkeypatch.setattr(measure, "_memory", memory)
        monkeypatch.setattr(measure, "_events", nothing)
        monkeypatch.setattr(measure, "in_context", nothing)
        monkeypatch.setattr(measure, "device_calls", lambda device: (0,))
        monkeypatch.setattr(measure, "load_kernels", loaded)
        monkeypatch.setattr(Timing, "_time", time)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a card")


def tuned(program: Program, store: FileStore) -> str:
    """The text of the kernels, whose tiles are measured."""
    limits = Limits(ARCHITECTURES["sm_90"], program.graph.hints)
    made = unit(None, program, limits, measure=Timing(program, 0, "sm_90", store))
    assert made.device is not None
    return made.device.text


def default_and_others() -> tuple[str, list[str]]:
    """The tile of the only kernel, and what else is measured."""
    found: list[list[str]] = []

    def noted(kernels: Sequence[TritonKernel], _: Any) -> list[float | None]:
        found.append([kernel.tile.words for kernel in kernels])
        return [None] * len(kernels)

    program = softmax()
    unit(None, program, Limits(ARCHITECTURES["sm_90"], program.graph.hints), measure=noted)
    default, *others = found[0]
    assert len(others) > 2
    return default, others


def chosen(text: str, words: str) -> bool:
    """Whether a program of the kernel holds as many rows as this tile."""
    rows = words.partition("x")[0]
    return ("x = tl.program_id(0) +" if rows == "1" else f"tl.program_id(0) * {rows} +") in text


def test_one_that_does_not_launch_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    default, others = default_and_others()
    best = next(other for other in others if other.partition("x")[0] != default.partition("x")[0])
    refused = next(other for other in others if other != best)
    program, store = softmax(), FileStore(tmp_path)
    card = Card(monkeypatch, fastest=best, refused={refused})
    text = tuned(program, store)
    assert card.timed == [default, *others]
    assert chosen(text, best)
    assert not chosen(text, default)
    assert tuned(program, store) == text
    assert len(card.timed) == 1 + len(others), "kept with the text of the kernels"


def test_one_that_does_not_compile_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    default, others = default_and_others()
    best = next(other for other in others if other.partition("x")[0] != default.partition("x")[0])
    wide = [other for other in others if other.endswith("-2warps")]
    assert wide
    assert best not in wide
    real = measure.binaries

    def binaries(text: str, kernels: Sequence[Any], *rest: Any) -> Any:
        if kernels[0].warps == 2:
            raise measure.NoTriton("out of registers")
        return real(text, kernels, *rest)

    monkeypatch.setattr(measure, "binaries", binaries)
    card = Card(monkeypatch, fastest=best, refused=set())
    assert chosen(tuned(softmax(), FileStore(tmp_path)), best)
    assert set(card.timed) == {default, *others} - set(wide)


def test_a_default_that_does_not_launch_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing was measured against it."""
    default, others = default_and_others()
    Card(monkeypatch, fastest=others[0], refused={default})
    assert chosen(tuned(softmax(), FileStore(tmp_path)), default)


def test_small_kernels_are_not_measured() -> None:
    """They share a launch as long as their tiles are alike."""

    def measure(*_: Any) -> list[float | None]:
        raise AssertionError("measured")

    inputs = [torch.randn(512, 1024 + 64 * i).bfloat16() for i in range(8)]
    (program,) = programs(lambda *x: [F.gelu(t) for t in x], *inputs, machine=GPU)
    limits = Limits(ARCHITECTURES["sm_90"], program.graph.hints)
    device = unit(None, program, limits, measure=measure).device
    assert device is not None
    assert len(device.kernels) == 1
