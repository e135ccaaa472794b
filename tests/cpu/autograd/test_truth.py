"""AOTAutograd's graphs and partitions of real models in training, against torch's own trace."""

from __future__ import annotations

import math
import re

import pytest
import torch
import transformers

from tcw.compiler.autograd import HOOKS
from tcw.compiler.inductor import passes
from tcw.compiler.trace.records import Graph, Partition, Warned
from tests.cpu.recorded import Recorded, record, without_codegen
from tests.cpu.structured_trace import structured_trace
from tests.long import mostly_long

SMALL = {"vocab_size": 64, "bos_token_id": 1, "eos_token_id": 2}
_DEFINITION = re.compile(r"^\s+(\w+)(?:: \"[^\"]*\")? = (?!None)", re.MULTILINE)


def gpt2() -> torch.nn.Module:
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_layer=1, n_head=2, n_embd=32, **SMALL)
    )


def llama() -> torch.nn.Module:
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
            hidden_size=32, intermediate_size=64, **SMALL,
        )
    )  # fmt: skip


def mamba() -> torch.nn.Module:
    return transformers.MambaForCausalLM(
        transformers.MambaConfig(num_hidden_layers=1, hidden_size=32, state_size=4, **SMALL)
    )


@pytest.fixture(scope="module", params=mostly_long((gpt2, llama, mamba), (llama,)))
def step(request):
    """A training step: our recording, and torch's names of each graph's computing nodes."""
    torch.manual_seed(0)
    model = request.param().train()
    tokens = torch.arange(24).reshape(2, 12) + 3
    with structured_trace() as trace, record((*HOOKS, passes.HOOK)) as recorded:
        compiled = torch.compile(model, backend=without_codegen)
        compiled(input_ids=tokens, labels=tokens).loss.backward()
    said = {}
    for metadata, text in trace.events:
        for kind in ("forward", "backward", "inference"):
            if f"aot_{kind}_graph" in metadata:
                id = f"{metadata['frame_id']}/{metadata['frame_compile_id']}/{kind}"
                said[id] = list(dict.fromkeys(_DEFINITION.findall(text)))
    assert recorded.all(Warned) == []
    return recorded, said


def computing(graph: Graph) -> list[str]:
    return [node.name for node in graph.nodes if node.op in ("call_function", "get_attr")]


def sides(recorded: Recorded, partition: Partition) -> tuple[Graph, Graph]:
    return recorded.graphs[partition.forward], recorded.graphs[partition.backward]


def test_graphs(step):
    recorded, said = step
    ours = {g.id: computing(g) for g in recorded.all(Graph) if g.kind != "joint"}
    assert ours == said


def test_partitions(step):
    recorded, _ = step
    assert recorded.all(Partition)
    for partition in recorded.all(Partition):
        forward, backward = sides(recorded, partition)
        taken = {n.name for n in backward.nodes if n.op == "placeholder"}
        crossing = {v.node: v for v in partition.values if v.choice != "recomputed"}
        assert set(crossing) == {name for name in taken if not name.startswith("tangents")}
        again = {v.node for v in partition.values if v.choice == "recomputed"}
        assert again == set(computing(forward)) & set(computing(backward))
        weights = [value.weight or 0.0 for value in crossing.values()]
        assert math.isclose(sum(weights), partition.cut_value)
        assert all(value.reason for value in partition.values)


def test_lines(step):
    recorded, _ = step
    for graph in recorded.all(Graph):
        for node in graph.nodes:
            # one node seeds the random numbers of all dropouts and has no line
            if node.op == "call_function" and "seed" not in node.target:
                assert node.location is not None, (graph.id, node.name, node.made_by)
                assert "transformers" in node.location.file
