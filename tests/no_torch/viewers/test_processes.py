"""The verdict over several processes: what differs between them is said first."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from tcw.compiler.trace.records import AnyRecord, Start
from tcw.viewers.recording import Recording
from tcw.viewers.text.lines import to_text
from tcw.viewers.text.processes import Process, Several, report
from tests.no_torch.two_traces import after, before
from tests.no_torch.viewers.test_cache_changes import run


def process(records: list[AnyRecord], rank: int) -> Process:
    ranked = [structs.replace(r, rank=rank) if isinstance(r, Start) else r for r in records]
    return Process(Path(f"ddp-rank{rank}-1.tcw"), Recording(ranked))


def said(*processes: Process) -> str:
    return to_text(report(Several(processes), 100, 60, "ddp.tcw"), 100)


def test_a_process_that_compiled_otherwise_says_how() -> None:
    text = said(process(before(), 0), process(before(), 1), process(after(), 2))
    assert text.startswith("3 processes compiled, 2 different results\n")
    assert "rank 0, rank 1:" in text
    first = text.split("rank 2 against rank 0\n")[1].splitlines()[:2]
    assert first[0].startswith("✓ block.py:24  a graph break gone: print()")
    assert "because" in first[1]
    assert text.index(first[0]) < text.index("rank 0, rank 1:"), "before the reports"


def test_processes_that_compiled_the_same_are_told_once() -> None:
    text = said(process(before(), 0), process(before(), 1))
    assert text.startswith("2 processes compiled, all the same\n")
    assert "against" not in text
    assert text.count("browse it:") == 1


def test_later_runs_say_what_caches_did() -> None:
    cold = Process(Path("one.tcw"), run())
    warm = Process(Path("two.tcw"), run("hit", 2000.0))
    other = Process(Path("three.tcw"), run(at=3000.0, key="k2", config=("c2", "7")))
    text = said(other, cold, warm)
    assert text.count(", after process 1") == 2
    first, second = text.split(", after process 1\n")[1:]
    assert first.startswith("✓ served by caches: aot autograd, fx graph; 4.0 s of compiling saved")
    assert second.startswith("✗ aot autograd, fx graph missed in 0/0; compiling took 12.0 s")
    assert "because  torch._inductor.config.max_fusion_size: 64 → 7" in second
    assert text.count("missed in 0/0") == 1
