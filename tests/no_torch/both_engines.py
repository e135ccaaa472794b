"""A trace of both engines: the block's, and what another engine made of the same lines."""

from __future__ import annotations

from msgspec import structs

from tcw.compiler.trace.records import (
    AnyRecord,
    Decided,
    End,
    EnginePart,
    EngineSpeed,
    Environment,
    FusionGroups,
    Graph,
    Guards,
    Kernel,
    MemoryPlan,
    Numerics,
    Phase,
    Source,
    Speed,
    Start,
    Text,
)
from tests.block_trace import block_trace

SHARED_HEAD = (Start, Environment)


def both_engines_trace() -> list[AnyRecord]:
    """The block's trace as the part of inductor; tcw has half its kernels, and is faster."""
    whole = block_trace()
    head = [as_both(record) for record in whole if isinstance(record, SHARED_HEAD)]
    texts = [record for record in whole if isinstance(record, (Source, Text))]
    end = [record for record in whole if isinstance(record, End)]
    measured = [record for record in whole if isinstance(record, Speed)]
    rest = [r for r in whole if not isinstance(r, (*SHARED_HEAD, Source, Text, End, Speed))]
    code = Text(hash="tcw-code", body="static void nest_softmax() {\n  loop();\n}\n")
    decided = Decided(
        id="tcw/0/0/forward/fuse/exp+sum_1",
        graph="0/0/forward",
        kind="fuse",
        default="fuse",
        choice="apart",
        choices=("fuse", "apart"),
        rule="saves-bytes",
        overridden=True,
    )
    tail: list[AnyRecord] = []
    for engine, factor in (("inductor", 1.0), ("tcw", 0.5)):
        tail.append(EnginePart(engine=engine))
        tail += [structs.replace(one, compiled_ms=one.compiled_ms * factor) for one in measured]
    tail.append(
        EngineSpeed(
            first="inductor",
            second="tcw",
            first_ms=6.16,
            second_ms=3.08,
            speedup=2.0,
            noise=0.03,
            rounds=60,
            in_noise=False,
        )
    )
    ours = [one for record in rest if (one := as_ours(record)) is not None]
    return [
        *head,
        *texts,
        EnginePart(engine="inductor"),
        *rest,
        EnginePart(engine="tcw"),
        code,
        *ours,
        decided,
        *tail,
        *end,
    ]


def as_both(record: AnyRecord) -> AnyRecord:
    if not isinstance(record, Start):
        return record
    settings = structs.replace(record.settings, engine="both")
    return structs.replace(record, settings=settings)


def as_ours(record: AnyRecord) -> AnyRecord | None:
    """What a part of tcw has of it."""
    if isinstance(record, (Graph, Guards, Numerics)):
        # no two records of a recording are alike in their times too: the reader drops the second
        return structs.replace(record, at=record.at + 1e-6)
    if isinstance(record, Kernel):
        number = int(record.id[1:])
        # a graph of calls alone, without a plan, is one that runs on ATen
        if record.predicted or (number % 2 and record.graph != "2/1/forward/lowered"):
            return None
        text = "tcw-code" if record.text else ""
        return structs.replace(record, text=text, loop_nests=1, lines=())
    if isinstance(record, FusionGroups):
        return structs.replace(record, groups=record.groups[:2])
    if isinstance(record, MemoryPlan):
        return structs.replace(record, peak_bytes=(record.peak_bytes or 0) // 2)
    if isinstance(record, Phase):
        return structs.replace(record, seconds=record.seconds / 8, cpu_seconds=record.seconds / 10)
    return None
