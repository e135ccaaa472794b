"""Logs that other versions of torch wrote of `versions/train.py.txt`.

Each was made with `TORCH_TRACE`; paths were replaced, entries, stacks of symbols, fields of metrics
and components of keys that these tests do not need were left out, and checksums made anew.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tcw.compiler.trace.key_components import key_of_texts
from tcw.compiler.trace.records import (
    CacheLookup,
    DynamicSize,
    FrameEnd,
    GraphBreak,
    Guards,
    Recompile,
)
from tcw.viewers.recording import Recording
from tests.no_torch.torch_logs.test_reading import recorded

FOLDER = Path(__file__).parent / "versions"
VERSIONS = ("2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "2.12", "2.14")


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def recording(version: str) -> Recording:
    return recorded(gzip.decompress((FOLDER / f"torch-{version}.log.gz").read_bytes()))


def test_every_fixture_is_read() -> None:
    assert {file.name for file in FOLDER.glob("*.gz")} == {f"torch-{v}.log.gz" for v in VERSIONS}


def test_compiles_and_how_they_ended(recording: Recording) -> None:
    assert not recording.losses
    ends = [(frame_end.compile_id, frame_end.status) for frame_end in recording.all(FrameEnd)]
    names = ("0/0", "1/0", "0/1", "1/1", "1/2", "2/0", "2/1")
    assert ends[:7] == [(name, "compiled") for name in names]
    assert ends[7:9] == [("3/0", "failed"), ("4/0", "failed")]
    assert recording.failure is not None
    assert "Unsupported" in recording.failure.type


def test_breaks(recording: Recording, version: str) -> None:
    found = [
        (
            graph_break.compile_id,
            graph_break.location.file,
            graph_break.location.line,
            graph_break.outcome,
        )
        for graph_break in recording.all(GraphBreak)
    ]
    file = "/home/user/train.py"
    # torch 2.5 writes no breaks: one is told by each resume function
    again = [] if version == "2.5" else [("0/1", file, 13, "break")]
    assert found == [("0/0", file, 13, "break"), *again, ("3/0", file, 23, "error")]
    jump, *_, refused = recording.all(GraphBreak)
    assert jump.explanation
    assert jump.source_line.strip() == "if h.sum() > 100:"
    assert refused.type.startswith("builtin: print" if version in ("2.5", "2.6") else "Failed to")
    numbered = version in ("2.9", "2.10", "2.12", "2.14")
    assert bool(refused.gb) == numbered


def test_recompiles_and_sizes(recording: Recording, version: str) -> None:
    failed = [
        (recompile.compile_id, recompile.failed[0].name) for recompile in recording.all(Recompile)
    ]
    assert failed == [
        ("0/1", "x.size(0)"), ("1/1", "h.size(0)"), ("1/2", "scale"), ("2/1", "x.size(0)"),
    ]  # fmt: skip
    first = recording.all(Recompile)[0].failed[0]
    assert (first.expected, first.seen, first.source) == ("4", "6", "L['x']")
    guards = {one.compile_id: one for one in recording.all(Guards)}
    sizes: tuple[DynamicSize, ...] = guards["0/1"].dynamic
    if version != "2.5":  # which writes no symbols
        assert "L['x'].size()[0]" in {size.source for size in sizes}
    assert all(one.count and one.guards for one in recording.all(Guards))


def test_caches(recording: Recording, version: str) -> None:
    lookups = recording.all(CacheLookup)
    caches = {"fx graph"} if version == "2.5" else {"fx graph", "aot autograd"}
    assert {lookup.cache for lookup in lookups} == caches
    assert {lookup.verdict for lookup in lookups} == {"miss"}
    for lookup in lookups:
        if lookup.cache == "fx graph":
            key = key_of_texts("", [recording.text(part) for part in lookup.components])
            assert {"gm", "torch_version", "inductor_config[max_autotune]"} <= set(key.components)
