"""Ranks of torchrun: what they did differently first, why, and who waits."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tcw.compiler.trace.records import Collectives, DdpBuckets, EagerCollective
from tcw.viewers.file_names import FileNames
from tcw.viewers.recording import Recording
from tcw.viewers.summary.ranks.collectives import operation_name
from tcw.viewers.summary.ranks.divergence import Divergence, RankMember, first_divergence
from tcw.viewers.text.lines import to_text
from tcw.viewers.text.ranks import ranks_lines
from tcw.workbench import DOOR
from tests.cpu.command_line import Done
from tests.cpu.test_run import recordings, run, started

PROGRAM = Path(__file__).with_name("ranks.py")


def line(mark: str) -> int:
    """The marked line of the program."""
    lines = PROGRAM.read_text().splitlines()
    (found,) = (at for at, one in enumerate(lines, 1) if one.endswith(f"# {mark}"))
    return found


def launch(ranks: int, kind: str, backend: str, *rest: str) -> tuple[str, ...]:
    runner = ("-m", "torch.distributed.run", "--nproc-per-node", str(ranks))
    return (*runner, str(PROGRAM), kind, backend, *rest)


def ran(
    folder: Path, ranks: int, kind: str, backend: str = "aot_eager", *rest: str
) -> tuple[Done, Divergence | None, dict[int, Recording]]:
    """The command's result, the first difference, and the recording of each rank."""
    done = run(folder, "-o", "traces", *launch(ranks, kind, backend, *rest), OMP_NUM_THREADS="1")
    found = by_rank(folder / "traces")
    assert sorted(found) == list(range(ranks)), done.err
    return done, first_divergence(members(found)), found


def by_rank(folder: Path) -> dict[int, Recording]:
    return {
        recording.start.rank: recording
        for recording in recordings(folder)
        if recording.start is not None and recording.start.rank is not None
    }


def members(found: dict[int, Recording]) -> list[RankMember]:
    return [RankMember(rank, one, one.end is not None) for rank, one in sorted(found.items())]


@pytest.mark.long
def test_a_branch_on_the_rank(tmp_path: Path) -> None:
    """The first finding names the rank, the line and the condition; the report begins with it."""
    done, found, _ = ran(tmp_path, 2, "branch")
    assert done.code == 0, done.err
    assert found is not None
    side = found.sides[found.subject]
    assert (found.kind, side.ranks, side.words) == ("graph", (1,), "calls sigmoid")
    assert found.place is not None
    assert found.condition is not None
    assert (found.place.line, found.condition.line) == (line("the operation"), line("the branch"))
    told = done.err[: done.err.index("rank 1 against rank 0")]
    assert "rank 1 calls sigmoid  in forward" in told
    assert f"ranks.py:{line('the operation')}  x = torch.sigmoid(x)" in told
    assert f"because  ranks.py:{line('the branch')}  if KIND ==" in told


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_that_do_the_same(tmp_path: Path, ranks: int) -> None:
    done, found, of = ran(tmp_path, ranks, "same")
    assert done.code == 0, done.err
    assert found is None
    assert f"{ranks} processes compiled, all the same" in done.err
    assert "✗" not in done.err
    assert all(one.all(DdpBuckets) for one in of.values())


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize(("kind", "mark"), [("size", "the layers"), ("fsdp size", "the block")])
def test_a_size(tmp_path: Path, ranks: int, kind: str, mark: str) -> None:
    done, found, _ = ran(tmp_path, ranks, kind)
    assert found is not None, done.err
    side = found.sides[found.subject]
    others = tuple(one for one in range(ranks) if one != 1)
    assert side.ranks == (1,)
    assert [one.ranks for one in found.sides if one is not side] == [others]
    assert side.words == "gets x as f32 6×8"
    assert found.place is not None
    assert found.place.line == line(mark)
    assert "other sizes" in found.why
    words = f"rank{'s' if ranks > 2 else ''} {', '.join(map(str, others))} "
    assert f"{words}get{'' if ranks > 2 else 's'} x as f32 4×8" in done.err


@pytest.mark.long
def test_a_size_in_a_later_call(tmp_path: Path) -> None:
    """The other rank waits in the all-reduce of DDP's bucket, which its own graph starts too."""
    done, found, _ = ran(tmp_path, 2, "resize")
    assert found is not None, done.err
    side = found.sides[found.subject]
    assert (found.kind, side.ranks) == ("recompile", (1,))
    assert side.words == "recompiles forward in call 3: x.size(0) 4 → 6"
    assert [wait.ranks for wait in found.waits] == [(0,)]
    assert "DDP's bucket 1" in found.waits[0].words
    assert "rank 1 compiled" in found.waits[0].because


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 4])
def test_an_extra_layer(tmp_path: Path, ranks: int) -> None:
    done, found, _ = ran(tmp_path, ranks, "layer")
    assert found is not None, done.err
    side = found.sides[found.subject]
    assert (side.ranks, side.words) == ((1,), "calls linear in layers.2")
    assert found.place is not None
    assert found.place.line == line("the layers")
    assert found.why.startswith("its model has layers.2, which rank")


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "mark"), [("outside", "the one outside"), ("in the graph", "the one in the graph")]
)
def test_a_collective_of_one_rank(tmp_path: Path, kind: str, mark: str) -> None:
    """gloo fails or pairs what does not belong together; nothing of ours hangs."""
    _, found, _ = ran(tmp_path, 2, kind)
    assert found is not None
    side = found.sides[found.subject]
    assert side.ranks == (1,)
    assert "all_reduce" in side.words
    assert found.place is not None
    assert found.condition is not None
    assert found.place.line == line(mark)
    assert found.condition.line == line(mark) - 1
    waiting = [wait for wait in found.waits if wait.ranks == (1,)]
    assert len(waiting) == 1
    assert waiting[0].place is not None
    assert waiting[0].place.line == line(mark)


@pytest.mark.long
def test_a_cache_that_is_warm_on_one_rank(tmp_path: Path) -> None:
    caches = tmp_path / "caches"
    started(tmp_path, *launch(2, "cache", "inductor", str(caches)), OMP_NUM_THREADS="1")
    import shutil

    shutil.rmtree(caches / "rank0")
    done, found, _ = ran(tmp_path, 2, "cache", "inductor", str(caches))
    assert found is not None, done.err
    assert found.kind == "cache"
    words = {side.ranks: side.words for side in found.sides}
    assert " hit " in words[1,]
    assert " miss " in words[0,]
    assert " key: no entry " in words[0,]
    assert found.place is not None
    assert "one was warm" in found.why


@pytest.mark.long
def test_fsdp(tmp_path: Path) -> None:
    done, found, of = ran(tmp_path, 2, "fsdp")
    assert done.code == 0, done.err
    assert found is None
    names = {collective.operation for collective in of[0].all(EagerCollective)}
    assert names >= {"all_gather_into_tensor", "reduce_scatter_tensor"}


@pytest.mark.long
def test_ranks_that_hang_are_interrupted_and_told(tmp_path: Path) -> None:
    """While they hang, the traces say who waits; ctrl-c ends the program, and then tcw."""
    process = subprocess.Popen(
        [
            *(sys.executable, DOOR, "run", "-o", "traces"),
            *launch(2, "hang", "aot_eager"),
        ],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        until = time.monotonic() + 200
        while time.monotonic() < until and not _both_compiled(tmp_path / "traces"):
            time.sleep(1)
        told = started(tmp_path, DOOR, "explain", "traces")
        assert told.code == 0, told.err
        assert "still running" in " ".join(told.out.split())
        os.killpg(process.pid, signal.SIGINT)
        _, error = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        for one in by_rank(tmp_path / "traces").values():  # torchrun's are in sessions of their own
            with contextlib.suppress(ProcessLookupError):
                os.kill(one.start.pid, signal.SIGKILL)  # type: ignore[union-attr]
    assert "2 processes compiled" in error


def _both_compiled(folder: Path) -> bool:
    found = by_rank(folder) if folder.is_dir() else {}
    return len(found) == 2 and all(one.all(DdpBuckets) for one in found.values())


def test_a_report_of_one_rank_has_no_such_lines() -> None:
    assert not to_text(ranks_lines([], FileNames(), 100), 100)


@pytest.mark.long
def test_tensor_parallel(tmp_path: Path) -> None:
    """DTensor's collectives are in the compiled graphs."""
    done, found, of = ran(tmp_path, 2, "tensor parallel", "inductor")
    assert done.code == 0, done.err
    assert found is None or found.kind == "cache"
    scheduled = of[0].all(Collectives) or of[1].all(Collectives)
    names = {operation_name(name) for one in scheduled for name in one.operations}
    assert "all_reduce" in names
