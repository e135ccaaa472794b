"""A synthetic trace of `data/block.py.txt`, for tests of everything that reads traces.

Graphs, loops, kernels, fusion pairs and guards are those of a real run (`data/block.json`); times
and measurements are made up. The same records every time.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from tcw.compiler.trace.records import (
    SCHEMA_VERSION,
    AnyRecord,
    Argument,
    CacheLookup,
    CallEnd,
    CallStart,
    End,
    Environment,
    FrameEnd,
    FrameStart,
    HookStatus,
    Location,
    Numerics,
    Output,
    OutputError,
    Partition,
    PassChange,
    Phase,
    Progress,
    SavedValue,
    SetSpeed,
    Settings,
    Source,
    Speed,
    Start,
    Text,
)
from tcw.compiler.trace.writer import text_hash
from tests.block_capture import (
    BREAKS,
    FILE,
    LINES,
    H,
    captured,
    guards,
    location,
    recompile,
    tensor,
)
from tests.block_inductor import Inductor

DATA = Path(__file__).parent / "data"
NOBODY = 4_194_305
"""A process id above Linux's largest: no process or thread of this machine has it."""
RESUMES = {"1/0": 24, "2/0": 26, "1/1": 24, "2/1": 26}
LIKE = {"0/1": "0/0", "0/2": "0/0", "1/1": "1/0", "2/1": "2/0"}
"""Compiles whose lowering is taken from another's: the real run recorded those of call 1."""


class Builder:
    """Collects records as a writer would stamp them."""

    def __init__(self) -> None:
        self.records: list[AnyRecord] = []
        self.clock = 0.0
        self._texts: set[str] = set()

    def add(self, record: AnyRecord, seconds: float = 0.001) -> None:
        self.clock += seconds
        msgspec.structs.force_setattr(record, "at", round(self.clock, 6))
        self.records.append(record)

    def text(self, body: str) -> str:
        if not body:
            return ""
        key = text_hash(body)
        if key not in self._texts:
            self._texts.add(key)
            self.add(Text(hash=key, body=body))
        return key


def partition(cid: str) -> Partition:
    saved = ("add_2", "primals_3", "primals_4", "primals_6", "getitem_1", "rsqrt", "view")
    saved += ("div", "view_10", "permute_11", "permute_12", "permute_13")
    values = tuple(
        SavedValue(
            node=name,
            choice="input" if name.startswith("primals") else "saved",
            tensor=tensor([[4, 8, 128, 128], "float32", [131072, 16384, 128, 1]])
            if name == "div"
            else H,
            bytes=2097152 if name == "div" else 524288,
            reason="a forward input" if name.startswith("primals") else "matmul is never run again",
        )
        for name in saved[1:]
    )
    return Partition(
        compile_id=cid,
        joint=f"{cid}/joint",
        forward=f"{cid}/forward",
        backward=f"{cid}/backward",
        values=values,
        saved_bytes=6291456,
        partitioner="min_cut_rematerialization_partition",
    )


def opening(out: Builder) -> None:
    out.add(
        Start(
            schema_version=SCHEMA_VERSION,
            tool_version="0.1.0",
            settings=Settings(file=FILE, grad="train"),
            python="3.11.7",
            platform="Linux-6.1-x86_64",
            pid=NOBODY,
            time=1_790_000_000.0,
        )
    )
    out.add(Progress(stage="load", activity="importing torch"))
    out.add(
        Environment(
            torch="2.13.0+cpu",
            triton="3.7.1",
            compiler="g++ (Debian 12.2.0-14) 12.2.0",
            cpu="Intel(R) Xeon(R)",
            vector="AVX512",
            threads=2,
            hooks=(
                HookStatus(name="graph breaks", available=True, offers="breaks with column ranges"),
                HookStatus(name="fusion", available=True, offers="every pair with its verdict"),
            ),
        ),
        1.6,
    )
    out.add(Source(file=FILE, text=out.text("\n".join(LINES) + "\n")))


def compile_frame(
    out: Builder, data: Any, inductor: Inductor, cid: str, call: int, like: str = ""
) -> float:
    """All records of one compile, with the contents of compile `like`; returns how long it took."""
    began = out.clock
    like = like or LIKE.get(cid, cid)
    frame = like[0]
    rows = data["captured"].get(cid) or data["captured"][like]
    line = RESUMES.get(like)
    if call > 1:
        out.add(recompile(cid, call))
    out.add(Progress(stage="capture", activity=f"capturing {cid}"))
    for attempt in range(2 if frame in BREAKS else 1):
        out.add(
            FrameStart(
                compile_id=cid,
                attempt=attempt,
                function="forward" if line is None else f"torch_dynamo_resume_in_forward_at_{line}",
                location=Location(file=FILE, line=22, end_line=29, function="forward"),
                call=call,
                resumes_at=line,
            ),
            0.05,
        )
        if frame in BREAKS and attempt == 0:
            out.add(BREAKS[frame](cid, call), 0.1)
    graph = captured(cid, rows, call)
    out.add(graph, 0.12)
    out.add(Progress(stage="autograd", activity=f"splitting {cid}"))
    if like == "0/0" and call == 1:
        before, after = out.text("mul_1 = mul(scores, 0.125)\n"), out.text("mul_tensor = …\n")
        out.add(
            PassChange(
                graph=f"{cid}/joint",
                name="pass_pattern_1",
                before=before,
                after=after,
                added=("mul_tensor", "amax_default", "sub_tensor"),
                removed=("amax", "sub_1"),
                seconds=0.021,
            )
        )
    forward = f"{like}/forward"
    if forward == "0/0/forward":
        out.add(partition(cid))
    inductor.record(out, cid, call, forward)
    out.add(guards(cid, data["guards"][like]))
    out.add(CacheLookup(cache="fx graph", verdict="miss", compile_id=cid, missed="first compile"))
    seconds = {"0/0": 9.6, "0/1": 7.3, "0/2": 7.4, "1/0": 3.1, "1/1": 2.5}.get(cid, 2.9)
    out.clock = began + seconds
    out.add(
        FrameEnd(
            compile_id=cid,
            status="compiled",
            seconds=seconds,
            cpu_seconds=round(seconds * 1.1, 2),
            attempts=2 if frame in BREAKS else 1,
            ops=graph.ops,
            guards=len(data["guards"][like]),
        )
    )
    base = 10 * inductor.compiles
    inductor.compiles += 1
    parts = (("dynamo", 0.3), ("aot autograd", 0.2), ("inductor", 0.35), ("g++", seconds - 1.0))
    out.add(Phase(id=base, name="compile", start=began, seconds=seconds, compile_id=cid, call=call))
    start = began
    for index, (name, part) in enumerate(parts):
        out.add(
            Phase(
                id=base + index + 1,
                name=name,
                start=start,
                seconds=part,
                parent=base,
                compile_id=cid,
                call=call,
            )
        )
        start += part
    return seconds


CALLS = (
    (4, 0.125, ("0/0", "1/0", "2/0"), ()),
    (4, 0.25, ("0/1",), ("1/0", "2/0")),
    (4, 0.5, (), ("0/1", "1/0", "2/0")),
    (6, 0.5, ("0/2", "1/1", "2/1"), ()),
)


def block_trace() -> list[AnyRecord]:
    """The whole recording: 4 calls, 7 compiles, 2 breaks, 2 causes of recompiling, finished."""
    return list(_block_trace())


@cache
def _block_trace() -> tuple[AnyRecord, ...]:
    """Records are frozen: all tests of a process share them."""
    data = json.loads((DATA / "block.json").read_text())
    out = Builder()
    inductor = Inductor(data, location, tensor)
    opening(out)
    for call, (size, temperature, compiled, hits) in enumerate(CALLS, start=1):
        shape = tensor([[size, 128, 256], "float32", [32768, 256, 1]])
        arguments = (
            Argument(name="x", tensor=shape),
            Argument(name="temperature", value=str(temperature)),
        )
        out.add(CallStart(call=call, arguments=arguments))
        took = sum(compile_frame(out, data, inductor, cid, call) for cid in compiled)
        out.add(Output(stream="stdout", text=f"attention done ({size}, 128, 256)\n"))
        end = CallEnd(call=call, seconds=round(took + 0.3, 3), compiled=compiled, hits=hits)
        out.add(end, 0.3)
    out.add(Progress(stage="run", activity="timing eager against compiled"))
    out.add(
        Speed(
            eager_ms=6.55,
            compiled_ms=6.16,
            eager_mad_ms=0.41,
            compiled_mad_ms=0.38,
            speedup=1.06,
            noise=0.24,
            pairs=60,
            in_noise=True,
            compile_seconds=35.7,
            compile_cpu_seconds=38.0,
            sets=(
                SetSpeed(call=1, eager_ms=6.4, compiled_ms=6.0, pairs=30),
                SetSpeed(call=4, eager_ms=9.9, compiled_ms=9.1, pairs=30),
            ),
            threads=2,
            what="forward + backward",
        ),
        4.0,
    )
    out.add(
        Numerics(
            compared=44,
            max_abs=4.8e-07,
            max_rel=2.1e-05,
            worst=(OutputError(call=1, path="out[0]", max_abs=4.8e-07, max_rel=2.1e-05),),
            within=True,
        )
    )
    out.add(
        End(status="ok", seconds=round(out.clock, 3), lines=len(out.records), exit_code=0)
    )  # fmt: skip
    return tuple(out.records)


def large_trace(records: int) -> list[AnyRecord]:
    """A trace of at least `records` records: the block's, with the compiles of call 1 repeated
    under new frame numbers; for benchmarks and for lists that must stay lazy."""
    data = json.loads((DATA / "block.json").read_text())
    out = Builder()
    inductor = Inductor(data, location, tensor)
    opening(out)
    out.add(CallStart(call=1, arguments=(Argument(name="x", tensor=H),)))
    frame = 0
    done: list[str] = []
    while len(out.records) < records:
        for like in ("0/0", "1/0", "2/0"):
            cid = f"{frame}/0"
            compile_frame(out, data, inductor, cid, 1, like)
            done.append(cid)
            frame += 1
    out.add(CallEnd(call=1, seconds=out.clock, compiled=tuple(done)))
    out.add(End(status="ok", seconds=out.clock, lines=len(out.records), exit_code=0))
    return out.records
