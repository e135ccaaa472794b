"""Which steps and operations belong together, in hand-written graphs."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.measure.regions.origins import Computes, Origins
from tcw.compiler.measure.regions.regions import PlacedStep, label, locations, regions
from tcw.compiler.trace.records import Graph, Node
from tcw.compiler.trace.records.profile import CompiledStep, EagerOperation
from tests.cpu.measure.regions.program import Program, at, node


def test_a_fused_kernel_stands_against_the_operations_of_its_lines() -> None:
    program = Program(
        [node("mul", "operator.mul", 3), node("softmax", "torch.softmax", 4)],
        [
            node("mul", "aten.mul.Tensor", 3, "mul"),
            node("amax", "aten.amax.default", 4, "softmax"),
            node("exp", "aten.exp.default", 4, "softmax"),
        ],
    )
    program.kernel("mul", "amax", "exp")
    program.eager("aten.mul.Tensor", 3)
    program.eager("aten._softmax.default", 4)
    assert program.sets() == [(["s0"], ["e0", "e1"])]
    (group,) = program.regions()
    assert label(program.origins, group) == "mul + softmax"
    assert [place.line for place in locations(group)] == [3, 4]


def test_the_lines_inside_of_a_captured_function_stand_for_themselves() -> None:
    """A custom autograd function is one captured node, at the line that calls it."""
    program = Program(
        [
            node("apply", "torch.ops.higher_order.autograd_function_apply", 12),
            node("cos", "torch.cos", 12),
        ],
        [node("exp", "aten.exp.default", 6), node("cos", "aten.cos.default", 12, "cos")],
    )
    program.kernel("exp", "cos")
    program.eager("aten.exp.default", 6)
    program.eager("aten.cos.default", 12)
    assert program.sets() == [(["s0"], ["e0", "e1"])]


def test_modules_of_a_library_stand_for_themselves_where_no_line_is_known() -> None:
    program = Program(
        [
            node("conv", "torch.conv2d", None, module="0"),
            node("act", "torch.nn.functional.silu", None, module="1"),
            node("last", "torch.conv2d", None, module="2"),
        ],
        [
            node("convolution", "aten.convolution.default", None, "conv", module="0"),
            node("silu", "aten.silu.default", None, "act", module="1"),
            node("convolution_1", "aten.convolution.default", None, "last", module="2"),
        ],
    )
    for one in ("convolution", "silu", "convolution_1"):
        program.kernel(one)
    program.eager("aten.convolution.default", None, "0")
    program.eager("aten.silu.default", None, "1")
    program.eager("aten.convolution.default", None, "2")
    assert program.sets() == [(["s0"], ["e0"]), (["s1"], ["e1"]), (["s2"], ["e2"])]


def test_a_module_of_a_library_by_itself() -> None:
    program = Program(
        [node("norm", "torch.layer_norm", None)],
        [node("var_mean", "aten.var_mean.correction", None, "norm")],
    )
    program.kernel("var_mean")
    program.eager("aten.native_layer_norm.default", None)
    assert program.sets() == [(["s0"], ["e0"])]


def test_an_attention_that_capture_took_apart_stands_against_one_call() -> None:
    program = Program(
        [node("mixed", "torch.nn.functional.scaled_dot_product_attention", 7)],
        [
            node("bmm", "aten.bmm.default", 7, "mixed"),
            node("exp", "aten.exp.default", 7, "mixed"),
            node("bmm_1", "aten.bmm.default", 7, "mixed"),
        ],
    )
    for one in ("bmm", "exp", "bmm_1"):
        program.kernel(one)
    program.eager("aten._scaled_dot_product_flash_attention.default", 7)
    assert program.sets() == [(["s0", "s1", "s2"], ["e0"])]
    assert label(program.origins, program.regions()[0]) == "attention"


def test_calls_of_one_line_are_told_apart_where_both_sides_make_the_same() -> None:
    """`x + down(gelu(up(x)))`: the add goes into the norm of the next line."""
    program = Program(
        [
            node("gelu", "torch.nn.functional.gelu", 26),
            node("add", "operator.add", 26),
            node("norm", "torch.nn.functional.layer_norm", 27),
        ],
        [
            node("erf", "aten.erf.default", 26, "gelu"),
            node("add", "aten.add.Tensor", 26, "add"),
            node("var_mean", "aten.var_mean.correction", 27, "norm"),
        ],
    )
    program.kernel("erf")
    program.kernel("add", "var_mean")
    program.eager("aten.gelu.default", 26)
    program.eager("aten.add.Tensor", 26)
    program.eager("aten.native_layer_norm.default", 27)
    assert program.sets() == [(["s0"], ["e0"]), (["s1"], ["e1", "e2"])]


def test_a_line_that_cannot_be_lined_up_is_one() -> None:
    program = Program(
        [node("a", "mylibrary.strange", 5), node("b", "operator.add", 5)],
        [node("x", "aten.mul.Tensor", 5, "a"), node("y", "aten.add.Tensor", 5, "b")],
    )
    program.kernel("x")
    program.kernel("y")
    program.eager("aten.mul.Tensor", 5)
    program.eager("aten.sub.Tensor", 5)
    program.eager("aten.add.Tensor", 5)
    assert program.sets() == [(["s0", "s1"], ["e0", "e1", "e2"])]


def test_a_line_compiled_for_several_sizes_is_one() -> None:
    """One block ran with the graph of the first size, three with that of the second: which of
    eager's products is whose is unknown."""
    captured, lowered = [node("linear", "F.linear", 3)], [node("addmm", "aten.addmm", 3, "linear")]
    program = Program(captured, lowered)
    program.kernel("addmm")
    for kind, id in (("captured", "0/1"), ("lowered", "0/1/forward/lowered")):
        program.records.append(
            Graph(
                id=id,
                kind=kind,
                compile_id="0/1",
                nodes=tuple(captured if kind == "captured" else lowered),
                parent="0/1" if kind == "lowered" else "",
            )
        )
    program.kernels.append(
        msgspec.structs.replace(program.kernels[0], id="k1", graph="0/1/forward/lowered")
    )
    for _ in range(4):
        program.eager("aten.addmm.default", 3)
    (region,) = program.regions(["0/0", "0/1"])
    assert (len(region.steps), len(region.operations)) == (2, 4)


def test_a_copy_that_nobody_wrote_has_the_line_of_the_library_call_it_is_made_for() -> None:
    program = Program(
        [node("conv2d", "torch.conv2d", 3), node("add", "operator.add", 4)],
        [
            node("x", "x", None),
            node("clone_default", "aten.clone.default", None, inputs=["x"]),
            node("convolution", "aten.convolution.default", 3, "conv2d", inputs=["clone_default"]),
            node("add", "aten.add.Tensor", 4, "add", inputs=["convolution", "clone_default"]),
            node("relu", "aten.relu.default", 5, "add", inputs=["x"]),
        ],
    )
    program.kernel("clone_default")
    program.kernel("convolution", language="aten")
    program.kernel("add")
    program.kernel("x")
    lines = {
        group.steps[0].step.id: [place.line for place in locations(group)]
        for group in program.regions()
    }
    assert (lines["s0"], lines["s3"]) == ([3], [5])


def test_what_is_computed_again_glues_no_layers_together() -> None:
    """Each norm's kernel computes the residual sums of all earlier layers again."""
    captured, lowered = [], []
    for layer in range(4):
        captured += [
            node(f"add_{layer}", "operator.add", 10, module=f"layers.{layer}"),
            node(f"norm_{layer}", "torch.nn.functional.layer_norm", 11, module=f"layers.{layer}"),
        ]
        lowered += [
            node(f"add_{layer}", "aten.add.Tensor", 10, f"add_{layer}"),
            node(f"var_{layer}", "aten.var_mean.correction", 11, f"norm_{layer}"),
        ]
    program = Program(captured, lowered)
    for layer in range(4):
        program.kernel(*(f"add_{before}" for before in range(layer + 1)), f"var_{layer}")
        program.eager("aten.add.Tensor", 10, f"layers.{layer}")
        program.eager("aten.native_layer_norm.default", 11, f"layers.{layer}")
    assert program.sets() == [([f"s{n}"], [f"e{2 * n}", f"e{2 * n + 1}"]) for n in range(4)]


def test_a_shared_constant_or_view_joins_nothing() -> None:
    program = Program(
        [
            node("mask", "torch.full", 2),
            node("view", "view", 3),
            node("a", "operator.add", 4),
            node("b", "operator.mul", 5),
        ],
        [
            node("full", "aten.full.default", 2, "mask"),
            node("view", "aten.view.default", 3, "view"),
            node("add", "aten.add.Tensor", 4, "a"),
            node("mul", "aten.mul.Tensor", 5, "b"),
        ],
    )
    program.kernel("full", "view", "add")
    program.kernel("full", "view", "mul")
    program.eager("aten.full.default", 2)
    program.eager("aten.view.default", 3, launches=0)
    program.eager("aten.add.Tensor", 4)
    program.eager("aten.mul.Tensor", 5)
    assert program.sets() == [([], ["e0"]), ([], ["e1"]), (["s0"], ["e2"]), (["s1"], ["e3"])]


def test_the_products_of_a_linear_backward_are_pairs() -> None:
    """The bias's gradient is computed in another kernel, and a sum of gradients that torch
    attributes to the wrong call joins nothing."""
    program = Program(
        [
            node("linear", "torch.nn.functional.linear", 8),
            node("norm", "torch.nn.functional.layer_norm", 9),
        ],
        [
            node("mm", "aten.mm.default", 8, "linear"),
            node("mm_1", "mkldnn._linear_pointwise.default", 8, "linear"),
            node("sum_1", "aten.sum.dim_IntList", 8, "linear"),
            node("add", "aten.add.Tensor", 8, "linear"),
            node("mul", "aten.mul.Tensor", 9, "norm"),
            node("mul_1", "aten.mul.Tensor", 9, "norm"),
        ],
        backward=True,
    )
    program.kernel("mm")
    program.kernel("mm_1")
    program.kernel("sum_1", "mul")
    program.kernel("add", "mul_1")
    linear = program.eager("aten.addmm.default", 8, phase="forward")
    norm = program.eager("aten.native_layer_norm.default", 9, phase="forward")
    for operation in ("aten.mm.default", "aten.mm.default", "aten.sum.dim_IntList"):
        program.eager(operation, 8, of=linear)
    program.eager("aten.native_layer_norm_backward.default", 9, of=norm)
    found = program.sets()
    assert found[:2] == [([], ["e0"]), ([], ["e1"])]
    assert found[2:4] == [(["s0"], ["e2"]), (["s1"], ["e3"])]
    assert found[4] == (["s2", "s3"], ["e4", "e5"])


def test_a_sum_of_gradients_stands_against_eagers() -> None:
    """torch gives it a line and no module; eager adds at the summand that comes last."""
    program = Program(
        [node(f"linear_{n}", "torch.nn.functional.linear", 8, module=f"m.{n}") for n in range(2)],
        [
            node("mm", "aten.mm.default", 8, "linear_1", module="m.1"),
            node("mm_1", "aten.mm.default", 8, "linear_0", module="m.0"),
            node("view", "aten.view.default", 8, module="m.0"),
            node("add", "aten.add.Tensor", 8, inputs=("mm", "view")),
        ],
        backward=True,
    )
    for name in ("mm", "mm_1", "add"):
        program.kernel(name)
    forward = [program.eager("aten.addmm.default", 8, f"m.{n}", phase="forward") for n in range(2)]
    program.eager("aten.mm.default", 8, "m.1", of=forward[1])
    program.eager("aten.mm.default", 8, "m.0", of=forward[0])
    program.eager("aten.add.Tensor", 8, "m.0", of=forward[0])
    assert program.sets()[2:] == [(["s0"], ["e2"]), (["s1"], ["e3"]), (["s2"], ["e4"])]


def test_each_part_of_a_scatter_stands_against_it() -> None:
    """The first kernel fills the result, the second adds to it."""
    program = Program(
        [node("embedding", "torch.nn.functional.embedding", 8)],
        [node("scatter", "aten.embedding_dense_backward.default", 8, "embedding")],
        backward=True,
    )
    for part in range(2):
        program.kernel("scatter", nodes=(f"op{part}",))
    forward = program.eager("aten.embedding.default", 8, phase="forward")
    program.eager("aten.embedding_dense_backward.default", 8, of=forward)
    assert program.sets()[1:] == [(["s0", "s1"], ["e1"])]


def test_what_is_left_of_a_call_of_the_forward_is_a_part_of_it() -> None:
    """`x[1:] = y.clone()` copies twice in eager; a graph has a scatter besides."""
    program = Program(
        [node("setitem", "operator.setitem", 8)],
        [
            node("clone", "aten.clone.default", 8, "setitem"),
            node("copy", "aten.copy.default", 8, "setitem"),
            node("slice_scatter", "aten.slice_scatter.default", 8, "setitem"),
        ],
    )
    program.kernel("clone", "copy")
    program.kernel("slice_scatter")
    program.eager("aten.clone.default", 8)
    program.eager("aten.copy_.default", 8)
    assert program.sets() == [(["s0", "s1"], ["e0", "e1"])]


def test_what_only_one_side_does_stands_alone() -> None:
    program = Program(
        [node("conv", "torch.conv2d", 6)],
        [
            node("conv", "aten.convolution.default", 6, "conv"),
            Node(name="layout", op="call_function", target="aten.clone.default"),
        ],
    )
    program.kernel("layout")
    program.kernel("conv")
    program.eager("aten.convolution.default", 6)
    program.eager("aten.dropout.default", 12)
    assert program.sets() == [(["s1"], ["e0"]), ([], ["e1"]), (["s0"], [])]


def test_instances_of_a_module_are_kept_apart() -> None:
    program = Program(
        [node(f"relu_{n}", "torch.relu", 4, module=f"blocks.{n}") for n in range(3)],
        [node(f"relu_{n}", "aten.relu.default", 4, f"relu_{n}") for n in range(3)],
    )
    for number in range(3):
        program.kernel(f"relu_{number}")
        program.eager("aten.relu.default", 4, f"blocks.{number}")
    assert program.sets() == [([f"s{n}"], [f"e{n}"]) for n in range(3)]


LINES = st.integers(1, 4)


@given(
    st.lists(LINES, min_size=1, max_size=12),
    st.lists(st.tuples(LINES, st.booleans()), max_size=12),
    st.randoms(use_true_random=False),
)
def test_each_step_and_operation_is_in_one_region(calls, running, chance) -> None:
    captured = [node(f"n{i}", "operator.add", line) for i, line in enumerate(calls)]
    lowered = [node(f"n{i}", "aten.add.Tensor", line, f"n{i}") for i, line in enumerate(calls)]
    program = Program(captured, lowered)
    for _ in range(6):
        chosen = chance.sample(range(len(calls)), chance.randint(1, len(calls)))
        program.kernel(*(f"n{i}" for i in chosen))
    for line, view in running:
        program.eager("aten.view.default" if view else "aten.add.Tensor", line, launches=not view)
    found = program.sets()
    assert sorted(id for steps, _ in found for id in steps) == [f"s{n}" for n in range(6)]
    operations = sorted(id for _, operations in found for id in operations)
    assert operations == sorted(operation.id for operation in program.operations)


def test_views_outside_of_all_graphs_are_those_of_eager() -> None:
    origins = Origins([])
    view = EagerOperation(id="e0", call=1, operation="aten.t.default", location=at(3), launches=0)
    step = CompiledStep(id="s0", call=1, kind="eager", name="aten.t", part="model", launches=0)
    (group,) = regions(origins, [PlacedStep(step, Computes())], [view], [])
    assert [operation.id for operation in group.operations] == ["e0"]
    assert [one.step.id for one in group.steps] == ["s0"]


def test_the_backward_of_a_custom_function_is_that_of_its_forward() -> None:
    """Its lines are in no captured graph, and no operation of the forward runs on them."""
    for origins in ((), ("linear",)):  # torch may name what was captured last
        program = Program(
            [
                node("apply", "torch.ops.higher_order.autograd_function_apply", 9),
                node("linear", "torch.nn.functional.linear", 10),
            ],
            [node("clamp", "aten.clamp.default", 23, *origins, module="a")],
            backward=True,
        )
        program.kernel("clamp")
        forward = program.eager("aten.sign.default", 19, "a", phase="forward")
        program.eager("aten.clamp.default", 23, "a", of=forward)
        assert (["s0"], ["e1"]) in program.sets()


def test_what_python_runs_of_a_line_that_a_graph_holds_in_part() -> None:
    """`print(float(x.norm()))`: the norm is captured, and a break leaves the rest to Python."""
    program = Program([node("norm", "operator.norm", 10)], [])
    program.eager("aten.norm.default", 10)
    program.eager("aten._local_scalar_dense.default", 10)
    origins = Origins(program.records)
    step = CompiledStep(id="s0", call=1, kind="eager", name="aten._local_scalar_dense")
    (group,) = regions(origins, [PlacedStep(step, Computes())], program.operations, ["0/0"])
    assert [operation.id for operation in group.operations] == ["e0", "e1"]
    assert [one.step.id for one in group.steps] == ["s0"]
