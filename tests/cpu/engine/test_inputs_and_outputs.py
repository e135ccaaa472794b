"""The inputs and outputs of a compiled function, in every form that torch supports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._higher_order_ops.associative_scan import associative_scan

from tcw.compiler.engine.backend import backend


def compiled(model: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(model, backend=backend)  # type: ignore[no-any-return]


def of_one_base(base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return base[:6], base[3:9]


def the_same(base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return base, base


@pytest.mark.parametrize("inputs", [of_one_base, the_same])
def test_inputs_that_share_memory(inputs: Callable[..., Any]) -> None:
    def model(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        a.mul_(2)
        b.add_(1)
        return a + 1, b.sum()

    ours, theirs = torch.arange(10.0), torch.arange(10.0)
    torch.testing.assert_close(compiled(model)(*inputs(ours)), model(*inputs(theirs)))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    "of",
    [lambda t: t[::2, 1:], lambda t: t.t(), lambda t: t[3], lambda t: t.as_strided((4,), (8,), 5)],
    ids=["slice", "transposed", "row", "as_strided"],
)
def test_views_that_are_written(of: Callable[[torch.Tensor], torch.Tensor]) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        x.mul_(3)
        return x.relu()

    ours, theirs = torch.arange(-64.0, 64).view(8, 16), torch.arange(-64.0, 64).view(8, 16)
    torch.testing.assert_close(compiled(model)(of(ours)), model(of(theirs)))
    torch.testing.assert_close(ours, theirs)


def test_results_that_share_memory() -> None:
    def model(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x * 2
        return x, x[1:], y, y.t(), y.view(-1), y

    x = torch.randn(4, 3)
    got = compiled(model)(x)
    torch.testing.assert_close(got, model(x))
    addresses = [one.untyped_storage().data_ptr() for one in got]
    assert got[0] is x
    assert addresses[1] == addresses[0]
    assert len(set(addresses[2:])) == 1


@pytest.mark.parametrize(
    "x",
    [
        torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
        torch.randn(5, 4, 3, 2).permute(3, 1, 0, 2),
        torch.randn(3, 1, 4, 1).expand(3, 2, 4, 5),
        torch.randn(500)[7:127].view(2, 3, 4, 5),
        torch.randn(3, 0, 2),
    ],
    ids=["channels last", "permuted", "expanded", "offset", "no elements"],
)
def test_strides(x: torch.Tensor) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * 2, 1) + x.sum(-1, keepdim=True)

    got, wanted = compiled(model)(x), model(x)
    torch.testing.assert_close(got, wanted)
    assert got.stride() == wanted.stride()


def test_a_scalar_that_is_written() -> None:
    ours, theirs = torch.tensor(2), torch.tensor(2)
    torch.testing.assert_close(compiled(torch.Tensor.add_)(ours, 1), theirs.add_(1))
    assert torch.equal(ours, theirs)


def test_what_our_loops_do_not_have() -> None:
    def model(x: torch.Tensor, sparse: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.fft.fft(x).abs() * 2 + 1, torch.sparse.mm(sparse, x * 2).sin()

    x, sparse = torch.randn(4, 4), torch.eye(4).to_sparse()
    torch.testing.assert_close(compiled(model)(x, sparse), model(x, sparse))


def test_a_scan_with_a_function_of_the_user() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return associative_scan(lambda a, b: a + b, x, 0, combine_mode="generic") * 2

    x = torch.randn(8, 4)
    torch.testing.assert_close(compiled(model)(x), x.cumsum(0) * 2)


def test_two_hundred_inputs() -> None:
    def model(*given: torch.Tensor) -> Any:
        return sum(one * place for place, one in enumerate(given))

    given = torch.randn(200, 5).unbind()
    torch.testing.assert_close(compiled(model)(*given), model(*given))


def test_indices_out_of_range() -> None:
    function = compiled(lambda x, index: x[index] * 2)
    x = torch.randn(8)
    for wrong in (8, -9):
        with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for dimension 0"):
            function(x, torch.tensor([0, wrong]))
    torch.testing.assert_close(function(x, torch.tensor([1, -8])), x[[1, 0]] * 2)


OUT_OF_RANGE: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "gather": lambda x, i: x.gather(1, i[None]),
    "scatter": lambda x, i: x.scatter(1, i[None], x[:1, :2]),
    "scatter a number": lambda x, i: x.scatter(0, i[None], 1.0),
    "scatter add": lambda x, i: x.scatter_add(0, i[None], x),
    "index add": lambda x, i: x.index_add(0, i, x[:2]),
    "index select": lambda x, i: x.index_select(0, i),
    "rows": lambda x, i: x[i],
    "columns": lambda x, i: x[:, i],
    "both": lambda x, i: x[i % 4, i],
    "index put": lambda x, i: x.index_put((i,), x[:2]),
    "embedding": lambda x, i: torch.nn.functional.embedding(i, x),
    "cross entropy": lambda x, i: torch.nn.functional.cross_entropy(x[:2], i),
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_indices_out_of_range_are_refused_as_by_eager(name: str) -> None:
    model = OUT_OF_RANGE[name]
    x, wrong = torch.randn(4, 3), torch.tensor([0, 7])
    with pytest.raises((IndexError, RuntimeError)) as eager:
        model(x, wrong)
    with pytest.raises((IndexError, RuntimeError)) as ours:
        compiled(model)(x, wrong)
    assert (ours.type, str(ours.value)) == (eager.type, str(eager.value))


@pytest.mark.parametrize(
    "model", [torch.floor_divide, torch.remainder, torch.fmod], ids=["//", "%", "fmod"]
)
def test_integers_divided_by_zero(model: Callable[..., Any]) -> None:
    a, b = torch.tensor([7, -7, 8]), torch.tensor([2, 2, -3])
    function = compiled(lambda a, b: model(a, b))
    torch.testing.assert_close(function(a, b), model(a, b))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        function(a, torch.tensor([1, 0, 1]))


def _of_an_input(z: torch.Tensor, start: int) -> list[torch.Tensor]:
    return [z.narrow(1, start, 2).t(), z.narrow(1, start % z.shape[1], 1), z.sum(0)]


def _of_a_result(z: torch.Tensor, start: int) -> list[torch.Tensor]:
    w = z * 2
    return [w, w.narrow(1, start, 2).t(), w.narrow(0, start, 1)]


def _of_what_is_not_answered(z: torch.Tensor, start: int) -> list[torch.Tensor]:
    w = z * 2
    return [w.narrow(1, start, 2), w.narrow(1, start, 1)]


def _of_a_written_input(z: torch.Tensor, start: int) -> list[torch.Tensor]:
    z.add_(1)
    return [z.narrow(1, start, 2)]


@pytest.mark.parametrize(
    "model", [_of_an_input, _of_a_result, _of_what_is_not_answered, _of_a_written_input]
)
@pytest.mark.parametrize("transposed", [True, False])
def test_views_that_start_where_an_argument_says(
    model: Callable[[torch.Tensor, int], list[torch.Tensor]], transposed: bool
) -> None:
    """AOTAutograd regenerates them from their base and our output's offset."""
    torch._dynamo.reset()
    compiled = torch.compile(model, backend=backend, fullgraph=True, dynamic=True)
    for size, start in ((9, 5), (12, 7)):
        x = torch.arange(float(size * size)).reshape(size, size)
        z = x.t() if transposed else x
        wanted = model(z.clone(), start)
        found = compiled(z.clone(), start)
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other)
            assert one.storage_offset() == other.storage_offset()


@pytest.mark.usefixtures("nothing_left_to_aten")
@pytest.mark.parametrize("halved", [False, True])
def test_an_integer_argument_may_be_negative(halved: bool) -> None:
    """No size is, but numbers that a caller passes and what is computed of them are no sizes."""

    def padded(x: Any, count: int) -> Any:
        return F.pad(x, (count // 2 if halved else count, 2)) + 1

    x = torch.arange(48.0).view(6, 8)
    compiled = torch.compile(padded, backend=backend, dynamic=True)
    for count in (-1, -4, 2, -3, 5):
        assert torch.equal(compiled(x, count), padded(x, count))


@pytest.mark.usefixtures("nothing_left_to_aten")
def test_a_backward_gets_a_negative_number() -> None:
    """What the gradient of a pad cuts off."""

    def padded(x: Any) -> Any:
        return F.pad(x, (1, 2, x.shape[0] // 2, 0))

    compiled = torch.compile(padded, backend=backend, dynamic=True)
    for rows in (4, 5, 9):
        given, ours = (torch.ones(rows, 8, requires_grad=True) for _ in range(2))
        weights = torch.arange((rows + rows // 2) * 11.0).view(-1, 11)
        (padded(given) * weights).sum().backward()
        (compiled(ours) * weights).sum().backward()
        assert torch.equal(ours.grad, given.grad)


@pytest.mark.usefixtures("nothing_left_to_aten")
def test_a_gradient_of_a_slice_that_is_written_in_channels_last_memory() -> None:
    def program(x: Any) -> Any:
        x[:, 1].relu_()
        return x * 2

    compiled = torch.compile(program, backend=backend, dynamic=True)
    images = torch.randn(4, 4, 6, 6).to(memory_format=torch.channels_last)
    given, ours = (images.clone().requires_grad_() for _ in range(2))
    torch.testing.assert_close(compiled(ours * 1), program(given * 1))
    compiled(ours * 1).sum().backward()
    program(given * 1).sum().backward()
    torch.testing.assert_close(ours.grad, given.grad)
