"""Views: no node is made, and the result is eager's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tcw.compiler.loops.printer import program_text
from tests.cpu.codegen.nests import programs
from tests.cpu.lowering.harness import lowered

View = Callable[[Any], Any]

VIEWS: dict[str, tuple[View, tuple[int, ...]]] = {
    "view": (lambda x: x.view(6, -1), (3, 4, 6)),
    "reshape of a transpose": (lambda x: x.transpose(0, 1).reshape(6, 12), (3, 4, 6)),
    "permute": (lambda x: x.permute(2, -3, 1), (3, 4, 5)),
    "transpose": (lambda x: x.transpose(-1, 0), (3, 4, 5)),
    "t": (lambda x: x.t(), (3, 5)),
    "t of a vector": (lambda x: x.t(), (5,)),
    "expand": (lambda x: x.expand(2, -1, 4, 7), (3, 1, 7)),
    "expand_as": (lambda x: x[0].expand_as(x), (3, 7)),
    "slice": (lambda x: x[1:-1, ::2, -3:], (4, 5, 7)),
    "slice past the end": (lambda x: x[2:100, 100:], (4, 5)),
    "slice with a step": (lambda x: x[:, 1:6:3], (3, 7)),
    "select": (lambda x: x[1, :, -2], (3, 4, 5)),
    "select of a vector": (lambda x: x[-1], (5,)),
    "split": (lambda x: x.split(3, -1), (2, 7)),
    "split with sizes": (lambda x: x.split([1, 4, 2], 1), (2, 7)),
    "unbind": (lambda x: x.unbind(1), (2, 3, 4)),
    "chunk": (lambda x: x.chunk(3, 0), (7, 2)),
    "squeeze": (lambda x: (x.squeeze(), x.squeeze(1), x.squeeze(0)), (3, 1, 4, 1)),
    "unsqueeze": (lambda x: (x.unsqueeze(0), x.unsqueeze(-1)), (3, 4)),
    "detach": (lambda x: x.detach(), (3,)),
    "diagonal": (lambda x: x.diagonal(), (4, 5)),
    "diagonal above": (lambda x: x.diagonal(2, 0, -1), (4, 3, 5)),
    "diagonal below": (lambda x: x.diagonal(-1, 1, 2), (2, 4, 5)),
    "unfold": (lambda x: x.unfold(1, 3, 2), (2, 8)),
    "unfold without overlap": (lambda x: x.unfold(0, 2, 2), (8, 3)),
    "flip": (lambda x: x.flip(0, -1), (3, 4, 5)),
    "rot90": (lambda x: torch.rot90(x, 1, [0, 1]), (3, 4)),
    "roll": (lambda x: x.roll((1, -2), (0, 1)), (3, 5)),
    "roll of all": (lambda x: x.roll(4), (3, 5)),
    "movedim": (lambda x: x.movedim(0, 2), (3, 4, 5)),
    "narrow": (lambda x: x.narrow(-1, 1, 3), (3, 5)),
    "as_strided": (lambda x: x.as_strided((3, 4), (2, 3), 1), (4, 5)),
    "swapaxes": (lambda x: x.swapaxes(0, 1), (3, 4)),
    "repeat": (lambda x: x.repeat(2, 1, 3), (3, 4)),
    "tile": (lambda x: x.tile(2), (3, 4)),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, 1), (3, 4)),
    "without dimensions": (lambda x: (x.view(1), x.expand(3), x.unsqueeze(0)), ()),
    "no elements": (lambda x: (x.view(5, 0), x.t(), x[:, :2], x.unsqueeze(1)), (0, 5)),
}


def arguments(shape: tuple[int, ...]) -> dict[str, torch.Tensor]:
    """Tensors of the shape, contiguous and in other memory orders."""
    torch.manual_seed(3)
    made = {"contiguous": torch.randn(shape)}
    if len(shape) > 1:
        made["transposed"] = torch.randn(shape[::-1]).permute(*reversed(range(len(shape))))
        made["every second"] = torch.randn(*shape[:-1], 2 * shape[-1])[..., ::2]
    if shape:
        made["offset"] = torch.randn(shape[0] + 2, *shape[1:])[2:]
    return made


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_view(name: str, dynamic: bool) -> None:
    view, shape = VIEWS[name]
    allowed = ("as_strided",) if name == "as_strided" else ()
    cases = arguments(shape)
    if name == "view":
        cases = {"contiguous": cases["contiguous"]}
    if dynamic:
        cases = {kind: cases[kind] for kind in ("contiguous", "transposed") if kind in cases}
    for tensor in cases.values():
        lowered(view, tensor, dynamic=dynamic, calls=allowed)


def test_a_roll_of_known_sizes_computes_no_index() -> None:
    (program,) = programs(lambda x: x.roll((3, 1), (1, 0)), torch.randn(4, 9))
    assert "fmod" not in program_text(program)
