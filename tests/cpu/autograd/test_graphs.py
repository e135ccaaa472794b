"""AOTAutograd's graphs, against torch's own structured trace."""

from __future__ import annotations

import re
from functools import partial

import pytest
import torch

from tcw.compiler.autograd import HOOKS, autograd_graphs
from tcw.compiler.graphs.current import lowering_graph_id
from tcw.compiler.inductor import cache_lookups, passes
from tcw.compiler.trace.records import CacheLookup, Graph, Partition, PassChange, Warned
from tests.cpu.models import Broken, Mlp, line
from tests.cpu.recorded import Recorded, record, without_codegen
from tests.cpu.structured_trace import structured_trace

_DEFINITION = re.compile(r"^\s+(\w+)(?:: \"[^\"]*\")? = (?!None)", re.MULTILINE)


@pytest.fixture(scope="module")
def training():
    torch.manual_seed(0)
    model = Mlp()
    captured = set()

    def backend(module, inputs):
        captured.update(node.name for node in module.graph.nodes)
        return without_codegen(module, inputs)

    with structured_trace() as trace, record((*HOOKS, passes.HOOK)) as recorded:
        torch.compile(model, backend=backend)(torch.randn(8, 32)).sum().backward()
    return recorded, trace.events, captured


def by_id(recorded: Recorded) -> dict[str, Graph]:
    return {graph.id: graph for graph in recorded.all(Graph)}


def payload(events: list, name: str) -> str:
    return next(text for metadata, text in events if name in metadata)


def defined(text: str) -> list[str]:
    """Names that a graph's print assigns, in order: its computing nodes."""
    return list(dict.fromkeys(_DEFINITION.findall(text)))


def test_ids_kinds_and_parents(training):
    recorded, _, _ = training
    found = [(g.id, g.kind, g.compile_id, g.parent) for g in recorded.all(Graph)]
    assert found == [
        ("0/0/joint", "joint", "0/0", "0/0"),
        ("0/0/forward", "forward", "0/0", "0/0/joint"),
        ("0/0/backward", "backward", "0/0", "0/0/joint"),
    ]
    assert recorded.all(Warned) == []


@pytest.mark.parametrize("kind", ["forward", "backward"])
def test_the_halves_are_those_of_the_structured_trace(training, kind):
    recorded, events, _ = training
    ours = [n.name for n in by_id(recorded)[f"0/0/{kind}"].nodes if n.op == "call_function"]
    assert ours == defined(payload(events, f"aot_{kind}_graph"))


def test_the_joint_is_the_traced_one_after_the_recorded_passes(training):
    recorded, events, _ = training
    names = set(defined(payload(events, "aot_joint_graph")))
    for change in recorded.all(PassChange):
        assert change.graph == "0/0/joint"
        names = names - set(change.removed) | set(change.added)
    ours = {n.name for n in by_id(recorded)["0/0/joint"].nodes if n.op == "call_function"}
    assert ours <= names
    # the partitioner then drops duplicates and dead nodes; it adds none
    assert names - ours <= set(defined(payload(events, "aot_joint_graph")))


def test_every_origin_is_a_node_of_the_parent(training):
    recorded, _, captured = training
    graphs_by_id = by_id(recorded)
    joint = {node.name for node in graphs_by_id["0/0/joint"].nodes}
    for kind in ("forward", "backward"):
        for node in graphs_by_id[f"0/0/{kind}"].nodes:
            if node.op != "output":
                assert node.origins == (node.name,)
                assert node.name in joint
    for node in graphs_by_id["0/0/joint"].nodes:
        assert set(node.origins) <= captured
        assert node.origins or node.op == "output" or node.name.startswith("tangents")


def test_every_computing_node_has_the_users_line(training):
    recorded, _, _ = training
    lines = {line(name) for name in ("up", "gelu", "down", "norm", "softmax")}
    for graph in recorded.all(Graph):
        for node in graph.nodes:
            if node.op == "call_function":
                assert node.location is not None, (graph.id, node.name)
                assert node.location.line in lines


def test_backward_nodes_carry_the_forward_line(training):
    recorded, _, _ = training
    backward = by_id(recorded)["0/0/backward"]
    products = [n.location.line for n in backward.nodes if n.target == "aten.mm.default"]
    assert sorted(set(products)) == sorted({line("up"), line("down")})


def test_replaced_nodes_say_what_they_stand_for(training):
    recorded, _, _ = training
    joint = by_id(recorded)["0/0/joint"]
    replaced = [n for n in joint.nodes if n.made_by and n.inferred]
    assert replaced
    for node in replaced:
        assert node.location.line == line("softmax")
        assert "softmax" in node.origins


def test_parameters_come_from_the_captured_placeholders(training):
    recorded, _, _ = training
    joint = by_id(recorded)["0/0/joint"]
    first = next(n for n in joint.nodes if n.name == "primals_1")
    assert first.origins == ("l_self_modules_up_parameters_weight_",)
    tangent = next(n for n in joint.nodes if n.name.startswith("tangents"))
    assert tangent.origins == ()


def test_inference_is_one_graph():
    with structured_trace() as trace, record(HOOKS) as recorded, torch.no_grad():
        torch.compile(Mlp(), backend=without_codegen)(torch.randn(8, 32))
    (graph,) = recorded.all(Graph)
    assert (graph.id, graph.kind, graph.parent) == ("0/0/inference", "inference", "0/0")
    ours = [n.name for n in graph.nodes if n.op == "call_function"]
    assert ours == defined(payload(trace.events, "aot_inference_graph"))
    assert recorded.all(Partition) == []


def test_a_backward_that_is_compiled_late_has_the_id_of_its_forward():
    asked = []

    def on_graph(options):
        asked.append(
            lowering_graph_id(options.get("is_backward", False), options.get("is_inference", False))
        )

    with record((*HOOKS, passes.HOOK)) as recorded:
        compiled = torch.compile(Broken(), backend=partial(without_codegen, on_graph=on_graph))
        loss = compiled(torch.randn(4, 8))
        assert asked == ["0/0/forward", "1/0/forward"]
        loss.backward()
    assert asked[2:] == ["1/0/backward", "0/0/backward"]
    ids = [graph.id for graph in recorded.all(Graph)]
    assert ids == [f"{c}/{k}" for c in ("0/0", "1/0") for k in ("joint", "forward", "backward")]
    assert [p.compile_id for p in recorded.all(Partition)] == ["0/0", "1/0"]


def test_symbolic_sizes_have_no_bytes():
    with record(HOOKS) as recorded:
        compiled = torch.compile(Mlp(), backend=without_codegen, dynamic=True)
        compiled(torch.randn(8, 32)).sum().backward()
    (partition,) = recorded.all(Partition)
    assert partition.saved_bytes is None
    symbolic = [v for v in partition.values if v.tensor is not None and v.bytes is None]
    assert symbolic
    assert all(any(isinstance(s, str) for s in v.tensor.shape) for v in symbolic)
    assert any(v.tensor is None and v.reason.startswith("a size") for v in partition.values)


def test_a_sub_graph_is_told_from_the_whole():
    def branch(x, w):
        return torch.cond(x.sum() > 0, lambda a: (a @ w).sin(), lambda a: (a @ w).cos(), (x,))

    with record(HOOKS) as recorded:
        x, w = torch.randn(4, 4), torch.randn(4, 4, requires_grad=True)
        torch.compile(branch, backend=without_codegen)(x, w).sum().backward()
    ids = [graph.id for graph in recorded.all(Graph)]
    assert len(ids) == len(set(ids))
    assert ids[-3:] == ["0/0/joint", "0/0/forward", "0/0/backward"]
    assert all(re.fullmatch(r"0/0/sub\d+/(joint|forward|backward)", id) for id in ids[:-3])


def test_a_nested_region_keeps_its_passes_to_itself():
    @torch.compiler.nested_compile_region
    def region(x, w):
        return torch.softmax((x @ w) * 0.5, dim=-1)

    def model(x, w):
        return region(region(x, w), w).sin()

    with record((*HOOKS, passes.HOOK)) as recorded:
        x, w = (torch.randn(4, 4, requires_grad=True) for _ in range(2))
        torch.compile(model, backend=without_codegen)(x, w).sum().backward()
    assert recorded.all(Warned) == []
    kinds = [graph.id for graph in recorded.all(Graph)]
    assert kinds[0] == "0/0/sub1/joint"
    assert kinds[-1] == "0/0/backward"
    names = {g.id: {node.name for node in g.nodes} for g in recorded.all(Graph)}
    replaced = [
        c.graph for c in recorded.all(PassChange) if any(n.startswith("amax") for n in c.added)
    ]
    assert replaced[0] == "0/0/sub1/joint"
    assert "0/0/joint" not in replaced
    assert "amax_default" in names["0/0/sub1/joint"]
    assert "amax_default" not in names["0/0/joint"]


def test_a_compile_from_the_cache_says_so():
    def f(x):
        return x @ x  # a call into ATen, so that nothing has to be built

    with record((*HOOKS, cache_lookups.HOOK), caches=True) as recorded:
        x = torch.randn(4, 4, requires_grad=True)
        torch.compile(f)(x).backward(x.detach())
        before = len(recorded.all(Graph))
        torch._dynamo.reset()
        torch.compile(f)(x).backward(x.detach())
        assert len(recorded.all(Graph)) == before == 3
    verdicts = [r.verdict for r in recorded.all(CacheLookup) if r.cache == "aot autograd"]
    assert verdicts == ["miss", "hit"]


def test_a_bug_of_ours_never_reaches_the_compile(monkeypatch):
    def broken(*args, **kwargs):
        raise KeyError("ours")

    monkeypatch.setattr(autograd_graphs, "describe_graph", broken)
    with record(HOOKS) as recorded:
        x = torch.randn(8, requires_grad=True)
        torch.compile(lambda x: x.sin().sum(), backend=without_codegen)(x).backward()
    assert x.grad is not None
    (warned,) = recorded.all(Warned)
    assert "autograd graphs" in warned.message
    assert "KeyError" in warned.message


def test_everything_is_put_back():
    import torch._functorch.aot_autograd as aot_autograd
    import torch._functorch.partitioners as partitioners
    import torch._inductor.compile_fx as compile_fx

    def held():
        return (
            aot_autograd.aot_stage2_compile,
            aot_autograd.aot_module_simplified,
            compile_fx.min_cut_rematerialization_partition,
            partitioners.default_partition,
            partitioners.solve_min_cut,
            partitioners._extract_fwd_bwd_modules,
        )

    before = held()
    with record(HOOKS):
        assert not set(held()) & set(before)
    assert held() == before
