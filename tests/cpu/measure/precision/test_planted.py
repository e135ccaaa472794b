"""With a constant changed in one kernel's code, that kernel is named, and no other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
import torch

from tcw.compiler.measure.precision import verify_call
from tcw.compiler.measure.precision.repro import RunOutcome
from tcw.compiler.runtime.toolchain import NoCompiler, find_compiler
from tests.cpu.measure.planted import planted
from tests.cpu.measure.precision.verified import Verified, verified
from tests.cpu.measure.precision.wrong import wrong_inductor
from tests.long import mostly_long

pytestmark = pytest.mark.skipif(
    isinstance(find_compiler(), NoCompiler), reason="there is no C++ compiler"
)
DTYPES = pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.bfloat16, marks=pytest.mark.long)], ids=str
)


def layers(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    first = torch.relu(x @ w) + 1
    second = torch.sigmoid(first @ w) * 0.34375
    return torch.tanh(second @ w).sum(-1)


def inputs(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 32, generator=generator).to(dtype)
    return x, (torch.randn(32, 32, generator=generator) / 8).to(dtype).requires_grad_()


def tcw(made_in: Path, patch: pytest.MonkeyPatch, dtype: torch.dtype, new: str) -> Verified:
    made = planted(made_in, r"0\.34375f", new)
    patch.setenv("CXX", made.compiler)
    patch.setenv("TCW_CACHE_DIR", str(made_in))
    patch.setenv("TCW_STRICT", "1")
    found = verified("tcw", layers, inputs(dtype), train=True)
    assert made.times() > 0
    return found


def named(found: Verified) -> set[tuple[str, str]]:
    """(graph, label) of the wrong kernels: the forward one, and that of its derivative."""
    wrong = {one.graph: found.kernels[one.kernel] for one in found.all if one.within is False}
    assert len(found.wrong) == len(wrong)
    assert not found.left_out
    return {(graph, kernel.label.partition(",")[0]) for graph, kernel in wrong.items()}


def only_first(tried: Callable[[str], RunOutcome]) -> Callable[[str], RunOutcome]:
    """A file is run in a process of its own, which takes seconds: one is looked at."""
    first = count()
    return lambda text: RunOutcome(None, "not run") if next(first) else tried(text)


@DTYPES
def test_in_our_own_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype
) -> None:
    monkeypatch.setattr(verify_call, "tried", only_first(verify_call.tried))
    found = tcw(tmp_path, monkeypatch, dtype, "0.34575f")
    assert {graph for graph, _ in named(found)} == {"0/0/forward", "0/0/backward"}
    assert all("sigmoid" in label or "mul" in label for _, label in named(found))
    first = next(one for one in found.all if one.within is False)
    assert first.reproduces is True, first.repro_note
    assert "torch.sigmoid(first @ w) * 0.34375" in found.text(first)
    assert "import compiler" not in found.text(first)


@pytest.mark.long
@DTYPES
def test_in_inductor(dtype: torch.dtype) -> None:
    with wrong_inductor(r"(?<=\()0\.34375", "0.34575") as changed:
        found = verified("inductor", layers, inputs(dtype), train=True)
    assert len(changed) == 2
    texts = {found.recorded.text(k.text): k for k in found.kernels.values()}
    wrong = {name for _, name in found.wrong}
    assert wrong == {
        k.name for text, k in texts.items() if "0.34375" in text and k.language == "cpp"
    }
    assert {graph for graph, _ in found.wrong} == {"0/0/forward", "0/0/backward"}
    first = next(one for one in found.all if one.within is False)
    # the process that runs the file has a compiler without the error
    assert first.reproduces is False, first.repro_note
    assert 'backend="inductor"' in found.text(first)


@DTYPES
@pytest.mark.parametrize("engine", mostly_long(("inductor", "tcw"), ("tcw",)))
def test_nothing_is_wrong_where_nothing_was_planted(engine: str, dtype: torch.dtype) -> None:
    found = verified(engine, layers, inputs(dtype), train=True)  # type: ignore[arg-type]
    assert found.all
    assert found.wrong == []
    assert found.left_out == {}
