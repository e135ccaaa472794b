"""Arguments of a GPU's segment whose memory is not aligned: copied in, and copied back."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tcw.compiler.runtime.gpu.load_kernels import ALIGNED, when_unaligned


def unaligned(*shape: int, columns: int = 0) -> torch.Tensor:
    """A tensor that begins one element after an aligned address; its rows may have gaps."""
    width = columns or shape[-1]
    whole = torch.arange(2.0 + shape[0] * width)
    found = whole[1 : 1 + shape[0] * width].reshape(shape[0], width)[:, : shape[-1]]
    assert found.data_ptr() & ALIGNED
    return found


@pytest.mark.parametrize("boxed", [False, True])
def test_a_copy_is_passed_and_copied_back(boxed: bool) -> None:
    seen: list[torch.Tensor] = []

    def segment(*given: Any) -> list[torch.Tensor]:
        x, y = given[0] if boxed else given
        seen.extend((x, y))
        x.add_(1)
        return [x + y]

    x, y = unaligned(3, 4, columns=7), torch.ones(3, 4)
    before = x.clone()
    call = when_unaligned(segment, None, boxed)
    arguments = [x, y]
    (result,) = call(arguments) if boxed else call(*arguments)
    assert seen[0].data_ptr() & ALIGNED == 0
    assert seen[0].stride() == x.stride()
    assert seen[1] is y
    assert torch.equal(x, before + 1)
    assert torch.equal(result, before + 2)
    assert arguments == [] if boxed else len(arguments) == 2


def test_tensors_without_memory_run_otherwise() -> None:
    x = torch.empty(3, device="meta")
    call = when_unaligned(lambda *given: None, lambda given: ["otherwise"], boxed=True)
    assert call([x]) == ["otherwise"]
    with pytest.raises(RuntimeError, match="has no memory"):
        when_unaligned(lambda *given: None, None, boxed=False)(x)
