"""Products that Inductor pads are found in its graphs: padded here on the CPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch._inductor import config
from torch._inductor.fx_passes import pad_mm

from tcw.compiler.trace.records import Graph
from tcw.viewers.summary.profile.causes.padding import padded_products
from tests.cpu.inductor.recorded import record


@pytest.fixture
def padding(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on a GPU where measurements show that padding is faster."""
    monkeypatch.setattr(pad_mm, "check_device", lambda *_: True)
    monkeypatch.setattr(pad_mm, "has_triton", lambda: True)
    with config.patch(shape_padding=True, force_shape_pad=True):
        yield


@pytest.mark.usefixtures("padding")
def test_sizes_of_padded_products() -> None:
    weight, bias, other = torch.randn(511, 253), torch.randn(511), torch.randn(511, 77)
    batched = torch.randn(3, 77, 21)

    def model(x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(torch.nn.functional.linear(x, weight, bias)) @ other
        return torch.bmm(h.expand(3, *h.shape), batched)

    recorded, _ = record(model, torch.randn(123, 253))
    lowered = [graph for graph in recorded.all(Graph) if graph.kind == "lowered"]
    found = [
        (product.before, product.after) for graph in lowered for product in padded_products(graph)
    ]
    assert sorted(found) == [
        ((123, 77, 21), (124, 80, 24)),
        ((123, 253, 511), (124, 256, 512)),
        ((123, 511, 77), (124, 512, 80)),
    ]


def test_products_that_are_not_padded() -> None:
    recorded, _ = record(lambda x: (x @ x).relu(), torch.randn(123, 123))
    assert not [p for graph in recorded.all(Graph) for p in padded_products(graph)]
