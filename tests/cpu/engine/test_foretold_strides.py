"""An operation returns other strides than its fake tensor predicted: values must not change.

torch 2.11's FFTs do so (their fake tensors are contiguous, MKL's results are not).
"""

from __future__ import annotations

import pytest
import torch

from tcw.compiler.engine import compile
from tcw.compiler.engine.backend import backend


@torch.library.custom_op("foretold::transposed", mutates_args=())
def transposed(x: torch.Tensor) -> torch.Tensor:
    """A copy of x in column-major order, unlike its fake tensor."""
    return x.t().contiguous().t()


@transposed.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def seen_through_a_view(x: torch.Tensor) -> torch.Tensor:
    return torch.resolve_conj(transposed(x)[:, 1:])


def read_by_loops(x: torch.Tensor) -> torch.Tensor:
    return transposed(x) + 1


def answered(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return transposed(x), x + 1


@pytest.mark.parametrize("function", [seen_through_a_view, read_by_loops, answered])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_values_are_those_of_eager(function, dtype) -> None:
    x = torch.randn(5, 7, dtype=dtype)
    torch._dynamo.reset()
    found = torch.compile(function, backend=backend)(x)
    torch.testing.assert_close(found, function(x))


def test_an_answer_has_the_strides_that_were_promised() -> None:
    torch._dynamo.reset()
    found, _ = torch.compile(answered, backend=backend)(torch.randn(5, 7))
    assert found.stride() == (7, 1)


def of_sizes_that_depend_on_data(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = transposed(x)
    return y, y.view(7, 5), y.nonzero()


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_graph_that_is_left_to_aten_keeps_its_promises(dynamic, monkeypatch) -> None:
    """Without the check, a view of it raises, or has its elements in another order."""
    left = []
    monkeypatch.setattr(compile, "_left_to_aten", watched_call(compile._left_to_aten, left))
    x = torch.randn(5, 7)
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(of_sizes_that_depend_on_data, backend=backend, dynamic=dynamic)
        whole, view, places = compiled(x)
    assert left, "the graph has to be one that is left to ATen"
    assert whole.stride() == (7, 1)
    torch.testing.assert_close(whole, x)
    torch.testing.assert_close(view, x.view(7, 5))
    torch.testing.assert_close(places, x.nonzero())


def watched_call(function, calls):
    def watched(*args, **kwargs):
        calls.append(args)
        return function(*args, **kwargs)

    return watched
