"""Two runs of the block: as it is, and with its softmax's loop nest vetoed."""

from __future__ import annotations

from msgspec import structs

from tcw.compiler.trace.records import (
    AnyRecord,
    Decided,
    End,
    Environment,
    FusionGroup,
    FusionGroups,
    FusionPair,
    FusionRound,
    Kernel,
    Run,
    Settings,
    Source,
    Speed,
    Start,
    Text,
    Timed,
    WhatIf,
)
from tcw.compiler.trace.writer import text_hash
from tests.block_trace import block_trace

GRAPH = "0/0/forward/lowered"
VETO = "inductor/0/0/forward/fuse/any_dims+exp"
SHARED = (Start, Environment, Source, Text, End)
FIRST, SECOND = ("op9", "op10", "op11"), ("op12", "op13", "op14")


def base_run() -> list[AnyRecord]:
    """The records of the base alone."""
    return block_trace()


def vetoed_run() -> list[AnyRecord]:
    """The records of the run with the veto, as if it were a trace of its own."""
    records: list[AnyRecord] = []
    for record in block_trace():
        records.extend(_vetoed(record))
    return records


def two_runs() -> list[AnyRecord]:
    """One driven trace of both, with what was measured."""
    base, vetoed = base_run(), vetoed_run()
    start = next(one for one in base if isinstance(one, Start))
    texts = {
        record.hash: record
        for records in (base, vetoed)
        for record in records
        if isinstance(record, Text)
    }
    head = [one for one in base if isinstance(one, (Start, Environment, Source))]
    end = [one for one in base if isinstance(one, End)]
    return [
        *head,
        *texts.values(),
        Run(number=1, settings=start.settings),
        *(one for one in base if not isinstance(one, SHARED)),
        Run(number=2, settings=_with_veto(start.settings), because=f"veto {VETO}", compared_with=1),
        *(later(one) for one in vetoed if not isinstance(one, SHARED)),
        whatif(),
        *end,
    ]


def later(record: AnyRecord) -> AnyRecord:
    """Run 2 comes after run 1."""
    moved: AnyRecord = structs.replace(record, at=record.at + 60 if record.at else 0.0)
    return moved


def whatif() -> WhatIf:
    """The softmax, timed alone."""
    return WhatIf(
        base=1,
        run=2,
        scope="kernel",
        graph="0/0/forward",
        base_kernels=("k4",),
        run_kernels=("k4",),
        before=Timed(median=135.04e-6, spread=1.35e-6, runs=600),
        after=Timed(median=120.76e-6, spread=1.21e-6, runs=600),
        difference=-14.28e-6,
        noise=1.35e-6,
        pairs=600,
        equal=True,
    )


def _with_veto(settings: Settings) -> Settings:
    made: Settings = structs.replace(settings, overrides={VETO: "apart"})
    return made


def _vetoed(record: AnyRecord) -> list[AnyRecord]:
    """What becomes of one record of the base."""
    if isinstance(record, Start):
        return [structs.replace(record, settings=_with_veto(record.settings))]
    if isinstance(record, Kernel) and record.id == "k4":
        base = next(r for r in block_trace() if isinstance(r, Text) and r.hash == record.text)
        body = split(base.body)
        return [
            Text(hash=text_hash(body), body=body),
            structs.replace(record, text=text_hash(body), loop_nests=record.loop_nests + 1),
        ]
    if isinstance(record, FusionGroups) and record.graph == GRAPH:
        groups = [group for group in record.groups if not set(group.nodes) & {*FIRST, *SECOND}]
        groups += [
            FusionGroup(name="_".join(nodes), nodes=nodes, kind="loops", label=label)
            for nodes, label in ((FIRST, "amax + any"), (SECOND, "exp + sum + div"))
        ]
        return [structs.replace(record, groups=tuple(groups))]
    if isinstance(record, FusionRound) and record.graph == GRAPH and record.round == 2:
        fused = (("op12_op13", "op14", "op12_op13_op14"), *record.fused[2:])
        return [structs.replace(record, fused=fused)]
    if isinstance(record, Decided) and record.pair is not None and record.pair.graph == GRAPH:
        return _pair(record, record.pair)
    if isinstance(record, Speed):
        return [structs.replace(record, compile_cpu_seconds=3.1)]
    return [record]


def _pair(record: Decided, pair: FusionPair) -> list[AnyRecord]:
    sides = {*pair.first.split("_"), *pair.second.split("_")}
    first = {*pair.first.split("_")}
    if not (sides & set(FIRST) and sides & set(SECOND)):
        return [record]
    if first == {*FIRST, "op12", "op13"}:
        other = structs.replace(pair, first="op12_op13", second="op14")
        return [structs.replace(record, id=f"{record.id}9", pair=other)]
    if {"op9", "op10", "op11"} == first and record.choice == "fuse":
        decided = Decided(
            id=VETO,
            graph="0/0/forward",
            kind="fuse",
            default="fuse",
            choice="apart",
            choices=("fuse", "apart"),
            overridden=True,
        )
        kept = structs.replace(pair, score=())
        return [
            decided,
            structs.replace(record, choice="apart", overridden=True, by=VETO, pair=kept),
        ]
    return [record]


def split(body: str) -> str:
    """The softmax's code with its one nest taken apart after the reductions."""
    lines = body.split("\n")
    start = next(i for i, line in enumerate(lines) if "make_unique" in line)
    buffer = lines[start : start + 4]
    del lines[start : start + 2]
    indent = " " * (len(buffer[2]) - len(buffer[2].lstrip()))
    at = next(i for i, line in enumerate(lines) if "float tmp_acc0 = 0;" in line) - 1
    outer = indent[:-4]
    return "\n".join(
        [
            *lines[:at],
            f"{indent}}}",
            f"{outer}}}",
            f"{outer}{{",
            *buffer,
            f"{indent}{{",
            *lines[at:],
        ]
    )
