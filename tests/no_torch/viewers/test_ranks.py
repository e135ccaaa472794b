"""Ranks of one program: what they did differently first, and who waits."""

from __future__ import annotations

from pathlib import Path

from tcw.compiler.trace.records import (
    AnyRecord,
    CacheLookup,
    Collective,
    Collectives,
    DdpBucket,
    DdpBuckets,
    EagerCollective,
    End,
    FrameEnd,
    FrameStart,
    Graph,
    Location,
    Node,
    Settings,
    Source,
    Start,
    TensorMeta,
    Text,
)
from tcw.compiler.trace.writer import text_hash
from tcw.viewers.file_names import FileNames
from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences.alignment import Alignment
from tcw.viewers.summary.differences.cache_changes import OWN_DEVICE, cache_changes
from tcw.viewers.summary.own_words import common
from tcw.viewers.summary.ranks.collectives import started
from tcw.viewers.summary.ranks.divergence import Divergence, RankMember, first_divergence
from tcw.viewers.summary.ranks.times import rank_times
from tcw.viewers.text.explain import explain
from tcw.viewers.text.lines import to_text
from tcw.viewers.text.processes import Process, Several, report
from tcw.viewers.text.ranks import divergence_lines, ranks_lines

FILE = "/w/train.py"
CODE = """\
def step(x):
    y = relu(x)
    if dist.get_rank() == 1:
        y = exp(y)
    return y


def log(loss):
    if loss > 3:
        dist.all_reduce(loss)
"""


def place(line: int) -> Location:
    return Location(file=FILE, line=line, function="step")


def tensor(*shape: int) -> TensorMeta:
    size = 4
    for one in shape:
        size *= one
    return TensorMeta(shape=shape, dtype="float32", bytes=size)


def compiled(
    *operations: tuple[str, int], id: str = "0/0", rows: int = 4, seconds: float = 1.0
) -> list[AnyRecord]:
    """A compile of operations, each with its line."""
    nodes = [Node(name="x", op="placeholder", target="L_x_", value=tensor(rows, 8))]
    for at, (name, line) in enumerate(operations):
        nodes.append(
            Node(
                name=f"n{at}", op="call_function", target=f"torch.{name}", inputs=(nodes[-1].name,),
                value=tensor(rows, 8), location=place(line),
            )
        )  # fmt: skip
    return [
        FrameStart(compile_id=id, attempt=0, function="step", location=place(1), call=1),
        Graph(id=id, kind="captured", compile_id=id, nodes=tuple(nodes), ops=len(operations)),
        FrameEnd(compile_id=id, status="compiled", seconds=seconds),
    ]


def sent(line: int, *shape: int, operation: str = "all_reduce", count: int = 1) -> EagerCollective:
    return EagerCollective(
        operation=operation, tensors=(tensor(*shape),), ranks=2, count=count, location=place(line)
    )


def member(rank: int, *records: AnyRecord, complete: bool = True, time: float = 0.0) -> RankMember:
    start = Start(
        schema_version=1, tool_version="", settings=Settings(file=FILE, program=True), python="",
        platform="", pid=rank, time=time, rank=rank,
    )  # fmt: skip
    text = Text(hash=text_hash(CODE), body=CODE)
    end = [End(status="ok", seconds=1.0)] if complete else []
    all_: list[AnyRecord] = [start, text, Source(file=FILE, text=text.hash), *records, *end]
    return RankMember(rank, Recording(all_), complete)


def first(*members: RankMember) -> Divergence:
    found = first_divergence(members)
    assert found is not None
    return found


def told(*members: RankMember) -> str:
    return to_text(divergence_lines(first(*members), FileNames("/w"), 100), 100)


RELU = ("relu", 2)
EXP = ("exp", 4)


def test_ranks_that_do_the_same() -> None:
    ranks = [member(rank, *compiled(RELU), sent(10, 2)) for rank in range(3)]
    assert first_divergence(ranks) is None
    assert not ranks_lines(ranks, FileNames("/w"), 100)


def test_a_branch_on_the_rank() -> None:
    ranks = [member(rank, *compiled(RELU, *([EXP] if rank == 1 else []))) for rank in range(4)]
    text = told(*ranks).splitlines()
    assert text[0] == "✗  ranks   rank 1 calls exp  in step"
    assert text[1] == "           train.py:4  y = exp(y)"
    assert text[2] == "           ranks 0, 2, 3 do not call exp"
    assert text[3] == "           because  train.py:3  if dist.get_rank() == 1:"


def test_a_size() -> None:
    found = first(member(0, *compiled(RELU)), member(1, *compiled(RELU, rows=6)))
    assert [side.words for side in found.sides] == ["gets x as f32 4×8", "gets x as f32 6×8"]
    assert (found.subject, found.place and found.place.line) == (1, 2)
    assert "different sizes" in found.why
    assert "drop_last" in found.fix


def test_one_compiles_more() -> None:
    """The other goes on: who has not come so far says nothing."""
    more = [*compiled(RELU), *compiled(EXP, id="1/0")]
    found = first(member(0, *compiled(RELU)), member(1, *more))
    assert (found.kind, found.compile_id) == ("frame", "1/0")
    assert first_divergence([member(0, *compiled(RELU), complete=False), member(1, *more)]) is None


def test_a_collective_that_only_one_starts() -> None:
    alike = compiled(RELU)
    found = first(member(0, *alike), member(1, *alike, sent(10, 2)))
    assert found.sides[found.subject].words == "starts all_reduce f32 2"
    assert found.condition is not None
    assert found.condition.text == "    if loss > 3:"
    (wait,) = found.waits
    assert (wait.ranks, wait.because) == ((1,), "rank 0 does not start it")


def test_sizes_of_collectives() -> None:
    found = first(member(0, sent(10, 2)), member(1, sent(10, 3)))
    assert [wait.ranks for wait in found.waits] == [(0,), (1,)]
    assert found.waits[0].because == "rank 1 is in all_reduce f32 3"


def test_groups_of_some_ranks_are_not_compared() -> None:
    ranks = [member(rank, *compiled(RELU)) for rank in range(3)]
    ranks.append(member(3, *compiled(RELU), sent(10, 2)))  # in a group of two
    assert first_divergence(ranks) is None


def test_a_warm_cache_is_said_after_what_differs_in_the_code() -> None:
    def cached(verdict: str, *operations: tuple[str, int]) -> list[AnyRecord]:
        lookup = CacheLookup(
            cache="fx graph", verdict=verdict, compile_id="0/0", graph="0/0/forward", key="k"
        )  # type: ignore[arg-type]
        return [*compiled(*operations), lookup]

    found = first(member(0, *cached("miss", RELU)), member(1, *cached("hit", RELU)))
    assert found.kind == "cache"
    assert (
        found.sides[1].words == "has a hit in the fx graph cache for 0/0/forward, with the same key"
    )
    found = first(member(0, *cached("miss", RELU)), member(1, *cached("hit", RELU, EXP)))
    assert found.kind == "graph"


def test_ranks_that_compile_longer_are_waited_for() -> None:
    again = compiled(RELU, id="1/0", seconds=5.0)
    buckets = DdpBuckets(
        compile_id="1/0", bucket_bytes=1 << 20, first_bucket_bytes=1 << 20,
        buckets=(DdpBucket(number=1, bytes=1 << 20, limit=1 << 20, parameters=("w",), nodes=1),),
    )  # fmt: skip
    quick = compiled(RELU, id="1/0", seconds=1.0)
    ranks = [member(0, buckets, *quick), member(1, buckets, *quick), member(2, buckets, *again)]
    assert [one.straggler for one in rank_times(ranks)] == [False, False, True]
    killed = RankMember(3, Recording(), complete=False)
    assert rank_times([*ranks, killed]) == rank_times(ranks), "how long it compiled is not known"
    text = to_text(ranks_lines(ranks, FileNames("/w"), 100), 100)
    assert "compile  1.0 s (rank 0) to 5.0 s (rank 2) a rank" in text
    assert "rank 2 is a straggler" in text
    assert "the others wait up to 4.0 s for rank 2" in text
    assert [one.words for one in started(ranks[0].recording)] == [
        "all_reduce of DDP's bucket 1 (1.0 MB)"
    ]


def test_compiles_that_ddp_cut_alike_are_one_phrase() -> None:
    def cut(compile_id: str, *sizes: int) -> DdpBuckets:
        buckets = tuple(
            DdpBucket(number=i, bytes=size << 20, limit=1 << 20, parameters=("w",), nodes=1)
            for i, size in enumerate(sizes, 1)
        )
        return DdpBuckets(compile_id, buckets, bucket_bytes=1 << 20, first_bucket_bytes=1 << 20)

    cuts = [cut("1/0", 1, 1, 1), cut("1/1", 1, 1, 1), cut("2/0", 1, 4), cut("3/0", 1)]
    text = to_text(explain(member(0, *compiled(RELU, id="1/0"), *cuts).recording), 200)
    assert "DDP cut 1/0, 1/1 into 3 buckets of 1.0 MB" in text
    assert "DDP cut 2/0 into buckets of 1.0 MB, 4.0 MB" in text
    assert "3/0 into" not in text


def test_the_order_of_collectives_in_a_graph() -> None:
    def scheduled(*names: str) -> list[AnyRecord]:
        operations = tuple(f"torch.ops._c10d_functional.{name}.default" for name in names)
        details = tuple(Collective(tensors=(tensor(2),)) for _ in names)
        record = Collectives(
            compile_id="0/0", graph="0/0/inference", operations=operations, details=details
        )
        return [*compiled(RELU), record]

    one, other = scheduled("all_reduce_", "broadcast"), scheduled("broadcast", "all_reduce")
    found = first(member(0, *one), member(1, *other))
    assert found.kind == "collective"
    assert found.sides[1].words == "has broadcast f32 2 in 0/0/inference"
    assert len(found.waits) == 2


def looked_up(device: int, rows: int = 4) -> list[AnyRecord]:
    """A miss whose key has an input on the rank's own GPU."""
    tensor = f"shape=torch.Size([{rows}, 8]), device=device(type='cuda', index={device})"
    lines = (
        f"[i{rows}{device}] example_inputs[0]: TensorMetadata(dtype=torch.float32, {tensor}, "
        "layout=torch.strided)\n[t] torch_version: torch"
    )
    lookup = CacheLookup(
        cache="fx graph", graph="0/0/forward", compile_id="0/0", verdict="miss",
        key=f"k{rows}{device}", components=(text_hash(lines),),
    )  # fmt: skip
    return [*compiled(RELU, rows=rows), Text(hash=text_hash(lines), body=lines), lookup]


def missed(*members: RankMember) -> list[str]:
    base, run = (one.recording for one in members)
    return [change.because for change in cache_changes(Alignment(base, run))]


def test_the_number_of_a_gpu_is_a_rank_s_own() -> None:
    one, other, larger = (member(at % 2, *looked_up(at % 2, rows)) for at, rows in
                          ((0, 4), (1, 4), (1, 6)))  # fmt: skip
    assert first_divergence([one, other]) is None
    assert missed(one, other) == [OWN_DEVICE]
    assert missed(one, larger) == ["input x: shape [4, 8] → [6, 8]"]


def test_ranks_do_not_follow_each_other() -> None:
    """One that fails before another compiles has not warmed the cache for it."""
    ranks = [member(rank, *looked_up(rank), time=9.0 - 5 * rank).recording for rank in range(2)]
    several = Several([Process(Path(f"{n}.tcw"), rank) for n, rank in enumerate(ranks)])
    text = to_text(report(several, 100, 40, "f"), 100)
    assert "after rank" not in text
    assert "against" not in text


def test_what_each_rank_has_of_its_own_does_not_count() -> None:
    text = "cuda:{0} index={0} 0x7f00{0}00 stream{0} set_device({0}) float32, device={0}, size=[4]"
    assert common(text.format(1)) == common(text.format(2))
