"""FX passes: each change once, in the innermost pass, a chain from the first graph to the last."""

from __future__ import annotations

import copy
from contextlib import contextmanager

import pytest
import torch
from torch import fx
from torch.fx.passes.graph_transform_observer import GraphTransformObserver

from tcw.compiler.autograd import HOOKS as AUTOGRAD
from tcw.compiler.graphs.provenance import made_in
from tcw.compiler.graphs.text import render, same_graph, snapshot
from tcw.compiler.inductor import passes
from tcw.compiler.trace.records import PassChange, Warned
from tests.cpu.models import Mlp
from tests.cpu.recorded import Recorded, record, without_codegen


@pytest.fixture(scope="module")
def training():
    """A training step; the graph is observed before and after each stage of passes."""
    seen = []

    def on_stage(stage, module):
        seen.append((stage, render(snapshot(module.graph))))

    with record((*AUTOGRAD, passes.HOOK)) as recorded, watched_stages(on_stage):
        torch.compile(Mlp(), backend=without_codegen)(torch.randn(8, 32)).sum().backward()
    return recorded, seen


@contextmanager
def watched_stages(on_stage):
    """Observe the graph just inside our hook, before and after the stage."""
    import torch._inductor.compile_fx as compile_fx

    joint_graph_passes = compile_fx.joint_graph_passes

    def watched(graph, *args, **kwargs):
        on_stage("before", graph)
        result = joint_graph_passes(graph, *args, **kwargs)
        on_stage("after", result)
        return result

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(compile_fx, "joint_graph_passes", watched)
        yield


def test_the_changes_are_a_chain_from_the_first_graph_to_the_last(training):
    recorded, seen = training
    (_, first), (_, last) = seen
    texts = [first]
    for change in recorded.all(PassChange):
        assert recorded.text(change.before) == texts[-1]
        assert recorded.text(change.after) != texts[-1]
        texts.append(recorded.text(change.after))
    assert len(texts) > 2
    assert texts[-1] == last


def test_a_change_is_in_the_innermost_pass_and_names_its_pattern(training):
    recorded, _ = training
    (softmax,) = (c for c in recorded.all(PassChange) if "amax_default" in c.added)
    assert softmax.name == "pattern_matcher"
    assert softmax.parent.startswith("pass_pattern_")
    assert softmax.graph == "0/0/joint"
    assert "exp" not in softmax.added
    assert recorded.all(Warned) == []


def test_added_and_removed_are_the_nodes_of_the_texts(training):
    recorded, _ = training

    def names(key):
        lines = recorded.text(key).splitlines()
        return {line.split(" = ")[0].split(":")[0] for line in lines if " = " in line}

    for change in recorded.all(PassChange):
        before, after = names(change.before), names(change.after)
        assert set(change.added) == after - before
        assert set(change.removed) == before - after


def test_patterns_that_torch_registers_are_no_passes_on_the_users_graph(training):
    recorded, _ = training
    assert {change.graph for change in recorded.all(PassChange)} == {"0/0/joint"}


def small_module() -> fx.GraphModule:
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(torch.relu, (graph.call_function(torch.sin, (x,)),)))
    return fx.GraphModule({}, graph)


class Stage:
    """Runs a function as if it were Inductor's stage of passes on a graph."""

    def __init__(self, monkeypatch) -> None:
        self.monkeypatch = monkeypatch

    def run(self, module, function) -> Recorded:
        import torch._inductor.compile_fx as compile_fx

        self.monkeypatch.setattr(passes, "current_compile_id", lambda: "7/0")
        self.monkeypatch.setattr(passes, "current_graph_id", lambda: "7/0/forward")
        self.monkeypatch.setattr(
            compile_fx, "_recursive_post_grad_passes", lambda gm, is_inference=False: function(gm)
        )
        with record((passes.HOOK,)) as self.recorded:
            compile_fx._recursive_post_grad_passes(module)
        return self.recorded


@pytest.fixture
def stage(monkeypatch):
    return Stage(monkeypatch)


def rename(module: fx.GraphModule, old, new) -> None:
    for node in module.graph.nodes:
        if node.target is old:
            node.target = new


def outline(recorded: Recorded) -> list[tuple[str, str]]:
    return [(change.name, change.parent) for change in recorded.all(PassChange)]


def test_nothing_changed_nothing_recorded(stage):
    def run(module):
        with GraphTransformObserver(module, "idle", "s"):
            # writes the same argument again: no change
            node = list(module.graph.nodes)[1]
            node.args = (node.args[0],)

    assert outline(stage.run(small_module(), run)) == []


def test_changes_of_an_outer_pass_before_and_after_an_inner_one(stage):
    def run(module):
        with GraphTransformObserver(module, "outer", "s"):
            rename(module, torch.sin, torch.cos)
            with GraphTransformObserver(module, "inner"):
                rename(module, torch.relu, torch.tanh)
            rename(module, torch.cos, torch.exp)

    recorded = stage.run(small_module(), run)
    assert outline(recorded) == [
        ("outer", "post_grad_passes"),
        ("inner", "outer"),
        ("outer", "post_grad_passes"),
    ]


def test_a_change_outside_of_every_named_pass_is_the_stages(stage):
    def run(module):
        with GraphTransformObserver(module, "named"):
            pass
        rename(module, torch.sin, torch.cos)

    assert outline(stage.run(small_module(), run)) == [("post_grad_passes", "")]


def test_a_pass_on_another_graph_is_not_recorded(stage):
    def run(module):
        other = small_module()
        with GraphTransformObserver(other, "other"):
            rename(other, torch.sin, torch.cos)

    assert outline(stage.run(small_module(), run)) == []


def test_what_a_pass_replaced_is_noted(stage):
    def run(module):
        with GraphTransformObserver(module, "named"):
            _, sin, _, _ = module.graph.nodes
            with module.graph.inserting_before(sin):
                exp = module.graph.call_function(torch.exp, sin.args)
            sin.replace_all_uses_with(exp)
            module.graph.erase_node(sin)

    (change,) = stage.run(small_module(), run).all(PassChange)
    assert (change.added, change.removed) == (("exp",), ("sin",))
    made = made_in("7/0/forward")["exp"]
    assert (made.by, [old.name for old in made.instead_of]) == ("named", ["sin"])


def test_a_copy_of_the_graph_is_not_watched_and_nothing_stays(stage):
    copies = []

    def run(module):
        copies.append(copy.deepcopy(module))
        rename(copies[0], torch.sin, torch.cos)

    module = small_module()
    assert outline(stage.run(module, run)) == []
    for left in (module, *copies):
        assert left._create_node_hooks == left._replace_hooks == left._deepcopy_hooks == []


def test_a_pass_that_raises_is_recorded_and_raises(stage):
    def run(module):
        with GraphTransformObserver(module, "broken"):
            rename(module, torch.sin, torch.cos)
            raise ValueError("theirs")

    with pytest.raises(ValueError, match="theirs"):
        stage.run(small_module(), run)
    assert outline(stage.recorded) == [("broken", "post_grad_passes")]


def test_a_snapshot_stays_as_it_was():
    module = small_module()
    before = snapshot(module.graph)
    assert same_graph(before, snapshot(module.graph))
    text = render(snapshot(module.graph))
    first, second, *_ = module.graph.nodes
    second.replace_all_uses_with(first)
    module.graph.erase_node(second)
    assert render(before) == text
    assert not same_graph(before, snapshot(module.graph))


def test_text_of_a_graph():
    def f(x):
        return torch.relu(x).view(2, 2), 1

    module = fx.symbolic_trace(f)
    for node in module.graph.nodes:
        node.meta["val"] = torch.empty(4) if node.name != "view" else torch.empty(2, 2)
    assert render(snapshot(module.graph)) == (
        "x: f32[4] = placeholder\n"
        "relu: f32[4] = torch.relu(x)\n"
        "view: f32[2, 2] = relu.view(2, 2)\n"
        "return (view, 1)\n"
    )


def test_a_number_that_replaces_a_node_disturbs_nothing() -> None:
    """torch puts the value of a symbolic float in the place of what it cannot make a tensor of;
    with a hook on replacements it asks that number for its name."""

    def clamped(x, most):
        return x.clamp(max=most)

    with record((*AUTOGRAD, passes.HOOK)) as recorded:
        compiled = torch.compile(clamped, backend=without_codegen)
        for most in (2.5, 4.5, 6.5):
            compiled(torch.ones(4), most)
    assert not recorded.all(Warned)
