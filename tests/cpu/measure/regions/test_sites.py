"""Lines and modules of the eager call match those of captured graphs."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import example, given
from hypothesis import strategies as st
from torch import nn

from tcw.compiler.autograd import HOOKS as AUTOGRAD
from tcw.compiler.capture import HOOKS
from tcw.compiler.measure.probes.eager_probe import EagerProbe
from tcw.compiler.measure.probes.sites import named_roots
from tcw.compiler.measure.regions.origins import Site
from tcw.compiler.measure.regions.same_sites import as_captured, same_sites
from tcw.compiler.trace.records import Graph
from tests.cpu.recorded import record

Short = tuple[str, str, int]
"""(module, name of the file, line)."""


def eager_sites(probe: EagerProbe, phase: str = "") -> set[Site]:
    return {
        (operation.module, operation.location.file, operation.location.line)
        for operation in probe.operations
        if operation.location is not None and operation.phase == phase and operation.part == "model"
    }


def graph_sites(graph: Graph, training: bool = True) -> set[Site]:
    return {
        (node.module, node.location.file, node.location.line)
        for node in graph.nodes
        if node.op.startswith("call")
        and node.location is not None
        and (training or not node.target.endswith("dropout"))  # in eval no operation of ATen
    }


def compared(
    model: Callable[..., Any], inputs: Sequence[Any], **options: Any
) -> tuple[set[Short], set[Short]]:
    """(sites that only capture has, sites that only eager has)."""
    twin = copy.deepcopy(model)
    probe = EagerProbe(twin, 1)
    arguments = copy.deepcopy(inputs)
    with probe.describing():
        twin(*arguments, **options)
    eager = eager_sites(probe)
    with record(HOOKS) as recording:
        torch.compile(model, backend="eager")(*copy.deepcopy(inputs), **options)
    found: set[Site] = set()
    lost: set[Site] = set()
    for graph in recording.records:
        if isinstance(graph, Graph) and graph.kind == "captured":
            sites = graph_sites(graph, getattr(model, "training", False))
            for site, same in same_sites(sites, eager, probe.paths.canonical).items():
                found.update(same)
                if not same:
                    lost.add(site)
    return short(lost), short(eager - found)


def short(sites: set[Site]) -> set[Short]:
    return {(module, Path(file).name, number) for module, file, number in sites}


SAMPLES = [
    "break_in_chain",
    "custom_op",
    "dynamic_shapes",
    "float_argument",
    "gpt",
    "graph_breaks",
    "llama_block",
    "pointwise_chain",
    "recompiles",
    "resnet_block",
    "softmax_layernorm",
    "training_step",
    "transformer_block",
    "troubled_block",
]


def sample(name: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    module = importlib.import_module(f"sample_models.{name}")
    inputs = module.example_inputs
    if callable(inputs):
        inputs = next(iter(inputs()))
    elif isinstance(inputs, list):
        inputs = inputs[0]
    return module.model, inputs if isinstance(inputs, tuple) else (inputs,)


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_models(name: str) -> None:
    model, inputs = sample(name)
    assert compared(model, inputs) == (set(), set())


class DropsMask(nn.Module):
    def forward(self, x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        if torch.compiler.is_compiling() or not bool(keep.all()):  # @looks
            x = x * keep  # @mask
        return x.sin()


def line(name: str) -> int:
    """Number of the line marked `# @name` in this file."""
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, text in enumerate(lines, 1) if text.endswith(f"# @{name}"))


def test_a_program_that_differs_under_capture() -> None:
    only_captured, only_eager = compared(DropsMask(), (torch.ones(4), torch.ones(4)))
    assert only_captured == {("", Path(__file__).name, line("mask"))}
    assert only_eager == {("", Path(__file__).name, line("looks"))}


@pytest.mark.long
def test_bert_and_gpt2() -> None:
    transformers = pytest.importorskip("transformers")
    ids = torch.arange(32).reshape(2, 16)
    bert = transformers.BertModel(
        transformers.BertConfig(
            vocab_size=64,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
        )
    )
    config = transformers.GPT2Config(
        vocab_size=64, n_embd=32, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=2
    )
    for model in (bert, transformers.GPT2Model(config)):
        only_captured, only_eager = compared(model.eval(), (ids,))
        # the mask, which eager drops if it hides nothing
        assert {file for _, file, _ in only_captured | only_eager} <= {"masking_utils.py"}


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.act = nn.Linear(8, 8), nn.GELU()

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.linear(x)) * 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.encode(x) + 1


class CallsMethods(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = Layer(), Layer()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.one.encode(x) + self.other(x)


class Shares(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(8, 8)
        self.b = self.a
        self.layers = nn.ModuleList([self.a, Layer()])
        self.tied = self.layers[1]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.tied(self.b(x))
        for layer in self.layers:
            x = layer(x).relu()
        return self.a(x)


class Contains(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        inner = nn.Sequential(nn.ReLU(), nn.Linear(8, 8))
        self.body = nn.Sequential(nn.Linear(8, 8), inner, Layer())
        self.heads = nn.ModuleDict({"a": nn.Linear(8, 8)})
        self.plain = [nn.Linear(8, 8)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.heads["a"](self.body(x))
        return self.plain[0](x) + F.linear(
            x,
            self.heads["a"].weight,
        )


class Breaks(nn.Module):
    """The layer's frame is compiled separately, for both instances."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([BrokenLayer(), BrokenLayer()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class BrokenLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Layer()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.inner(x) + 3
        torch._dynamo.graph_break()
        return self.inner(x) * 2


GLOBAL = Layer()


def function(x: torch.Tensor) -> torch.Tensor:
    return helper(x).sin()


def helper(x: torch.Tensor) -> torch.Tensor:
    return GLOBAL(x) - 1


def closure() -> Callable[[torch.Tensor], torch.Tensor]:
    held = Layer()

    def inner(x: torch.Tensor) -> torch.Tensor:
        return held(x).sin()

    return inner


@pytest.mark.parametrize(
    "make", [CallsMethods, Shares, Contains, Breaks, lambda: function, closure,
             lambda: Layer().encode, lambda: nn.Sequential(nn.Linear(8, 8), Layer())]
)  # fmt: skip
def test_modules_by_any_way_to_reach_them(make: Callable[[], Callable[..., Any]]) -> None:
    assert compared(make(), (torch.randn(4, 8),)) == (set(), set())


@pytest.mark.parametrize("name", ["transformer_block", "resnet_block", "training_step"])
def test_backward_operations_have_the_lines_of_the_backward_graph(name: str) -> None:
    model, inputs = sample(name)
    twin = copy.deepcopy(model)
    probe = EagerProbe(twin, 1)
    with probe.describing():
        with probe.during("forward"):
            outputs = twin(*inputs)
        with probe.during("forward", "loss"):
            loss = outputs.float().mean()
        with probe.during("backward"):
            loss.backward()
    with record((*HOOKS, *AUTOGRAD)) as recording:
        torch.compile(model, backend="aot_eager")(*inputs).float().mean().backward()
    (backward,) = (
        one for one in recording.records if isinstance(one, Graph) and one.kind == "backward"
    )
    # accumulated gradients have a line but no module: torch records none
    captured = {site for site in graph_sites(backward) if site[0]}
    eager = {site for site in eager_sites(probe, "backward") if site[0]}
    assert short(captured) == short(eager)


def test_the_roots_of_a_function_are_what_it_finds() -> None:
    assert [name for name, _ in named_roots(closure())] == ["held"]
    assert [name for name, _ in named_roots(helper)] == ["GLOBAL"]
    assert named_roots(torch.sin) == []
    assert [name for name, _ in named_roots(Layer().encode)] == [""]


paths = st.lists(st.sampled_from("abc"), max_size=3).map(".".join)
sites = st.tuples(paths, st.sampled_from(["f", "g"]), st.integers(1, 3))


@given(st.lists(sites, max_size=8), st.lists(sites, max_size=8))
def test_each_site_stands_for_sites_of_its_line(captured: list[Site], eager: list[Site]) -> None:
    found = same_sites(captured, eager)
    assert set(found) == set(captured)
    for site, same in found.items():
        for other in same:
            assert other in eager
            assert other[1:] == site[1:]
            assert other[0].endswith(site[0])


@given(st.lists(sites, max_size=8))
def test_equal_sites_are_the_same(both: list[Site]) -> None:
    assert same_sites(both, both) == {site: (site,) for site in both}


def test_an_eager_site_takes_the_name_that_graphs_have_for_it() -> None:
    eager = [("layers.0.inner", "f", 1), ("layers.1.inner", "f", 1), ("a", "f", 2), ("", "f", 3)]
    graphs = [[("inner", "f", 1)], [("b", "f", 2), ("", "f", 3)]]
    assert as_captured(graphs, eager, lambda path: "a" if path == "b" else path) == {
        ("layers.0.inner", "f", 1): ("inner", "f", 1),
        ("layers.1.inner", "f", 1): ("inner", "f", 1),
        ("a", "f", 2): ("b", "f", 2),
    }


@given(st.lists(st.lists(sites, max_size=4), max_size=3), st.lists(sites, max_size=8))
@example([[("", "f", 1), ("", "f", 2), ("a", "f", 1)]], [("a", "f", 1), ("a", "f", 2)])
def test_a_site_that_graphs_have_keeps_its_name(
    graphs: list[list[Site]], eager: list[Site]
) -> None:
    for other, site in as_captured(graphs, eager, lambda path: path).items():
        assert other in eager
        assert not any(other in graph for graph in graphs)
        assert any(site in graph for graph in graphs)
