"""How many warps a processor holds: CUDA's occupancy calculator says the same."""

from __future__ import annotations

import pytest

from tcw.compiler.gpu.architectures import ARCHITECTURES


@pytest.mark.parametrize(
    ("arch", "warps", "registers", "shared", "resident"),
    [
        ("sm_90", 4, 32, 0, 64),
        ("sm_90", 4, 168, 4096, 12),  # 12 warps of 168 registers
        ("sm_90", 8, 255, 0, 8),
        ("sm_90", 1, 16, 0, 32),  # 32 blocks
        ("sm_80", 8, 32, 80 << 10, 16),  # two blocks share 164 KiB
        ("sm_90", 32, 64, 0, 32),
        ("sm_90", 32, 65, 0, 0),  # 72 of 65,536 registers for each of 1,024 threads: too many
    ],
)
def test_residents(arch: str, warps: int, registers: int, shared: int, resident: int) -> None:
    machine = ARCHITECTURES[arch]
    assert machine.most_warps == 64
    assert machine.resident_warps(warps, registers, shared) == resident


def test_unknown_registers() -> None:
    assert ARCHITECTURES["sm_90"].resident_warps(4, None, 0) is None
