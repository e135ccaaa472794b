"""Synthetic traces with a profile: each plausible, each with one thing to find.

`block_profile()` is a transformer block on a CPU that wins, loses and is in the noise in places;
the others carry one cause each. The times are made up; what stands for what is as in real runs.
"""

from __future__ import annotations

from typing import Any

from msgspec import structs

from tcw.compiler.trace.records import (
    Account,
    Advice,
    AnyRecord,
    Argument,
    CallEnd,
    CallProfile,
    CallStart,
    CallTimeline,
    CompiledStep,
    Crossing,
    Decided,
    EagerOperation,
    FailedGuard,
    FrameEnd,
    FrameStart,
    Graph,
    GraphBreak,
    KernelBinary,
    KernelPrecision,
    Lowered,
    ModeRow,
    OutputPrecision,
    Partition,
    Recompile,
    Region,
    SavedValue,
    Settings,
    Text,
    Trial,
)
from tcw.compiler.trace.writer import text_hash
from tests.no_torch.profile_building import (
    FILE,
    GRAPH,
    LOWERED,
    Call,
    X,
    at,
    attention_node,
    captured,
    ceilings,
    mask_nodes,
    meta,
    timed,
)
from tests.no_torch.profiles_on_a_gpu import LAYERS, bert_on_a_gpu

FLASH = "aten._scaled_dot_product_flash_attention_for_cpu.default"


def _block(call: Call, temperature: bool = True) -> None:
    """The regions that a block has beside its attention."""
    text = (
        "for (…) {\n  mean += x;\n  var += x * x;\n}\nfor (…)\n  out = (x - mean) * rsqrt(var);\n"
    )
    product = {"flops": 2 * 512 * 256 * 768}
    one = call.operation("aten.native_layer_norm.default", 25, 45.8, module="norm_1", launches=1)
    norm = call.kernel(
        "cpp_fused_native_layer_norm_0", "native_layer_norm", [25], 26.5, ("sub", "mul"), text=text,
        lines_of=((2, 25), (6, 25)),
    )  # fmt: skip
    call.region("layer norm", [norm], [one], 3.0, ("norm_1",))
    one = call.operation("aten.addmm.default", 16, 402.0, module="qkv", **product)
    step = call.kernel("extern_kernels.addmm", "addmm qkv", [16], 405.0, language="aten", **product)
    call.region("addmm qkv", [step], [one], 14.0, ("qkv",))
    copies = [call.operation("aten.clone.default", 16, 35.9, module="") for _ in range(3)]
    step = call.kernel("cpp_fused_clone_1", "permute, clone", [16], 45.2, ("clone",))
    call.region("q k v copies", [step], copies, 13.5)
    ops = [
        call.operation("aten.mul.Tensor", 25, 11.0),
        call.operation("aten.add.Tensor", 25, 12.8),
        call.operation("aten.native_layer_norm.default", 26, 46.0, module="norm_2"),
        call.operation("aten.abs.default", 27, 9.0),
        call.operation("aten.max.default", 27, 12.0),
    ]
    if not temperature:
        ops = ops[1:]
    step = call.kernel(
        "cpp_fused_abs_add_max_native_layer_norm_2", "add, layer norm, max", [25, 26, 27], 31.3,
        ("add", "sub", "abs", "max"), text=text, lines_of=((2, 25), (6, 26)),
    )  # fmt: skip
    call.region("residual, layer norm, max", [step], ops, 9.9, ("norm_2",))
    one = call.operation("aten.addmm.default", 29, 560.0, module="up", flops=2 * 512 * 256 * 1024)
    step = call.kernel(
        "extern_kernels.addmm", "addmm up", [29], 557.0, language="aten", flops=2 * 512 * 256 * 1024
    )
    call.region("addmm up", [step], [one], 16.0, ("up",))


def _tail(call: Call, gelu: float = 88.0) -> None:
    one = call.operation("aten.gelu.default", 29, 93.0)
    step = call.kernel("cpp_fused_gelu_4", "gelu", [29], gelu, ("mul", "erf"))
    call.region("gelu", [step], [one], 6.0)
    size = 2 * 512 * 1024 * 256
    one = call.operation("aten.addmm.default", 29, 571.0, module="down", flops=size)
    step = call.kernel(
        "extern_kernels.addmm", "addmm down", [29], 566.0, language="aten", flops=size
    )
    call.region("addmm down", [step], [one], 15.0, ("down",))


def block_profile(**profile: Any) -> list[AnyRecord]:
    """Wins in four regions, a GELU on one thread that loses, products in the noise."""
    call = Call()
    _block(call)
    one = call.operation(FLASH, 21, 216.3, "f32[4, 8, 128, 32], f32[4, 8, 128, 32], "
                         "f32[4, 8, 128, 32]", flops=1 << 26)  # fmt: skip
    step = call.kernel(
        "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default", "attention", [21],
        214.0, language="aten", flops=1 << 26,
    )  # fmt: skip
    call.region("attention", [step], [one], 5.0)
    _tail(call, gelu=141.0)
    return call.done(before=[captured(*mask_nodes()[:1], attention_node(""))], **profile)


def masked_attention() -> list[AnyRecord]:
    """A mask that exists only under capture: the fused attention becomes products and a softmax."""
    call = Call()
    _block(call)
    looked = call.operation("aten.all.default", 17, 4.1, "bool[4, 128]")
    asked = call.operation("aten._local_scalar_dense.default", 17, 2.0, "bool[]", launches=0)
    call.region("all, local scalar dense", [], [looked, asked], 0.4)
    one = call.operation(FLASH, 21, 216.3, "f32[4, 8, 128, 32], f32[4, 8, 128, 32], "
                         "f32[4, 8, 128, 32]", flops=1 << 26)  # fmt: skip
    mask = call.kernel("cpp_fused_expand_where_3", "expand, where", [20], 38.0, ("where",))
    steps = [
        call.kernel("extern_kernels.bmm", "bmm", [21], 310.0, ("bmm",), "aten", flops=1 << 25),
        call.kernel(
            "cpp_fused__softmax_add_5", "add, _softmax", [21], 420.0, ("add_2", "amax", "exp")
        ),
        call.kernel("extern_kernels.bmm", "bmm", [21], 290.0, ("bmm_1",), "aten", flops=1 << 25),
    ]
    call.region("attention", steps, [one], 12.0)
    call.region("expand, where", [mask], [], 1.0)
    _tail(call)
    return call.done(before=[captured(*mask_nodes(), attention_node())])


HOST_BREAK = Advice(text="no if, same values", code="h = h.clamp(-8, 8)")


def graph_break() -> list[AnyRecord]:
    """A branch on data in the middle of a chain that would be one kernel."""
    call = Call()
    names = ("aten.add.Tensor", "aten.abs.default", "aten.max.default", "aten.clamp.default")
    ops = [
        call.operation(name, line, 21.0) for name, line in zip(names, (25, 27, 27, 28), strict=True)
    ]
    first = call.kernel("cpp_fused_abs_add_max_0", "add, max", [25, 27], 29.0, ("add", "abs"))
    second = call.kernel(
        "cpp_fused_clamp_0", "clamp", [28], 24.0, ("clamp",), graph="1/0/inference",
        kernel_graph="1/0/inference/lowered",
    )  # fmt: skip
    waits = call.between("aten._local_scalar_dense.default", 3.0)
    call.region("add, max, clamp", [first, waits, second], ops, 2.0)
    _tail(call)
    broke = GraphBreak(
        compile_id="0/0",
        attempt=0,
        gb="GB0170",
        type="Data-dependent branching",
        context="attempted to jump with TensorVariable()",
        explanation="Detected data-dependent branching.",
        hints=(),
        location=at(27),
        source_line="        if h.abs().max() > 8:",
        crossing=(Crossing(name="x", tensor=X), Crossing(name="h", tensor=X)),
        advice=(HOST_BREAK,),
        call=1,
    )
    resumed = FrameStart(
        compile_id="1/0",
        attempt=0,
        function="torch_dynamo_resume_in_forward_at_27",
        location=at(24),
        call=1,
        resumes_at=27,
    )
    later = Graph(id="1/0", kind="captured", compile_id="1/0", nodes=(), ops=3, call=1)
    host = (
        ("wrapper", 22.0, "the code that calls them"),
        ("guards", 21.0, "checks of 80 guards"),
        ("dispatch", 74.0, "AOTAutograd's and Dynamo's wrappers"),
    )
    return call.done(before=[captured(attention_node("")), broke, resumed, later], host=host)


def float_argument(calls: int = 4) -> list[AnyRecord]:
    """A float argument that changes each call: what compiling takes is far from what running does.

    The profiled call is the first; each later one compiles again.
    """
    call = Call()
    _tail(call)
    before: list[AnyRecord] = [captured(attention_node(""))]
    for number in range(2, calls + 1):
        value, then = 1.0 + (number - 1) / 4, 1.0 + (number - 2) / 4
        failed = FailedGuard(
            entry=f"0/{number - 2}",
            guard=f"temperature == {then}",
            kind="EQUALS_MATCH",
            source="L['temperature']",
            name="temperature",
            expected=str(then),
            seen=str(value),
            location=at(24),
            source_line="    def forward(self, x, keep, temperature=1.0):",
            advice=(
                Advice(text="a tensor is no constant", code="temperature = torch.tensor(1.0)"),
            ),
        )
        compile_id = f"0/{number - 1}"
        before += [
            CallStart(
                call=number,
                arguments=(
                    Argument(name="x", tensor=X),
                    Argument(name="temperature", value=str(value)),
                ),
            ),
            Recompile(
                compile_id=compile_id,
                call=number,
                failed=(failed,),
                location=at(24),
                function="forward",
                advice=failed.advice,
            ),
            FrameStart(
                compile_id=compile_id, attempt=0, function="forward", location=at(24), call=number
            ),
            Graph(
                id=compile_id, kind="captured", compile_id=compile_id, nodes=(), ops=8, call=number
            ),
            FrameEnd(compile_id=compile_id, status="compiled", seconds=1.9, ops=8, guards=41),
            CallEnd(call=number, seconds=1.95, compiled=(compile_id,)),
        ]
    return call.done(before=before)


def training() -> list[AnyRecord]:
    """Forward, backward and step; the backward computes the softmax again."""
    call = Call(settings=Settings(file=FILE, grad="train", profile=True), phase="forward")
    _block(call)
    one = call.operation("aten._softmax.default", 21, 88.0, phase="forward")
    step = call.kernel(
        "cpp_fused__softmax_3", "_softmax", [21], 61.0, ("amax", "exp", "sum_1", "div"),
        kernel_graph="0/0/forward/lowered", graph="0/0/forward", phase="forward",
    )  # fmt: skip
    call.region("softmax", [step], [one], 2.0, phase="forward")
    back = call.operation("aten._softmax_backward_data.default", 21, 70.0, phase="backward")
    step = call.kernel(
        "cpp_fused__softmax__softmax_backward_data_0", "_softmax, _softmax_backward_data", [21],
        132.0, ("amax_1", "exp_1", "div", "mul_9"), kernel_graph="0/0/backward/lowered",
        graph="0/0/backward", phase="backward",
    )  # fmt: skip
    call.region("softmax backward", [step], [back], 3.0, phase="backward")
    for name, us in (
        ("aten._foreach_add_.List", 44.0),
        ("aten._foreach_addcdiv_.ScalarList", 51.0),
    ):
        operation = call.operation(name, 31, us, phase="step", part="optimizer")
        between = call.between(name, us + 0.3, phase="step", part="optimizer")
        call.region(name.split(".")[1], [between], [operation], 2.0, phase="step")
    values = (
        SavedValue(node="amax", choice="saved", tensor=meta(4, 8, 128, 1), bytes=16384),
        SavedValue(
            node="div",
            choice="recomputed",
            tensor=meta(4, 8, 128, 128),
            bytes=2 << 20,
            reason="cheaper than saving its inputs",
            location=at(21, "attention"),
        ),
    )
    split = Partition(
        compile_id="0/0",
        joint="0/0/joint",
        forward="0/0/forward",
        backward="0/0/backward",
        values=values,
        saved_bytes=3 << 20,
        recomputed=3,
    )
    return call.done(
        before=[captured(attention_node("")), split],
        what="forward + backward + step",
        eager_saved_bytes=9 << 20,
        compiled_saved_bytes=3 << 20,
    )


def layout_copies() -> list[AnyRecord]:
    """Two copies before a convolution that eager does not make."""
    call = Call()
    _tail(call)
    one = call.operation("aten.convolution.default", 16, 310.0, flops=1 << 27)
    steps = [
        call.kernel("cpp_fused_convolution_0", "clone", [16], 41.0, ("clone",)),
        call.kernel("cpp_fused_convolution_1", "clone", [16], 37.0, ("clone_1",)),
        call.kernel("extern_kernels.convolution", "convolution", [16], 305.0, ("convolution",),
                    "aten", flops=1 << 27),
    ]  # fmt: skip
    call.region("convolution", steps, [one], 5.0)
    return call.done(before=[captured(attention_node(""))])


def host_bound() -> list[AnyRecord]:
    """Forty launches of 3 µs on a GPU that waits for the host."""
    call = Call(
        settings=Settings(file=FILE, grad="no-grad", profile=True),
        device="NVIDIA H200",
        gpu="NVIDIA H200",
    )
    for index in range(40):
        one = call.operation("aten.mul.Tensor", 25, 3.1, read_bytes=4096, write_bytes=4096)
        step = call.kernel(
            f"triton_poi_fused_mul_{index}", "mul", [25], 3.0, ("mul",), "triton",
            read_bytes=4096, write_bytes=4096,
        )  # fmt: skip
        call.region("mul", [step], [one], 0.4, (f"layers.{index}",))
    host = (
        ("wrapper", 21.0, "the code that calls them"),
        ("guards", 16.0, "checks of 300 guards"),
        ("dispatch", 61.0, "AOTAutograd's and Dynamo's wrappers"),
        ("idle", 240.0, "the card waits"),
    )
    return call.done(before=[captured(), ceilings("cuda")], host=host, clock="device")


def spilled() -> list[AnyRecord]:
    """A Triton kernel that needs more registers than there are."""
    call = Call(
        settings=Settings(file=FILE, grad="no-grad", profile=True),
        device="NVIDIA H200",
        gpu="NVIDIA H200",
    )
    ops = [call.operation(f"aten.{name}.Tensor", 25, 12.0) for name in ("mul", "add", "cat")]
    step = call.kernel(
        "triton_per_fused_add_cat_mul_0", "add, cat, mul", [25], 71.0, ("cat",), "triton"
    )
    call.region("add, cat, mul", [step], ops, 1.0)
    binary = KernelBinary(
        kernel="k0", arch="sm_90", configuration="XBLOCK=1 R0_BLOCK=8192 warps=4",
        registers=255, spill_bytes=208, predicted=False,
    )  # fmt: skip
    return call.done(before=[captured(), ceilings("cuda")], after=[binary], clock="device")


def one_thread() -> list[AnyRecord]:
    """A loop nest of our engine that no thread shares, where eager's operation uses both."""
    call = Call(settings=Settings(file=FILE, grad="no-grad", profile=True, engine="tcw"))
    one = call.operation("aten.cumsum.default", 25, 60.0)
    step = call.kernel("kernel_0_cumsum", "cumsum", [25], 118.0, ("cumsum",))
    call.region("cumsum", [step], [one], 2.0)
    _tail(call)
    decided = Decided(
        id="tcw/0/0/inference/threads/cumsum",
        graph="0/0/inference",
        kind="threads",
        default="one",
        choice="one",
        choices=("one", "parallel"),
        rule="carried",
        reason="each element needs the one before it",
    )
    return call.done(before=[captured(), decided])


def fallback() -> list[AnyRecord]:
    """An operation that the engine has no lowering for."""
    call = Call(settings=Settings(file=FILE, grad="no-grad", profile=True, engine="tcw"))
    eager = [
        call.operation("aten.mul.Tensor", 25, 11.0),
        call.operation("aten.sort.stable", 25, 49.0),
    ]
    steps = [
        call.kernel("nest_mul", "mul", [25], 9.0, ("mul",)),
        call.kernel("torch.ops.aten.sort.stable", "sort", [25], 79.0, ("sort",), "aten"),
    ]
    call.region("sort", steps, eager, 2.0)
    _tail(call)
    lowered = Lowered(
        graph=LOWERED, node="sort", target="aten.sort.stable", ir="Call",
        fallback="no lowering for aten.sort",
    )  # fmt: skip
    return call.done(before=[captured(), lowered])


def wrong_kernel() -> list[AnyRecord]:
    """The second kernel computes something else than its nodes; a later one is right."""
    code = "import torch\n\n# runs one graph alone\n"
    good = OutputPrecision(node="sub", error=3.1e-8, eager_error=2.9e-8, bound=1e-6)
    bad = OutputPrecision(node="clone", error=0.03, eager_error=0.0, bound=1e-6)
    repro = Text(hash=text_hash(code), body=code)
    records: list[AnyRecord] = [
        repro,
        KernelPrecision(graph=GRAPH, kernel="k0", call=1, outputs=(good,), within=True),
        KernelPrecision(
            graph=GRAPH, kernel="k2", call=1, outputs=(bad,), within=False, repro=repro.hash
        ),
        KernelPrecision(graph=GRAPH, kernel="k3", call=1, outputs=(good,), within=True),
        KernelPrecision(graph=GRAPH, kernel="k1", call=1, reason="it draws random numbers"),
    ]
    return _and(block_profile(), *records)


def modes() -> list[AnyRecord]:
    """The block in four ways, one of which does not run here."""
    eager = timed(2260.0)
    rows = [
        ModeRow(name="eager", eager=eager, time=eager, peak_bytes=6 << 20),
        ModeRow(
            name="inductor", engine="inductor", eager=eager, time=timed(2120.0), speedup=1.07,
            noise=0.02, compile_seconds=6.4, compile_cpu_seconds=9.1, peak_bytes=4 << 20,
            pays_after=45715,
        ),
        ModeRow(
            name="inductor max-autotune", engine="inductor", mode="max-autotune", eager=eager,
            time=timed(2255.0), speedup=1.002, noise=0.03, compile_seconds=31.0,
            peak_bytes=4 << 20, note="no template was chosen: same code as the default mode",
        ),
        ModeRow(
            name="inductor reduce-overhead", engine="inductor", mode="reduce-overhead",
            reason="CUDA graphs need a GPU",
        ),
        ModeRow(
            name="tcw", engine="tcw", eager=eager, time=timed(1790.0), speedup=1.26, noise=0.02,
            compile_seconds=1.1, compile_cpu_seconds=1.6, peak_bytes=4 << 20, pays_after=2341,
        ),
    ]  # fmt: skip
    return _and(block_profile(), *rows)


def trials() -> list[AnyRecord]:
    """Three suggestions tried: one kept, one worse, one that could not be measured."""
    before = timed(2124.0)
    tried = [
        Trial(
            id="engine tcw", words="our engine", options=("--engine", "tcw"), before=before,
            after=timed(1790.0), difference=-334e-6, noise=30e-6, kept=True, equal=True,
            command="tcw profile block.py --engine tcw --train",
        ),
        Trial(
            id="mode max-autotune", words="mode max-autotune", options=("--mode", "max-autotune"),
            before=before, after=timed(2131.0), difference=7e-6, noise=41e-6,
            reason="no measurable difference",
        ),
        Trial(id="break block.py:27", words="h = h.clamp(-8, 8)", reason="of the source"),
    ]  # fmt: skip
    return _and(block_profile(), *tried)


def _and(records: list[AnyRecord], *more: AnyRecord) -> list[AnyRecord]:
    """The trace with more before its end."""
    return [*records[:-1], *more, records[-1]]


__all__ = ["EVERY", "LAYERS", "on_a_busy_machine"]


def on_a_busy_machine(records: list[AnyRecord]) -> list[AnyRecord]:
    """The same call, of which no part was timed."""
    parts = (Account, CallTimeline, CompiledStep, EagerOperation, Region)
    return [
        structs.replace(record, contended=True) if isinstance(record, CallProfile) else record
        for record in records
        if not isinstance(record, parts)
    ]


EVERY = {
    made.__name__: made
    for made in (
        block_profile, masked_attention, graph_break, float_argument, bert_on_a_gpu, training,
        layout_copies, host_bound, spilled, one_thread, fallback, wrong_kernel, modes, trials,
    )
}  # fmt: skip
"""Name -> what makes it."""
