"""Merging equal operations: as many stay as with torch's own pass."""

import torch
from torch._functorch.compile_utils import fx_graph_cse
from torch.fx.experimental.proxy_tensor import make_fx

from tcw.compiler.rewrites.common_subexpressions import merge_common_subexpressions
from tcw.compiler.rewrites.subject import Subject


def traced(function, *inputs):
    return make_fx(function, tracing_mode="fake")(*inputs)


def names(graph):
    return [str(node.target) for node in graph.nodes if node.op == "call_function"]


def check(function, *inputs):
    module = traced(function, *inputs)
    wanted = names(fx_graph_cse(module.graph))
    merge_common_subexpressions(Subject(module))
    module.graph.lint()
    assert names(module.graph) == wanted
    return wanted


def test_equal_operations_become_one():
    def function(x, y):
        a = x.sin() + y.reshape(2, 3).cos()
        b = x.sin() + y.reshape(2, 3).cos()
        return a * b + x.sum((0, 1)) - x.sum((0, 1))

    assert check(function, torch.randn(2, 3), torch.randn(6)).count("aten.sin.default") == 1


def test_outputs_stay_two_tensors():
    assert check(lambda x: (x + 1, x + 1), torch.randn(3)).count("aten.add.Tensor") == 2


def test_random_numbers_are_drawn_again():
    function = lambda x: torch.rand_like(x) - torch.rand_like(x)  # noqa: E731
    assert check(function, torch.randn(3)).count("aten.rand_like.default") == 2


def test_nothing_is_merged_across_a_mutation():
    def function(x):
        a = x.sin()
        x.add_(1)
        return a + x.sin() + x.sin()

    assert check(function, torch.randn(3)).count("aten.sin.default") == 2


def test_numbers_that_python_calls_equal_differ():
    module = traced(lambda x: (x * 1 + x * 1.0) + (x / 0.0 + x / -0.0), torch.ones(3).int())
    merge_common_subexpressions(Subject(module))
    assert names(module.graph).count("aten.mul.Tensor") == 2
    assert names(module.graph).count("aten.div.Tensor") == 2


def test_an_alias_gives_way_to_what_it_is_of():
    """The cut would save both for the backward. One that is an output stays a separate tensor."""
    alias = torch.ops.aten.alias
    module = traced(lambda x: (alias(x.sin()).cos(), alias(x + 1)), torch.randn(3))
    merge_common_subexpressions(Subject(module))
    module.graph.lint()
    wanted = ["sin.default", "cos.default", "add.Tensor", "alias.default"]
    assert names(module.graph) == [f"aten.{name}" for name in wanted]
