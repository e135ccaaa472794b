"""`backend="tcw"` on small models: the results of eager, forward and backward, in every mode."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from tcw.compiler.engine.backend import UnknownOption, backend
from tcw.compiler.protocol.override_file import OverrideError


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.inner = nn.Linear(16, 32)
        self.outer = nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.outer(functional.gelu(self.inner(self.norm(x))))
        return torch.softmax(x + hidden, dim=-1)


def check(model: Callable[..., Any], *inputs: torch.Tensor, train: bool = False) -> Any:
    """Check that compiled and eager agree; returns the compiled function."""
    compiled = torch.compile(model, backend=backend)
    ours, theirs = ([one.detach().clone().requires_grad_(train) for one in inputs] for _ in "ab")
    got, wanted = compiled(*ours), model(*theirs)
    torch.testing.assert_close(got, wanted)
    if train:
        got.square().sum().backward()
        ours_grads = [one.grad for one in ours]
        wanted.square().sum().backward()
        torch.testing.assert_close(ours_grads, [one.grad for one in theirs])
    return compiled


@pytest.fixture
def x() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(8, 16)


def test_forward_and_backward(x: torch.Tensor) -> None:
    check(Net(), x, train=True)


def test_no_grad_and_inference_mode(x: torch.Tensor) -> None:
    model = Net()
    with torch.no_grad():
        check(model, x)
    torch._dynamo.reset()
    with torch.inference_mode():
        torch.testing.assert_close(torch.compile(model, backend=backend)(x), model(x))


def test_dynamic_shapes_compile_once(x: torch.Tensor) -> None:
    model = Net()
    compiled = torch.compile(model, backend=backend, dynamic=True, fullgraph=True)
    for rows in (3, 5, 8):
        torch.testing.assert_close(compiled(x[:rows]), model(x[:rows]))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_gradients_of_parameters(x: torch.Tensor) -> None:
    model, twin = Net(), Net()
    twin.load_state_dict(model.state_dict())
    torch.compile(model, backend=backend)(x).square().sum().backward()
    twin(x).square().sum().backward()
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


def test_mutated_and_aliased_inputs() -> None:
    def model(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]:
        x.mul_(2)
        return x, x[1:], {"sum": x.sum()}

    compiled = torch.compile(model, backend=backend)
    ours, theirs = torch.arange(6.0), torch.arange(6.0)
    got, wanted = compiled(ours), model(theirs)
    torch.testing.assert_close(got, wanted)
    torch.testing.assert_close(ours, theirs)
    assert got[0] is ours
    assert got[1].untyped_storage().data_ptr() == ours.untyped_storage().data_ptr()


def test_batch_norm_in_training_moves_its_statistics() -> None:
    model, twin = nn.BatchNorm1d(4), nn.BatchNorm1d(4)
    x = torch.randn(8, 4)
    torch.testing.assert_close(torch.compile(model, backend=backend)(x), twin(x))
    torch.testing.assert_close(model.state_dict(), twin.state_dict())


def test_dropout_draws_the_numbers_of_eager(x: torch.Tensor) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return functional.dropout(x, 0.5) + torch.rand_like(x)

    torch.manual_seed(1)
    got = torch.compile(model, backend=backend)(x)
    torch.manual_seed(1)
    assert torch.equal(got, model(x))


def test_a_break_a_custom_operator_and_a_disabled_part(x: torch.Tensor) -> None:
    @torch.library.custom_op("tcw_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(lambda x: torch.empty_like(x))

    @torch.compiler.disable
    def aside(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    check(lambda x: torch.sin(aside(twice(torch.cos(x)))), x)


def test_attention_stays_one_call(x: torch.Tensor, targets: list[str]) -> None:
    q = torch.randn(1, 2, 8, 16)
    mask = torch.zeros(8, 8)
    for given in (None, mask, mask > -1):
        torch._dynamo.reset()
        targets.clear()
        check(
            lambda q, given=given: functional.scaled_dot_product_attention(q, q, q, given),
            q,
            train=True,
        )
        assert sum("scaled_dot_product" in name for name in targets) == 2, targets


def test_an_optimizer_step_is_taken_apart(targets: list[str]) -> None:
    ours, theirs = (nn.Linear(4, 4) for _ in "ab")
    theirs.load_state_dict(ours.state_dict())
    steps = []
    for model in (ours, theirs):
        optimizer = torch.optim.Adam(model.parameters(), foreach=True)
        model(torch.ones(2, 4)).sum().backward()
        steps.append(optimizer.step)
    torch.compile(steps[0], backend=backend)()
    steps[1]()
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict())
    assert targets
    assert not [name for name in targets if "foreach" in name]


def test_garbage_collection_is_on_again_and_the_state_of_torch_is_as_before(
    x: torch.Tensor,
) -> None:
    check(Net(), x, train=True)
    assert gc.isenabled()


def test_options() -> None:
    with pytest.raises(Exception, match="has no option 'speed'") as caught:
        torch.compile(torch.sin, backend=backend, options={"speed": 11})(torch.ones(2))
    assert isinstance(caught.value.inner_exception, UnknownOption)
    torch._dynamo.reset()
    with pytest.raises(Exception, match=r"none\.toml") as caught:
        torch.compile(torch.sin, backend=backend, options={"overrides": "none.toml"})(torch.ones(2))
    assert isinstance(caught.value.inner_exception, OverrideError)


@pytest.fixture
def targets(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the operations in every graph that our compiler receives."""
    import tcw.compiler.engine.backend as module

    found: list[str] = []
    original = module.compile_graph

    def compile_graph(given: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        found.extend(str(n.target) for n in given.graph.nodes if n.op == "call_function")
        return original(given, *args, **kwargs)

    monkeypatch.setattr(module, "compile_graph", compile_graph)
    return found


def test_a_single_half_is_compared_with_itself() -> None:
    check(lambda x: (x.to(torch.bfloat16), torch.isnan(x)), torch.tensor(1.5, dtype=torch.float16))
