"""Builds the records of one profiled call, for traces of tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tcw.compiler.trace.loop_nests import loop_lines
from tcw.compiler.trace.records import (
    SCHEMA_VERSION,
    Account,
    AccountLine,
    AnyRecord,
    Argument,
    Bandwidth,
    CallEnd,
    CallProfile,
    CallStart,
    CallTimeline,
    Ceilings,
    CompiledStep,
    EagerOperation,
    End,
    Environment,
    FrameEnd,
    FrameStart,
    Graph,
    Guard,
    Guards,
    Kernel,
    KernelLine,
    Location,
    Moment,
    Node,
    Region,
    Settings,
    Source,
    Start,
    TensorMeta,
    Text,
    Timed,
)
from tcw.compiler.trace.records.profile import Sameness
from tcw.compiler.trace.writer import text_hash

FILE = "/home/ada/models/block.py"
CODE = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width=256, heads=8):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x, keep):
        batch, time, width = x.shape
        q, k, v = self.qkv(x).view(batch, time, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if not torch.compiler.is_compiling() and bool(keep.all()):
            mask = None
        else:
            mask = keep[:, None, None, :].expand(batch, 1, time, time)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.project(mixed.transpose(1, 2).reshape(batch, time, width))

    def forward(self, x, keep, temperature=1.0):
        x = x + self.attention(self.norm_1(x), keep) * temperature
        h = self.norm_2(x)
        if h.abs().max() > 8:
            h = h.clamp(-8, 8)
        return x + self.down(F.gelu(self.up(h)))


model = Block()
example_inputs = (torch.randn(4, 128, 256), torch.ones(4, 128, dtype=torch.bool))
"""
LOWERED = "0/0/inference/lowered"
GRAPH = "0/0/inference"


def meta(*shape: int, dtype: str = "float32", device: str = "cpu") -> TensorMeta:
    width = {"float32": 4, "bfloat16": 2, "bool": 1, "int64": 8}[dtype]
    count = width
    for size in shape:
        count *= size
    return TensorMeta(shape=shape, dtype=dtype, bytes=count, device=device)


X = meta(4, 128, 256)


def timed(us: float, spread: float | None = None, runs: int = 30) -> Timed:
    """Microseconds as a `Timed`; the spread is 1% unless it is told."""
    wide = us * 0.01 if spread is None else spread
    return Timed(median=us * 1e-6, spread=wide * 1e-6, runs=runs)


def at(line: int, function: str = "forward", file: str = FILE) -> Location:
    return Location(file=file, line=line, end_line=line, column=8, function=function)


@dataclass
class Call:
    """Builds the records of one profiled call, region by region."""

    settings: Settings = field(
        default_factory=lambda: Settings(file=FILE, grad="no-grad", profile=True)
    )
    file: str = FILE
    code: str = CODE
    device: str = "AMD EPYC 9B14"
    gpu: str = ""
    call: int = 1
    phase: str = ""
    """Of what is built from now on."""
    graph: str = GRAPH
    lowered: str = LOWERED
    records: list[AnyRecord] = field(default_factory=list)
    operations: list[EagerOperation] = field(default_factory=list)
    steps: list[CompiledStep] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)

    def operation(
        self,
        name: str,
        line: int,
        us: float,
        arguments: str = "",
        module: str = "",
        **more: Any,
    ) -> str:
        """An ATen operation of the eager call; returns its id."""
        place = at(line, file=more.pop("location_file", self.file))
        made = EagerOperation(
            id=f"e{len(self.operations) + 1}",
            call=self.call,
            operation=name,
            arguments=arguments,
            time=timed(us),
            launches=more.pop("launches", 1),
            location=place,
            module=module,
            **{"phase": self.phase, "read_bytes": X.bytes, "write_bytes": X.bytes, **more},
        )
        self.operations.append(made)
        return made.id

    def kernel(
        self,
        name: str,
        label: str,
        lines: Sequence[int],
        us: float,
        origins: Sequence[str] = (),
        language: str = "cpp",
        text: str = "",
        **more: Any,
    ) -> str:
        """A generated kernel, or a call where `language` is `aten`, and its step; the step's id."""
        index = len(self.kernels)
        file = more.pop("location_file", self.file)
        places = tuple(at(line, file=file) for line in lines)
        if text:
            self.records.append(Text(hash=text_hash(text), body=text))
        of = more.pop("lines_of", ())
        made = Kernel(
            id=f"k{index}",
            graph=more.pop("kernel_graph", self.lowered),
            name=name,
            label=label,
            language=language,  # type: ignore[arg-type]
            text=text_hash(text) if text else "",
            origins=tuple(origins),
            locations=places,
            lines=tuple(
                KernelLine(line=number, locations=(at(line, file=file),)) for number, line in of
            ),
            loops=loop_lines(text),
            loop_nests=1 if language == "cpp" else 0,
        )
        self.kernels.append(made)
        graph = more.pop("graph", self.graph)
        step = CompiledStep(
            id=f"s{len(self.steps) + 1}",
            call=self.call,
            kind="aten" if language == "aten" else "kernel",
            name=name,
            graph=graph,
            index=index,
            kernel=made.id,
            time=timed(us),
            **{"phase": self.phase, "read_bytes": X.bytes, "write_bytes": X.bytes, **more},
        )
        self.steps.append(step)
        return step.id

    def between(self, name: str, us: float, **more: Any) -> str:
        """An operation of the compiled call that ran outside all graphs."""
        step = CompiledStep(
            id=f"s{len(self.steps) + 1}",
            call=self.call,
            kind="eager",
            name=name,
            time=timed(us),
            **more,
        )
        self.steps.append(step)
        return step.id

    def region(
        self,
        label: str,
        steps: Sequence[str],
        operations: Sequence[str],
        noise: float = 2.0,
        modules: Sequence[str] = (),
        phase: str = "",
        same: Sameness = "",
    ) -> Region:
        """Its times are the sums of its steps and operations."""
        mine = [step for step in self.steps if step.id in steps]
        theirs = [operation for operation in self.operations if operation.id in operations]
        compiled = sum(one.time.median for one in mine if one.time) * 1e6
        eager = sum(one.time.median for one in theirs if one.time) * 1e6
        kernels = {one.kernel for one in mine}
        places = {
            (p.file, p.line): p
            for p in (
                *(one.location for one in theirs if one.location),
                *(p for k in self.kernels if k.id in kernels for p in k.locations),
            )
        }
        made = Region(
            id=f"r{len(self.regions) + 1}",
            call=self.call,
            label=label,
            phase=phase or (mine or theirs)[0].phase,  # type: ignore[arg-type]
            steps=tuple(steps),
            operations=tuple(operations),
            locations=tuple(places[key] for key in sorted(places)),
            modules=tuple(modules),
            eager=timed(eager) if theirs else None,
            compiled=timed(compiled) if mine else None,
            difference=(compiled - eager) * 1e-6,
            noise=noise * 1e-6,
            same=same,
        )
        self.regions.append(made)
        return made

    def lines(
        self, side: str, host: Sequence[tuple[str, float, str]]
    ) -> tuple[tuple[AccountLine, ...], float]:
        """The account's lines of one side, and their sum in µs."""
        taken: dict[str, float] = {}
        if side == "eager":
            taken["aten"] = (
                sum(operation.time.median for operation in self.operations if operation.time) * 1e6
            )
        else:
            names = {"kernel": "kernels", "aten": "aten", "eager": "eager"}
            for step in self.steps:
                if step.time:
                    name = names[step.kind]
                    taken[name] = taken.get(name, 0.0) + step.time.median * 1e6
        counted = {
            "kernels": f"{sum(step.kind == 'kernel' for step in self.steps)} kernels",
            "aten": f"{sum(step.kind == 'aten' for step in self.steps)} calls into ATen",
            "eager": "outside all graphs",
        }
        if side == "eager":
            counted["aten"] = f"{len(self.operations)} operations"
        made = [AccountLine(name=n, time=timed(us), what=counted[n]) for n, us in taken.items()]
        made += [AccountLine(name=n, time=timed(us), what=what) for n, us, what in host]
        return tuple(made), sum(one.time.median for one in made) * 1e6

    def done(
        self,
        eager_host: float = 60.0,
        host: Sequence[tuple[str, float, str]] = (
            ("wrapper", 18.0, "the code that calls them"),
            ("guards", 9.0, "checks of 41 guards"),
            ("dispatch", 31.0, "AOTAutograd's and Dynamo's wrappers"),
        ),
        rest: float = 4.0,
        before: Sequence[AnyRecord] = (),
        after: Sequence[AnyRecord] = (),
        noise: float = 0.02,
        **profile: Any,
    ) -> list[AnyRecord]:
        """The whole trace; `before` stands before the profile, `after` behind it."""
        accounts = []
        sums = []
        for side, own in (("eager", (("dispatch", eager_host, "Python"),)), ("compiled", host)):
            lines, total = self.lines(side, own)
            sums.append(total + rest)
            accounts.append(
                Account(
                    side=side,  # type: ignore[arg-type]
                    call=self.call,
                    measured=timed(total + rest),
                    lines=lines,
                    remainder=rest * 1e-6,
                )
            )
        eager, compiled = sums
        phases = dict.fromkeys(step.phase for step in self.steps if step.phase)
        for phase in phases:
            accounts += [self.phase_account(side, phase) for side in ("eager", "compiled")]
        head = CallProfile(
            **{
                "call": self.call,
                "what": "forward",
                "device": self.device,
                "eager": timed(eager),
                "compiled": timed(compiled),
                "speedup": eager / compiled,
                "noise": noise,
                "rounds": 30,
                "eager_peak_bytes": 6 << 20,
                "compiled_peak_bytes": 4 << 20,
                **profile,
            }
        )
        return [
            *self.opening(),
            *before,
            *self.kernels,
            *self.records,
            *self.operations,
            *self.steps,
            *self.regions,
            *accounts,
            *self.timelines(),
            *([] if any(isinstance(one, Ceilings) for one in before) else [ceilings()]),
            head,
            *after,
            End(status="ok", seconds=12.0, calls=1),
        ]

    def phase_account(self, side: str, phase: str) -> Account:
        ran: Sequence[EagerOperation | CompiledStep] = (
            self.operations if side == "eager" else self.steps
        )
        us = sum(one.time.median for one in ran if one.time and one.phase == phase) * 1e6
        return Account(
            side=side,  # type: ignore[arg-type]
            call=self.call,
            measured=timed(us + 11.0),
            lines=(AccountLine(name="aten" if side == "eager" else "kernels", time=timed(us)),),
            remainder=11e-6,
            phase=phase,  # type: ignore[arg-type]
        )

    def opening(self) -> list[AnyRecord]:
        place = at(23, file=self.file)
        device = "cuda:0" if self.gpu else "cpu"
        return [
            Start(
                schema_version=SCHEMA_VERSION,
                tool_version="0.1.0",
                settings=self.settings,
                python="3.11.7",
                platform="linux",
                pid=7,
                time=1.0,
            ),
            Environment(torch="2.13.0", threads=2, cpu="AMD EPYC 9B14", gpu=self.gpu),
            Text(hash=text_hash(self.code), body=self.code),
            Source(file=self.file, text=text_hash(self.code)),
            CallStart(
                call=self.call,
                arguments=(
                    Argument(name="x", tensor=meta(4, 128, 256, device=device)),
                    Argument(name="keep", tensor=meta(4, 128, dtype="bool", device=device)),
                ),
            ),
            FrameStart(
                compile_id="0/0", attempt=0, function="forward", location=place, call=self.call
            ),
            Guards(
                compile_id="0/0",
                guards=(Guard(kind="TENSOR_MATCH", name="x", source="L['x']"),) * 41,
                function="forward",
                call=self.call,
            ),
            FrameEnd(compile_id="0/0", status="compiled", seconds=6.4, ops=12, guards=41),
            CallEnd(call=self.call, seconds=6.5, compiled=("0/0",)),
        ]

    def timelines(self) -> list[CallTimeline]:
        found = []
        for side, ran in (("eager", self.operations), ("compiled", self.steps)):
            clock, moments = 5e-6, []
            for one in ran:  # type: ignore[attr-defined]
                seconds = one.time.median if one.time else 0.0
                moments.append(Moment(of=one.id, start=clock, seconds=seconds))
                clock += seconds + 1e-6
            found.append(
                CallTimeline(
                    call=self.call,
                    side=side,  # type: ignore[arg-type]
                    seconds=clock + 5e-6,
                    moments=tuple(moments),
                )
            )
        return found


def ceilings(kind: str = "cpu") -> Ceilings:
    if kind == "cuda":
        return Ceilings(
            device="NVIDIA H200",
            kind="cuda",
            threads=1,
            bandwidth=(Bandwidth(bytes=1 << 22, per_second=6.0e12), _far(4.3e12)),
            rates={"float32": 5.1e13, "bfloat16": 7.9e14},
            measured=1.0,
        )
    return Ceilings(
        device="AMD EPYC 9B14",
        kind="cpu",
        threads=2,
        bandwidth=(
            Bandwidth(bytes=1 << 15, per_second=3.1e11),
            Bandwidth(bytes=1 << 20, per_second=1.6e11),
            _far(2.2e10),
        ),
        rates={"float32": 1.9e11, "bfloat16": 2.4e11},
        measured=1.0,
        kept=True,
    )


def _far(rate: float) -> Bandwidth:
    return Bandwidth(bytes=1 << 30, per_second=rate)


def captured(*nodes: Node) -> Graph:
    return Graph(id="0/0", kind="captured", compile_id="0/0", nodes=nodes, ops=len(nodes), call=1)


def attention_node(mask: str = "expand", line: int = 21, module: str = "") -> Node:
    given = f", attn_mask={mask}" if mask else ""
    return Node(
        name="mixed",
        op="call_function",
        target="torch._C._nn.scaled_dot_product_attention",
        args=f"q, k, v{given}",
        inputs=("q", "k", "v", *([mask] if mask else [])),
        value=X,
        location=at(line, "attention"),
        module=module,
    )


def mask_nodes(line: int = 20) -> tuple[Node, ...]:
    """`keep`, an input, and the mask that is made from it."""
    return (
        Node(name="l_keep_", op="placeholder", target="L_keep_", value=meta(4, 128, dtype="bool")),
        Node(
            name="getitem_3",
            op="call_function",
            target="_operator.getitem",
            args="l_keep_, (slice(None), None, None, slice(None))",
            inputs=("l_keep_",),
            location=at(line, "attention"),
        ),
        Node(
            name="expand",
            op="call_method",
            target="expand",
            args="getitem_3, 4, 1, 128, 128",
            inputs=("getitem_3",),
            value=meta(4, 1, 128, 128, dtype="bool"),
            location=at(line, "attention"),
        ),
    )
