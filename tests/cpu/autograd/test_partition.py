"""What crosses to the backward, compared with the partitioner's actual result."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
import torch._functorch.partitioners as partitioners
from torch._dynamo.backends.common import aot_autograd
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

from tcw.compiler.autograd import HOOKS
from tcw.compiler.trace.records import Graph, Partition, SavedValue
from tests.cpu.models import Broken, Checkpointed, Mlp, line
from tests.cpu.recorded import Recorded, record, without_codegen


def boxed(module, inputs):
    from functorch.compile import make_boxed_func

    return make_boxed_func(module.forward)


# referenced before the hooks are installed, as a user's own backend may do
default_backend = aot_autograd(
    fw_compiler=boxed, bw_compiler=boxed, partition_fn=partitioners.default_partition
)


class Torch:
    """The inputs and results of torch's extraction, observed without our hooks."""

    def __init__(self, monkeypatch) -> None:
        self.saved: list[str] = []
        self.outputs: list[str] = []
        self.inputs: list[str] = []
        self.user_outputs = 0
        extract = partitioners._extract_fwd_bwd_modules

        def watched(joint, saved, sizes, *args, **kwargs):
            halves = extract(joint, saved, sizes, *args, **kwargs)
            self.saved = [node.name for node in (*saved, *sizes)]
            results = next(iter(halves[0].graph.find_nodes(op="output"))).args[0]
            self.outputs = [getattr(node, "name", "") for node in results]
            self.inputs = [node.name for node in halves[1].graph.find_nodes(op="placeholder")]
            self.user_outputs = kwargs["num_fwd_outputs"]
            return halves

        monkeypatch.setattr(partitioners, "_extract_fwd_bwd_modules", watched)


def train(model, *inputs, backend=without_codegen, **options) -> Recorded:
    with record(HOOKS) as recorded:
        compiled = torch.compile(model, backend=backend, **options)
        compiled(*inputs).sum().backward()
    return recorded


def only(recorded: Recorded) -> Partition:
    (partition,) = recorded.all(Partition)
    return partition


def named(partition: Partition, *choices: str) -> dict[str, SavedValue]:
    return {value.node: value for value in partition.values if value.choice in choices}


@pytest.fixture(scope="module")
def mlp():
    with pytest.MonkeyPatch.context() as monkeypatch:
        torch_says = Torch(monkeypatch)
        torch.manual_seed(0)
        yield train(Mlp(), torch.randn(8, 32)), torch_says


def test_the_list_is_what_the_forward_returns_for_the_backward(mlp):
    recorded, torch_says = mlp
    crossing = list(named(only(recorded), "saved", "input"))
    assert crossing == torch_says.outputs[torch_says.user_outputs :]
    assert sorted(crossing) == sorted(torch_says.saved)
    tangents = [name for name in torch_says.inputs if name.startswith("tangents")]
    assert sorted(crossing + tangents) == sorted(torch_says.inputs)


def test_inputs_are_told_from_saved_values(mlp):
    partition = only(mlp[0])
    inputs = named(partition, "input")
    assert inputs
    assert all(name.startswith("primals") for name in inputs)
    assert not any(name.startswith("primals") for name in named(partition, "saved"))
    assert inputs["primals_3"].reason.startswith("an input of the forward")
    assert inputs["primals_4"].reason.startswith("a parameter or buffer")


def test_recomputed_are_the_nodes_on_both_sides(mlp):
    recorded, _ = mlp
    sides = [
        {node.name for node in recorded.graphs[f"0/0/{kind}"].nodes if node.op == "call_function"}
        for kind in ("forward", "backward")
    ]
    partition = only(recorded)
    assert set(named(partition, "recomputed")) == sides[0] & sides[1]
    assert partition.recomputed == len(sides[0] & sides[1]) > 0


def test_bytes_and_lines(mlp):
    recorded, _ = mlp
    partition = only(recorded)
    saved = named(partition, "saved")
    assert saved["addmm"].bytes == 8 * 64 * 4
    assert saved["addmm"].location.line == line("up")
    assert partition.saved_bytes == sum(value.bytes for value in saved.values())


def test_reasons_are_those_of_the_cut(mlp):
    partition = only(mlp[0])
    saved = named(partition, "saved")
    assert saved["addmm"].reason == "cannot recompute: not in recomputable allowlist"
    (gelu,) = (v for v in saved.values() if v.location.line == line("gelu"))
    assert gelu.reason == "cannot recompute: materialized in backward"
    assert "var_mean" in saved["rsqrt"].reason
    assert saved["div"].reason.endswith("also an output of the forward")
    recomputed = named(partition, "recomputed")
    assert "view" in recomputed["permute_1"].reason
    assert recomputed["erf"].reason.startswith("cheaper than saving it")


def test_the_weights_of_what_crosses_add_up_to_the_cut(mlp):
    partition = only(mlp[0])
    weights = [value.weight for value in named(partition, "saved", "input").values()]
    assert partition.partitioner == "min-cut"
    assert math.isclose(sum(weights), partition.cut_value)


def test_the_default_partitioner():
    recorded = train(Mlp(), torch.randn(8, 32), backend=default_backend)
    partition = only(recorded)
    assert partition.partitioner == "default"
    assert partition.cut_value is None
    assert partition.recomputed == 0
    assert {v.reason.partition(";")[0] for v in named(partition, "saved").values()} == {
        "the default partitioner saves what the backward reads"
    }
    assert [graph.kind for graph in recorded.all(Graph)] == ["joint", "forward", "backward"]


@pytest.mark.parametrize("backend", [without_codegen, default_backend])
def test_a_checkpointed_region_is_recomputed_because_the_user_asked(backend):
    recorded = train(Checkpointed(), torch.randn(4, 8), backend=backend)
    recomputed = named(only(recorded), "recomputed")
    asked = {n: v for n, v in recomputed.items() if v.reason.startswith("requested by the user")}
    targets = {n.target for n in recorded.graphs["0/0/joint"].nodes if n.name in asked}
    assert targets >= {"aten.sin.default", "aten.exp.default", "aten.addmm.default"}
    assert {value.location.line for value in asked.values()} == {line("region")}


def test_what_a_policy_must_save_says_so():
    def policy(context, op, *args, **kwargs):
        product = op is torch.ops.aten.mm.default
        return CheckpointPolicy.MUST_SAVE if product else CheckpointPolicy.PREFER_RECOMPUTE

    def model(x, w):
        contexts = partial(create_selective_checkpoint_contexts, policy)
        region = checkpoint(
            lambda x: torch.sin(x @ w).exp(), x, use_reentrant=False, context_fn=contexts
        )
        return region.cos()

    recorded = train(model, torch.randn(4, 4, requires_grad=True), torch.randn(4, 4))
    saved = named(only(recorded), "saved")
    assert saved["mm"].reason == "cannot recompute: marked MUST_SAVE"


def test_a_memory_budget_saves_less():
    def bytes_saved(budget):
        with torch._functorch.config.patch(activation_memory_budget=budget):
            torch.manual_seed(0)
            partition = only(train(Mlp(), torch.randn(64, 32)))
            assert all(value.reason for value in partition.values)
            return partition.saved_bytes

    assert bytes_saved(0.0) == 0
    assert 0 < bytes_saved(0.5) < bytes_saved(1.0)


def test_a_gradient_through_several_graphs(monkeypatch):
    torch_says = Torch(monkeypatch)
    recorded = train(Broken(), torch.randn(4, 8))
    first, second = recorded.all(Partition)
    assert (first.joint, second.joint) == ("0/0/joint", "1/0/joint")
    assert list(named(second, "saved", "input")) == torch_says.outputs[torch_says.user_outputs :]
    assert {v.location.line for v in named(first, "saved").values()} == {line("first")}
    assert {v.location.line for v in named(second, "saved").values()} == {line("second")}


def test_random_numbers_in_a_checkpointed_region():
    def model(x):
        return checkpoint(lambda x: torch.dropout(x.sin(), 0.5, True).cos(), x, use_reentrant=False)

    recorded = train(model, torch.randn(16, requires_grad=True))
    partition = only(recorded)
    taken = [n.name for n in recorded.graphs["0/0/backward"].nodes if n.op == "placeholder"]
    crossing = named(partition, "saved", "input")
    assert len(crossing) == sum(not name.startswith("tangents") for name in taken)
    added = [v for v in crossing.values() if v.node not in taken or v.node.startswith("rng")]
    assert all("random number state" in value.reason for value in added)


class Dropped(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(torch.nn.functional.dropout(torch.relu(self.a(x)), 0.5, True))


@pytest.mark.parametrize("fallback", [False, True])
@pytest.mark.parametrize(("budget", "again"), [(0.0, ["dropout"]), (1.0, [])])
def test_random_numbers_that_are_drawn_again(
    budget: float, again: list[str], fallback: bool
) -> None:
    with (
        torch._functorch.config.patch(activation_memory_budget=budget),
        torch._inductor.config.patch(fallback_random=fallback),
    ):
        recorded = train(Dropped(), torch.randn(4, 8))
    (partition,) = recorded.all(Partition)
    assert [operation.name for operation in partition.drawn_again] == again
    assert all(operation.location is not None for operation in partition.drawn_again)


@pytest.mark.parametrize("fallback", [False, True])
def test_a_checkpoint_draws_the_same_numbers_again(fallback: bool) -> None:
    dropped = Dropped()

    def model(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(dropped, x, use_reentrant=False)

    with torch._inductor.config.patch(fallback_random=fallback):
        recorded = train(model, torch.randn(4, 8, requires_grad=True))
    (partition,) = recorded.all(Partition)
    assert partition.recomputed
    assert partition.drawn_again == ()
