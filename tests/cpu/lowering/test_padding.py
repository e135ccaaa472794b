"""Padding with the tensor's own elements: borders are copies of slices."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from tcw.compiler.loops.expressions import Op
from tcw.compiler.loops.graph import Store
from tcw.compiler.loops.nest import Nest, expressions
from tests.cpu.codegen.nests import programs
from tests.cpu.lowering.harness import lowered
from tests.cpu.lowering.samples import FLOATS, Dtype, grid

PADS = {
    "all sides": (2, 1, 3, 2),
    "one side": (0, 2, 0, 0),
    "as wide as can be": (5, 5, 4, 4),
    "none": (0, 0, 0, 0),
}


def image(dtype: Dtype = torch.float32) -> torch.Tensor:
    return grid(dtype, 2, 3, 5, 6)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("pads", PADS.values(), ids=PADS)
@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_images_in_any_memory_order(mode: str, pads: tuple[int, ...], dtype: Dtype) -> None:
    x = image(dtype)
    for argument in (x, x.mT.contiguous().mT, x.to(memory_format=torch.channels_last)):
        lowered(lambda x: functional.pad(x * 2, pads, mode=mode), argument)


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_the_columns_of_a_border_have_no_index(mode: str) -> None:
    across = image().mT.contiguous().mT
    for right, stores in ((2, 1 + 1 + 2), (5, 1 + 1 + 1)):
        pads = (1, right, 2, 1)
        result = lowered(lambda x, pads=pads: functional.pad(x, pads, mode=mode), image())
        assert result.kinds() == ["Buffer", *["Store"] * stores]
        stored = (node for node in result.graphs[0].nodes if isinstance(node, Store))
        assert all(len(node.expression.terms) == 1 for node in stored), "the row"
        result = lowered(lambda x, pads=pads: functional.pad(x, pads, mode=mode), across)
        assert result.kinds() == ["Buffer", *["Store"] * 9], "nothing is computed for an index"


@pytest.mark.parametrize("pads", [(1, 1, 1, 1), (2, 3, 3, 1), (0, 4, 1, 0)])
@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_all_rows_and_their_ends_are_written_by_one_loop(mode: str, pads: tuple[int, ...]) -> None:
    """Memory is gone through once, not once for each side."""
    x = grid(torch.float32, 2, 3, 9, 32)
    (program,) = programs(lambda x: functional.pad(x, pads, mode=mode), x)
    (nest,) = (nest for nest in program.steps if isinstance(nest, Nest))
    assert len(nest.statements) == 1 + pads[0] + pads[1]
    across = x.mT.contiguous().mT
    (program,) = programs(lambda x: functional.pad(x, pads, mode=mode), across)
    assert len(program.steps[0].statements) == 1, "the middle is transposed"


def test_what_is_costly_is_computed_once_for_the_rows_and_their_ends() -> None:
    """Another time for the columns of the border costs more, and may round otherwise."""
    x = torch.randn(2, 3, 9, 32)
    (program,) = programs(lambda x: functional.pad(x.sigmoid(), (1, 1, 1, 1), mode="reflect"), x)
    nests = [nest for nest in program.steps if isinstance(nest, Nest)]
    parts = [part for nest in nests for s in nest.statements for part in expressions(s)]
    assert sum(isinstance(part, Op) and part.name == "sigmoid" for part in parts) == 1


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_one_and_three_dimensions(mode: str) -> None:
    lowered(lambda x: functional.pad(x, (2, 1), mode=mode), grid(torch.float32, 2, 3, 5))
    volume = grid(torch.float32, 1, 2, 3, 4, 5)
    lowered(lambda x: functional.pad(x, (1, 2, 2, 1, 0, 2), mode=mode), volume)


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_sizes_that_change_and_gradients(mode: str) -> None:
    def padded(x: torch.Tensor) -> torch.Tensor:
        return functional.pad(x, (1, 2, 2, 1), mode=mode).sin()

    lowered(padded, image(), dynamic=True)
    lowered(padded, image().requires_grad_(), calls=None)


@pytest.mark.parametrize("pads", PADS.values(), ids=PADS)
def test_gradients_of_a_reflection(pads: tuple[int, ...]) -> None:
    """Each border is added to its mirror image: no index is computed."""

    def padded(x: torch.Tensor) -> torch.Tensor:
        return functional.pad(x, pads, mode="reflect") * 2

    x = image()
    for argument in (x, x.mT.contiguous().mT, x.to(memory_format=torch.channels_last)):
        lowered(padded, argument.detach().requires_grad_())
    lowered(padded, x.double().requires_grad_())
    result = lowered(
        lambda g, x: torch.ops.aten.reflection_pad2d_backward(g, x, (2, 1, 3, 2)),
        torch.randn(2, 3, 10, 9),
        image(),
    )
    assert result.kinds() == ["Buffer", *["Store"] * 9]
    lowered(
        lambda g, x: torch.ops.aten.reflection_pad2d_backward(g, x, (2, 1, 3, 2)),
        torch.randn(2, 3, 10, 9, dtype=torch.float64).to(torch.bfloat16),
        image(torch.bfloat16),
        atol=0.05,
        rtol=0.05,
    )


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_a_pad_that_crops(mode: str) -> None:
    lowered(lambda x: functional.pad(x, (-1, 2, 1, -1), mode=mode), image(), calls=None)


def test_integers_are_copied_too() -> None:
    x = torch.arange(2 * 3 * 7).view(2, 3, 7)
    lowered(lambda x: functional.pad(x, (2, 3), mode="replicate"), x, calls=None)


@pytest.mark.parametrize("pads", [(-1, 2), (2, -1, -2, 1), (-1, -1, 0, 2)])
def test_a_negative_pad_of_a_replication_crops_first(pads: tuple[int, ...]) -> None:
    x = torch.randn(2, 3, 6, 7)
    for tensor in (x, x.contiguous(memory_format=torch.channels_last)):
        image = tensor if len(pads) == 4 else tensor[0]
        lowered(lambda x: functional.pad(x, pads, mode="replicate"), image)


def test_a_circular_pad_is_one_buffer_with_a_store_for_each_side() -> None:
    """As ATen's: the tensor, then each side from what is there. Nothing is copied to a new one."""
    for sides, pads in ((5, (1, 2, 2, 1)), (3, (0, 2, 1, 0))):
        found = lowered(lambda x, pads=pads: functional.pad(x, pads, mode="circular"), image())
        stores = [node for node in found.graphs[0].nodes if isinstance(node, Store)]
        assert len(stores) == sides
        assert len({store.buffer for store in stores}) == 1
    lowered(
        lambda x: functional.pad(x, (1, 2, 2, 1), mode="circular").sin(), image().requires_grad_()
    )
