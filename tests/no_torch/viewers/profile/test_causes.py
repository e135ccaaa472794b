from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import (
    AnyRecord,
    Decided,
    EagerOperation,
    Graph,
    KernelNests,
    KernelPrecision,
    LoopLine,
    Lowered,
    NestLoops,
    NestTime,
    Node,
    Partition,
    Recompile,
    Region,
    SavedValue,
    SchedulerNode,
    TensorMeta,
    Text,
)
from tcw.viewers.recording import Recording
from tcw.viewers.summary.code_faults import REALIZE
from tcw.viewers.summary.profile import profile_of
from tcw.viewers.summary.profile.causes.cause import Cause
from tcw.viewers.summary.profile.causes.step_words import bare, counted, named, split_arguments
from tests.inductor_loops import nest_in
from tests.no_torch import profiles
from tests.no_torch.profile_building import (
    FILE,
    Call,
    at,
    attention_node,
    captured,
    mask_nodes,
    timed,
)
from tests.no_torch.viewers.profile.conftest import cause, profiled

FIRST = {
    "block_profile": ("slower", 29),
    "masked_attention": ("attention", 21),
    "graph_break": ("break", 27),
    "float_argument": ("recompile", 24),
    "bert_on_a_gpu": ("attention", 96),
    "training": ("recomputed", 21),
    "layout_copies": ("copies", 16),
    "host_bound": ("host", None),
    "spilled": ("spill", 25),
    "one_thread": ("threads", 25),
    "fallback": ("fallback", 25),
    "wrong_kernel": ("precision", 16),
    "modes": ("slower", 29),
    "trials": ("slower", 29),
}


@pytest.mark.parametrize("name", profiles.EVERY)
def test_the_first_cause_and_its_line(name: str) -> None:
    one = profiled(profiles.EVERY[name]())
    first = one.causes[0]
    assert (first.kind, first.place.line if first.place else None) == FIRST[name]
    assert one.verdict.cause == first.title
    assert one.verdict.place == first.place


@pytest.mark.parametrize("name", profiles.EVERY)
def test_each_region_is_told_once(name: str) -> None:
    one = profiled(profiles.EVERY[name]())
    told = [region for cause in one.causes if cause.kind != "break" for region in cause.regions]
    assert len(told) == len(set(told))
    outside = {region.id for row in one.rows if row.standing != "noise" for region in row.regions}
    assert set(told) <= outside
    lost = [cause.seconds for cause in one.causes if cause.lost and cause.kind != "precision"]
    assert lost == sorted(lost, reverse=True)


def test_an_attention_that_was_taken_apart() -> None:
    found = cause(profiles.masked_attention(), "attention")
    assert found.title == (
        "fused attention became 2 products and a softmax, "
        "for the mask of keep that exists only under capture"
    )
    assert found.seconds == pytest.approx((1020 - 216.3 + 38) * 1e-6)
    assert any("line 20" in note and "attn_mask=expand" in note for note in found.notes)
    assert [suggestion.options for suggestion in found.suggestions] == [
        ("--edit", "no-mask:21"),
        ("--edit", "causal:21"),
        ("--engine", "tcw"),
    ]


def test_an_attention_of_every_layer_of_a_model_on_a_gpu() -> None:
    one = profiled(profiles.bert_on_a_gpu())
    found = one.causes[0]
    assert found.title.startswith("12 fused attentions became 24 products and 12 softmaxes")
    assert "attention_mask" in found.title
    assert found.seconds == pytest.approx(2472e-6, rel=0.01)
    assert any("extern_kernels.bmm ×24" in note for note in found.notes)
    assert any("line 318 of masking_utils.py" in note for note in found.notes)


def test_an_attention_whose_mask_eager_has_too() -> None:
    records: list[AnyRecord] = []
    for one in profiles.masked_attention():
        if isinstance(one, EagerOperation) and "attention" in one.operation:
            one = structs.replace(one, arguments=one.arguments + ", attn_mask=f32[4, 1, 128, 128]")
        records.append(one)
    found = cause(records, "attention")
    assert found.title == "fused attention became 2 products and a softmax"
    assert not found.fixes


def test_an_attention_that_stays_one_call_but_reads_a_mask() -> None:
    records: list[AnyRecord] = []
    for one in profiles.block_profile():
        if isinstance(one, Graph):
            one = captured(*mask_nodes(), attention_node())
        if isinstance(one, Region) and one.label == "attention":
            one = structs.replace(one, difference=90e-6)
        records.append(one)
    found = cause(records, "attention")
    assert found.title == (
        "fused attention is called with a mask, the mask of keep that exists only under capture"
    )


def test_a_mask_is_not_made_from_what_lends_it_its_sizes() -> None:
    placeholder, getitem, expand = mask_nodes()
    x = structs.replace(placeholder, name="l_x_", target="L_x_")
    like = structs.replace(getitem, name="zeros", target="torch.zeros_like", inputs=("l_x_",))
    fill = structs.replace(expand, inputs=("zeros", "getitem_3"))
    graph = captured(x, placeholder, getitem, like, fill, attention_node())
    records = [graph if isinstance(one, Graph) else one for one in profiles.masked_attention()]
    assert "the mask of keep" in cause(records, "attention").title


def test_an_attention_without_a_mask() -> None:
    graph = captured(*mask_nodes(), attention_node(""))
    records = [graph if isinstance(one, Graph) else one for one in profiles.masked_attention()]
    assert cause(records, "attention").title == "fused attention became 2 products and a softmax"


def test_a_mask_of_three_dimensions_is_told_to_get_a_fourth() -> None:
    def three(node: Node) -> Node:
        if node.name != "expand" or node.value is None:
            return node
        value = structs.replace(node.value, shape=(8, 128, 128))
        made: Node = structs.replace(node, value=value)
        return made

    records = [
        structs.replace(one, nodes=tuple(map(three, one.nodes))) if isinstance(one, Graph) else one
        for one in profiles.masked_attention()
    ]
    found = cause(records, "attention")
    assert "attn_mask=mask[None]" in [fix.code for fix in found.fixes]


def test_a_fused_attention_on_both_sides_is_no_cause() -> None:
    kinds = [one.kind for one in profiled(profiles.block_profile()).causes]
    assert "attention" not in kinds


def test_a_break_costs_its_traffic_and_its_graph() -> None:
    found = cause(profiles.graph_break(), "break")
    assert found.estimated
    host = (22.0 + 21.0 + 74.0) * 1e-6 / 2
    assert found.seconds == pytest.approx(host + (1 << 20) / 1.6e11)
    assert found.fixes[0].code == "h = h.clamp(-8, 8)"
    assert any("1.0 MB" in note for note in found.notes)


def test_a_float_that_changes_each_call() -> None:
    found = cause(profiles.float_argument(), "recompile")
    assert found.once
    assert found.seconds == pytest.approx(5.7)
    assert (
        found.title == "each call recompiles for a different temperature: 1.0 → 1.25 → 1.5 → 1.75"
    )
    assert any("as long as" in note for note in found.notes)


def test_a_number_that_math_needs_is_told_to_stay_a_tensor() -> None:
    line = "def forward(self, x, keep, temperature=1.0):"
    records = [
        structs.replace(one, body=one.body.replace(line, "h = x * math.exp(-temperature)"))
        if isinstance(one, Text)
        else one
        for one in profiles.float_argument()
    ]
    fix = cause(records, "recompile").fixes[0]
    assert fix.code == "h = x * torch.exp(-temperature)"
    assert "temperature as a tensor" in fix.text


def test_one_recompile_is_no_recompile_in_each_call() -> None:
    found = cause(profiles.float_argument(calls=2), "recompile")
    assert found.title == "call 2 recompiled forward: temperature 1.0 → 1.25"


def test_dynamic_sizes_are_tried_only_where_a_number_changed() -> None:
    number = profiles.float_argument(calls=2)
    assert ("--dynamic",) in [
        suggestion.options for suggestion in cause(number, "recompile").suggestions
    ]
    values = {"expected": "function first (m.py:3)", "seen": "function second (m.py:7)"}
    function = [
        structs.replace(one, failed=tuple(structs.replace(f, **values) for f in one.failed))
        if isinstance(one, Recompile)
        else one
        for one in number
    ]
    assert ("--dynamic",) not in [
        suggestion.options for suggestion in cause(function, "recompile").suggestions
    ]


def test_a_loop_that_uses_no_vectors_has_its_time() -> None:
    call = Call()
    step = call.kernel("cpp_fused_sin", "sin", [24], 90.0, ("sin",))
    ran = call.operation("aten.sin.default", 24, 9.0)
    call.region("sin", [step], [ran], 1.0)
    graph = call.kernels[0].graph
    node = SchedulerNode(
        graph=graph, name="op0", kind="pointwise", origins=("sin",), label="sin",
        nest=nest_in("for p0 in 65536:\n  load = load(x, 4*p0)\n"),
    )  # fmt: skip
    scalar = Decided(
        id="tcw/0/0/inference/vector/sin", graph=base_graph(graph), kind="vector", default="1",
        choice="1", reason="whose elements lie apart",
    )  # fmt: skip
    times = KernelNests(graph=graph, kernel="k0", call=1, nests=(NestTime(line=3, time=timed(70)),))
    call.kernels[0] = structs.replace(call.kernels[0], nodes=("op0",), loops=(3,))
    found = cause(call.done(before=[captured(), node, scalar, times]), "loops")
    assert found.title.endswith("whose elements lie apart: 70.0 µs")


def test_what_is_computed_again_can_be_kept() -> None:
    call = Call()
    step = call.kernel("cpp_fused_sin", "sin", [24], 90.0, ("sin",))
    ran = call.operation("aten.sin.default", 24, 9.0)
    call.region("sin", [step], [ran], 1.0)
    graph = call.kernels[0].graph
    sin = LoopLine(depth=1, result="sin", operation="sin", arguments=("load",), node="sin")
    loops = (*nest_in("for p0 in 65536:\n  load = load(x, p0)\n"), sin)
    nests = (NestLoops(nodes=("op0",), lines=loops), NestLoops(nodes=("op1",), lines=loops))
    call.kernels[0] = structs.replace(call.kernels[0], nests=nests)
    meta = TensorMeta(shape=(65536,), dtype="float32")
    node = Node(name="sin", op="call_function", target="aten.sin.default", value=meta)
    lowered = Graph(id=graph, kind="lowered", compile_id="0/0", nodes=(node,))
    found = cause(call.done(before=[captured(), lowered]), "loops")
    assert found.title.startswith("sin is computed 2 times ")
    (kept,) = (one for one in found.suggestions if one.options[0] == "--set")
    assert kept.options[1] == REALIZE


def test_a_decision_can_be_overridden() -> None:
    found = cause(profiles.one_thread(), "threads")
    override = "tcw/0/0/inference/threads/cumsum=parallel"
    assert [suggestion.options for suggestion in found.suggestions] == [("--override", override)]


def test_a_fusion_in_a_lost_kernel_can_be_taken_back() -> None:
    decided = Decided(
        id="tcw/0/0/inference/fuse/mul+erf",
        graph="0/0/inference",
        kind="fuse",
        default="fuse",
        choice="fuse",
        choices=("fuse", "apart"),
    )
    elsewhere = structs.replace(decided, id="tcw/0/0/inference/fuse/mul+gather")
    found = cause([*profiles.block_profile(), decided, elsewhere], "slower")
    asked = [
        suggestion.options for suggestion in found.suggestions if "--override" in suggestion.options
    ]
    assert asked == [("--override", "tcw/0/0/inference/fuse/mul+erf=apart")]


def test_a_won_region_says_what_it_saves() -> None:
    found = cause(profiles.block_profile(), "fused")
    assert found.title == "q k v copies: 3 eager operations became 1 kernel"
    assert found.notes[0] == "2.0 MB less moved (3.0 MB → 1.0 MB)"


def test_a_region_that_only_capture_has() -> None:
    """Without its attention's loss the mask stands for itself."""
    records = [
        structs.replace(one, difference=0.0)
        if isinstance(one, Region) and one.label == "attention"
        else one
        for one in profiles.masked_attention()
    ]
    assert cause(records, "capture").title == "expand, where exists only under capture"


def test_an_operator_of_another_library_stays_a_call_on_its_own_line() -> None:
    call = Call()
    first = call.kernel("nest_sin", "sin", [24], 20.0, ("sin",))
    own = call.kernel("users.inc.default", "inc", [25], 60.0, ("inc",), "aten")
    ran = [
        call.operation("aten.sin.default", 24, 9.0),
        call.operation("users.inc.default", 25, 9.0),
    ]
    call.region("sin + inc", [first, own], ran, 1.0)
    kept = Lowered(
        graph=call.lowered,
        node="inc",
        target="torch.ops.higher_order.auto_functionalized_v2",
        ir="Store, Call",
        fallback="no lowering for users.inc.default",
    )
    found = cause([*call.done(), kept], "fallback")
    assert found.title == "inc stays a call: no lowering for users.inc.default"
    assert found.place is not None
    assert found.place.line == 25


def test_the_host_takes_no_more_than_the_call() -> None:
    call = Call()
    call.region("gelu", [call.kernel("nest_gelu", "gelu", [25], 1.0, ("gelu",))], [], 1.0)
    host = (("dispatch", 500.0, "wrappers"),)
    found = cause(call.done(host=host, rest=-400.0), "host")
    assert found.title == "the host takes 100% of the call, for 1 launch of 1.00 µs"


def test_a_break_that_leaves_all_to_python_is_a_loss() -> None:
    assert Cause(kind="break", title="", seconds=0.0).lost


def test_the_same_call_is_called_so() -> None:
    call = Call()
    steps = [call.kernel("aten.topk.default", "topk", [25], 60.0, ("topk",), "aten")]
    call.region("topk", steps, [call.operation("aten.topk.default", 25, 20.0)], 1.0)
    assert cause(call.done(), "slower").title == "topk is slower compiled: the same call"


def test_views_that_both_sides_make_are_the_same_calls() -> None:
    """Of gradients that autograd adds to parameters."""
    call = Call(phase="backward")
    more = {"phase": "backward", "part": "gradients", "launches": 0}
    ours = [call.between("aten.detach", 3.0, **more) for _ in range(2)]
    theirs = [call.operation("aten.detach.default", 0, 1.0, **more) for _ in range(2)]
    call.region("gradients: detach", ours, theirs, 0.1, phase="backward")
    found = cause(call.done(), "slower")
    assert (
        found.title == "gradients: detach is slower compiled: the same 2 calls, outside all graphs"
    )


def test_what_eager_calls_as_well_is_no_fallback() -> None:
    call = Call()
    steps = [
        call.kernel("torch.ops.aten.cumsum.default", "cumsum", [25], 60.0, ("cumsum",), "aten")
    ]
    call.region("cumsum", steps, [call.operation("aten.cumsum.default", 25, 20.0)], 1.0)
    lowered = Lowered(
        graph=call.lowered, node="cumsum", target="aten.cumsum", ir="Call", fallback="no lowering"
    )
    records = call.done(before=[captured(), lowered])
    assert [one.kind for one in profiled(records).causes] == ["slower"]


def test_the_same_call_on_other_strides_says_which() -> None:
    call = Call()
    theirs = TensorMeta(shape=(8, 16, 4, 1), stride=(64, 1, 16, 16), dtype="float32")
    ours = structs.replace(theirs, stride=(64, 4, 1, 1))
    pool = Node(name="pool", op="call_function", target="aten.pool.default", inputs=("relu",))
    relu = Node(name="relu", op="call_function", target="aten.relu.default", value=ours)
    graph = Graph(id=call.lowered, kind="lowered", compile_id="0/0", nodes=(relu, pool))
    steps = [call.kernel("aten.pool.default", "pool", [25], 60.0, ("pool",), "aten")]
    one = call.operation("aten.pool.default", 25, 20.0, inputs=(theirs,))
    call.region("pool", steps, [one], 1.0)
    assert (
        "pool reads [8, 16, 4, 1] with strides (64, 4, 1, 1), in eager with (64, 1, 16, 16)"
        in cause(call.done(before=[graph]), "slower").notes
    )


@pytest.mark.parametrize("target", ["aten.view.default", "aten.full.default"])
def test_the_backward_of_a_line_that_computes_something_again_elsewhere(target: str) -> None:
    """A line of several calls: the pool's backward computes nothing again (a view of it, or a
    constant, is nothing), the norm's does."""
    call = Call(phase="backward")
    more = {"kernel_graph": "0/0/backward/lowered", "graph": "0/0/backward", "phase": "backward"}
    for name, kernel, us in (("pool", "aten.pool.default", 60.0), ("norm", "nest_norm", 50.0)):
        language = "aten" if name == "pool" else "cpp"
        origins = (name,) if name == "pool" else (name, "to_copy_3")
        step = call.kernel(kernel, name, [13], us, origins, language, **more)
        one = call.operation(f"aten.{name}.default", 13, 20.0, phase="backward")
        call.region(f"{name} backward", [step], [one], 1.0, phase="backward")
    again = SavedValue(node="to_copy_3", choice="recomputed", bytes=8, location=at(13))
    a_view = structs.replace(again, node="pool")
    split = Partition(
        compile_id="0/0", joint="0/0/joint", forward="0/0/forward", backward="0/0/backward",
        values=(again, a_view),
    )  # fmt: skip
    cheap = Node(name="pool", op="call_function", target=target)
    norm = Node(name="to_copy_3", op="call_function", target="aten.copy", inputs=("x",))
    graph = Graph(id="0/0/backward", kind="backward", compile_id="0/0", nodes=(cheap, norm))
    records = call.done(before=[graph, split])
    found = {one.title.split(" ")[0]: one for one in profiled(records).causes}
    assert {name: one.kind for name, one in found.items()} == {
        "pool": "slower",
        "the": "recomputed",
    }


def test_words() -> None:
    assert bare("torch.ops.aten.sort.stable") == "sort"
    assert bare("extern_kernels.bmm") == "bmm"
    assert bare("cpp_fused_0") == "cpp_fused_0"
    assert bare("torchvision.nms.default") == bare("torch.ops.torchvision.nms") == "nms"
    assert counted(["product", "softmax", "product", "copy", "copy", "attention call"]) == (
        "2 products, a softmax, 2 copies and an attention call"
    )
    assert named(["a_1", "a_2", "b"]) == "a_* ×2, b"
    assert split_arguments("f32[4, 8], None, dim=-1") == (["f32[4, 8]", "None"], {"dim": "-1"})
    assert split_arguments("") == ([], {})


def test_a_wrong_kernel_says_whose_error_it_may_be() -> None:
    words = "it reads what k1 made, which could not be compared by itself"
    records = [
        structs.replace(one, reason=words)
        if isinstance(one, KernelPrecision) and one.within is False
        else one
        for one in profiles.EVERY["wrong_kernel"]()
    ]
    assert words in cause(records, "precision").notes


def test_where_no_trace_is_kept_it_is_said_how_to_keep_one() -> None:
    records = profiles.EVERY["wrong_kernel"]()
    (fix,) = profiled(records).causes[0].fixes
    again, repro = fix.code.splitlines()
    assert again == f"tcw profile {FILE} --no-grad --verify --trace run.tcw"
    assert repro == "tcw repro run.tcw --kernel k2"
    kept = profile_of(Recording(records, file=Path("/tmp/my run.tcw")))
    assert kept is not None
    assert kept.causes[0].fixes[0].code == "tcw repro '/tmp/my run.tcw' --kernel k2"
