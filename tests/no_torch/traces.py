"""Small traces for tests of text and JSON, beside the large one of `tests.block_trace`."""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.trace.records import (
    SCHEMA_VERSION,
    Advice,
    AnyRecord,
    Argument,
    CallEnd,
    CallStart,
    EagerFallback,
    End,
    Environment,
    FailedGuard,
    Failure,
    FrameEnd,
    FrameSkipped,
    FrameStart,
    Graph,
    GraphBreak,
    Guard,
    Guards,
    Kernel,
    KernelBinary,
    Location,
    Numerics,
    Progress,
    Recompile,
    Settings,
    Source,
    Speed,
    Start,
    TensorMeta,
    Text,
)
from tcw.compiler.trace.writer import text_hash

FILE = "/home/ada/models/norm.py"
CODE = """\
import torch


class Norm(torch.nn.Module):
    def forward(self, x, step=0):
        centred = x - x.mean(-1, keepdim=True)
        if centred.sum() > 0: centred = centred * 2
        return centred * torch.rsqrt(centred.var(-1, keepdim=True) + 1e-5) + step


model = Norm()
example_inputs = torch.randn(256, 1024)
"""
X = TensorMeta(shape=(256, 1024), dtype="float32", stride=(1024, 1), bytes=1 << 20)


def at(line: int, column: int | None = None, end: int | None = None) -> Location:
    return Location(
        file=FILE, line=line, end_line=line, column=column, end_column=end, function="forward"
    )


def opening(settings: Settings | None = None) -> list[AnyRecord]:
    """Start, environment and source."""
    return [
        Start(
            schema_version=SCHEMA_VERSION,
            tool_version="0.1.0",
            settings=settings or Settings(file=FILE, grad="no-grad"),
            python="3.11.7",
            platform="linux",
            pid=7,
            time=1.0,
        ),
        Environment(torch="2.13.0", threads=2),
        Text(hash=text_hash(CODE), body=CODE),
        Source(file=FILE, text=text_hash(CODE)),
    ]


def call(number: int = 1) -> CallStart:
    return CallStart(call=number, arguments=(Argument(name="x", tensor=X),))


def frame(compile_id: str = "0/0", number: int = 1, seconds: float = 6.4) -> list[AnyRecord]:
    """A compile of `forward`: its start, graph, guards and end."""
    return [
        FrameStart(
            compile_id=compile_id, attempt=0, function="forward", location=at(5), call=number
        ),
        Graph(id=compile_id, kind="captured", compile_id=compile_id, nodes=(), ops=8),
        Guards(
            compile_id=compile_id,
            guards=(Guard(kind="TENSOR_MATCH", name="x", source="L['x']", location=at(6)),) * 38,
            function="forward",
        ),
        FrameEnd(compile_id=compile_id, status="compiled", seconds=seconds, ops=8, guards=38),
    ]


def kernel(**changes: object) -> Kernel:
    found = Kernel(
        id="k0",
        graph="0/0/inference/lowered",
        name="cpp_fused_mean_0",
        label="layer norm",
        language="cpp",
        origins=("mean", "sub"),
        locations=(at(6), at(8)),
        loop_nests=3,
    )
    import msgspec

    return msgspec.structs.replace(found, **changes)


def speed(eager: float = 10.1, compiled: float = 7.15, noise: float = 0.06) -> Speed:
    ratio = eager / compiled
    return Speed(
        eager_ms=eager,
        compiled_ms=compiled,
        eager_mad_ms=0.1,
        compiled_mad_ms=0.1,
        speedup=ratio,
        noise=noise,
        pairs=40,
        in_noise=abs(ratio - 1) <= noise * ratio,
        compile_seconds=6.4,
    )


def end(status: str = "ok", seconds: float = 12.0, **more: object) -> End:
    return End(status=status, seconds=seconds, **more)  # type: ignore[arg-type]


def clean() -> list[AnyRecord]:
    """One call, one graph, faster than eager, nothing to say."""
    numbers = Numerics(compared=1, max_abs=9.5e-07, max_rel=3e-06, within=True)
    records = [*opening(), call(), *frame(), kernel(), CallEnd(call=1, seconds=6.5)]
    return [*records, speed(), numbers, end()]


def slower() -> list[AnyRecord]:
    """Compiled code that loses, with results that differ."""
    numbers = Numerics(compared=1, max_abs=0.5, max_rel=0.2, within=False)
    records = [*opening(), call(), *frame(), kernel(), CallEnd(call=1, seconds=6.5)]
    return [*records, speed(4.29, 6.92, 0.02), numbers, end()]


def failed(eager_fails: bool | None = True) -> list[AnyRecord]:
    """The model raises while it is captured."""
    failure = Failure(
        doing="call 1, capture of 0/0",
        type="RuntimeError",
        message="Given normalized_shape=[256], expected input with shape [*, 256], but got "
        "input of size[8, 128]",
        compile_id="0/0",
        location=at(6, 22, 49),
        eager_fails=eager_fails,
        hint="the input's last dimension is 128, and the layer was made for 256",
    )
    return [*opening(), call(), frame()[0], failure, end("failed")]


def timed_out() -> list[AnyRecord]:
    doing = Progress(stage="build", activity="building 12 kernels")
    settings = Settings(file=FILE, timeout=20)
    return [*opening(settings), call(), *frame()[:-1], doing, end("timeout", 20.0)]


def until_capture() -> list[AnyRecord]:
    settings = Settings(file=FILE, until="capture")
    return [*opening(settings), call(), *frame(seconds=0.3), CallEnd(call=1, seconds=0.4), end()]


def predicted() -> list[AnyRecord]:
    """GPU code for a machine that has none."""
    settings = Settings(file=FILE, grad="no-grad", device="cuda", arch="sm_90")
    triton = kernel(id="k1", name="triton_per_fused_0", language="triton", predicted=True)
    binary = KernelBinary(
        kernel="k1",
        arch="sm_90",
        configuration="XBLOCK=1 R0_BLOCK=1024 warps=8",
        registers=32,
        shared_bytes=128,
        spill_bytes=0,
    )
    records = [*opening(settings), call(), *frame(), kernel(), triton, binary]
    return [*records, CallEnd(call=1, seconds=6.5), speed(), end()]


def nothing_compiled() -> list[AnyRecord]:
    skipped = FrameSkipped(function="forward", location=at(5), reason="it is marked as disabled")
    return [*opening(), call(), skipped, CallEnd(call=1, seconds=0.1), end()]


def step_recompile(compile_id: str, number: int) -> Recompile:
    """`step` is an int that grows with each call."""
    failed_guard = FailedGuard(
        entry=f"0/{number - 2}",
        guard=f"step == {number - 2}",
        kind="EQUALS_MATCH",
        source="L['step']",
        name="step",
        expected=str(number - 2),
        seen=str(number - 1),
    )
    return Recompile(
        compile_id=compile_id,
        call=number,
        failed=(failed_guard,),
        location=at(8),
        function="forward",
        advice=(Advice(text="pass step as a tensor"),),
    )


def size_change(compile_id: str, name: str, expected: int, seen: int, call: int = 2) -> Recompile:
    """A compile again, since the first size of an input was not as before."""
    text = f"tensor '{name}' size mismatch at index 0. expected {expected}, actual {seen}"
    failed = FailedGuard(
        entry=compile_id[:-1] + "0", guard=text, name=name, expected=str(expected), seen=str(seen)
    )
    return Recompile(compile_id=compile_id, call=call, failed=(failed,), function="forward")


def resumed(compile_id: str) -> FrameStart:
    """The frame that goes on behind a break."""
    return FrameStart(
        compile_id=compile_id,
        attempt=0,
        function="resume",
        location=at(5),
        call=2,
        resumes_at=7,
    )


def recompile_limit(calls: int = 9) -> list[AnyRecord]:
    """A frame that is compiled again in each call, until torch gives it up."""
    records: list[AnyRecord] = [*opening(), call(), *frame()]
    for number in range(2, calls):
        compile_id = f"0/{number - 1}"
        records += [call(number), step_recompile(compile_id, number)]
        records += frame(compile_id, number, 1.5)
    given_up = EagerFallback(
        reason="torch._dynamo hit config.recompile_limit (8)",
        kind="recompile-limit",
        function="forward",
        location=at(5),
        call=calls,
    )
    return [*records, call(calls), given_up, end()]


def graph_break(**changes: object) -> GraphBreak:
    import msgspec

    found = GraphBreak(
        compile_id="0/0",
        attempt=0,
        gb="GB0170",
        type="Data-dependent branching",
        context="attempted to jump with TensorVariable()",
        explanation="Detected data-dependent branching.",
        hints=("Use `torch.cond` to express dynamic control flow.",),
        location=at(7, 8, 29),
        advice=(
            Advice(text="Use `torch.cond`.", by="torch"),
            Advice(text="both sides are cheap", code="torch.where(…)"),
        ),
        call=1,
    )
    return msgspec.structs.replace(found, **changes)


def hostile() -> list[AnyRecord]:
    """Names, messages and source with escapes, markup, overrides and lone surrogates."""
    evil = "\x1b]0;owned\x07\x1b[31m[bold red]x[/nope]\u202eabc\x9b2J\u200b\ud800"
    code = f"x = '{evil}'\n"
    return [
        *opening(Settings(file=f"/tmp/{evil}.py")),
        Text(hash="evil", body=code.encode("utf-8", "replace").decode()),
        Source(file=f"/tmp/{evil}.py", text="evil"),
        Failure(
            doing=evil,
            type=evil,
            message=f"{evil}\n{evil}",
            location=Location(file=f"/tmp/{evil}.py", line=1, column=5, end_column=30),
            source_line=code,
            hint=evil,
        ),
        graph_break(type=evil, context=evil, gb=evil, source_line=code, location=at(99)),
        end("failed", reason=evil),
    ]


def without(records: Sequence[AnyRecord], *kinds: type) -> list[AnyRecord]:
    return [record for record in records if not isinstance(record, kinds)]
