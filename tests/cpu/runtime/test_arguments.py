"""What a compiled function cannot take is refused before it is compiled."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from compiler.runtime.arguments import first_refusal, refusal


class Sub(torch.Tensor):
    pass


COMPLEX = torch.randn(4, dtype=torch.complex64)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.randn(3), ""),
        (torch.nn.Parameter(torch.randn(3)), ""),
        (torch.randn(3, 4).t()[1:], ""),
        (3, ""),
        (None, ""),
        (COMPLEX, ""),
        (COMPLEX.conj(), "conjugated"),
        (COMPLEX.conj().imag, "negated"),
        (torch.randn(3).to_sparse(), "layout torch.sparse_coo"),
        (torch.randn(3, device="meta"), "meta"),
        (torch.randn(3).as_subclass(Sub), "subclass Sub"),
        ("text", "type str"),
    ],
)
def test_refusals(value: Any, words: str) -> None:
    assert words in refusal(value)
    assert bool(refusal(value)) == bool(words)


def test_fake_tensors_tell_the_same() -> None:
    mode = FakeTensorMode()
    plain, lazy = mode.from_tensor(torch.randn(3)), mode.from_tensor(COMPLEX.conj().imag)
    with mode:
        assert refusal(plain) == ""
        assert "negated" in refusal(lazy)


def test_the_first_reason() -> None:
    assert first_refusal([1, torch.randn(2)]) == ""
    assert "negated" in first_refusal([1, COMPLEX.conj().imag, COMPLEX.conj()])
