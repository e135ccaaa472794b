"""How a reduction over the windows of `unfold` is traversed: from windows near each other all that
lies between them is loaded; others are transposed, or are rows on the lanes."""

from __future__ import annotations

import pytest
import torch

from tcw.compiler.codegen.cpp.isa import AVX512
from tcw.compiler.codegen.cpp.vocabulary import Vocabulary
from tests.cpu.codegen.texts import text


@pytest.mark.parametrize(
    ("dtype", "wide", "step", "loads"),
    [
        (torch.int8, 9, 2, "load8_every_2"),
        (torch.int64, 9, 3, "load8_every_3"),
        (torch.float32, 8, 2, "load16_every_2"),
        (torch.bfloat16, 24, 2, "load16_every_2"),
        (torch.bfloat16, 12, 8, "lanes_sum"),
        (torch.bfloat16, 12, 12, "transpose_edge16"),
        (torch.float32, 12, 12, "transpose_edge16"),
        (torch.float32, 24, 8, "lanes_sum"),
        (torch.int64, 12, 4, "lanes_sum"),
        (torch.int64, 16, 2, "lanes_sum"),
    ],
    ids=str,
)
def test_windows(dtype: torch.dtype, wide: int, step: int, loads: str) -> None:
    found = text(
        lambda x: x.unfold(-1, wide, step).sum(-1),
        torch.zeros(512, 128 * step + wide, dtype=dtype),
        comment="",
    )
    ways = ("_every_", "transpose_edge", "lanes_sum")
    assert loads in found
    assert [way for way in ways if way in found] == [way for way in ways if way in loads]


@pytest.mark.parametrize(("dtype", "twin"), [("int32", "float"), ("int64", "double")])
def test_strided_integers_are_loaded_as_floats(dtype: str, twin: str) -> None:
    """Each then goes into its part of a register by one instruction."""
    vocabulary = Vocabulary(AVX512)
    vocabulary.lanes(8).load_strided(dtype, "p", "20", None)
    assert f"const {twin}* q = (const {twin}*)p;" in vocabulary.prelude()
