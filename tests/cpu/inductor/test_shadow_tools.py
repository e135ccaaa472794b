"""NVIDIA's tools on one kernel that spills and one that does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tcw.compiler.gpu import machine_code as tools


@triton.jit
def many_values(source, target, SIZE: tl.constexpr):
    """Holds a block of SIZE values through a loop in which all of them change."""
    index = tl.arange(0, SIZE)
    values = tl.load(source + index)
    for step in range(8):
        values = values * values + tl.load(source + step)
    tl.store(target + index, values)


def compiled(size: int) -> Any:
    return triton.compile(
        ASTSource(
            fn=many_values,
            signature={"source": "*fp32", "target": "*fp32", "SIZE": "constexpr"},
            constexprs={(2,): size},
        ),
        target=GPUTarget("cuda", 90, 32),
        options={"num_warps": 1},
    )


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))


@pytest.mark.long
def test_a_block_that_exceeds_the_registers_spills() -> None:
    kernel = compiled(32 * 256)
    usage = tools.resource_usage(kernel.asm["cubin"])
    assert (usage.registers or 0) <= 255
    assert (usage.stack_bytes or 0) > 0
    assert (tools.spills(kernel.asm["ptx"], "sm_90a") or 0) > 0


def test_a_small_block_does_not(tmp_path: Path) -> None:
    kernel = compiled(64)
    usage = tools.resource_usage(kernel.asm["cubin"])
    assert 0 < (usage.registers or 0) < 64
    assert usage.stack_bytes == 0
    assert tools.spills(kernel.asm["ptx"], "sm_90a") == 0


def test_assembly_is_kept_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cubin = compiled(64).asm["cubin"]
    text = tools.disassembly(cubin, tmp_path / "sass")
    assert "many_values" in text
    assert "EXIT" in text
    monkeypatch.setattr(tools, "tool", lambda name: pytest.fail("disassembled again"))
    assert tools.disassembly(cubin, tmp_path / "sass") == text


def test_a_tool_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(tools.ToolFailed, match="nvdisasm failed"):
        tools.disassembly(b"no cubin", tmp_path)
    with pytest.raises(tools.ToolFailed, match="carries no gnuplot"):
        tools.tool("gnuplot")
