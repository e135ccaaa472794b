"""A trace of several runs: each part reads as if it had been recorded alone."""

from __future__ import annotations

from msgspec import structs

from tcw.compiler.trace.records import (
    End,
    EnginePart,
    EngineSpeed,
    Environment,
    FrameStart,
    Graph,
    Location,
    Note,
    Run,
    Settings,
    Start,
    Text,
    WhatIf,
)
from tcw.viewers.recording import Recording

SETTINGS = Settings(file="/m/model.py", record="steps")
VETO = structs.replace(SETTINGS, overrides={"tcw/0/0/forward/fuse/a+b": "apart"})


def start(settings: Settings = SETTINGS, pid: int = 1) -> Start:
    return Start(
        schema_version=1, tool_version="0", settings=settings, python="3.11", platform="", pid=pid,
        time=0.0,
    )  # fmt: skip


def frame(compile_id: str) -> FrameStart:
    place = Location(file="/m/model.py", line=3)
    return FrameStart(compile_id=compile_id, attempt=0, function="f", location=place, call=1)


def graph(name: str) -> Graph:
    return Graph(id="0/0", kind="captured", compile_id="0/0", nodes=(), code=name)


def test_each_run_reads_as_if_it_had_been_recorded_alone() -> None:
    recording = Recording(
        [
            start(),
            Run(number=1, settings=SETTINGS),
            Environment(torch="2"),
            Text(hash="t", body="text"),
            frame("0/0"),
            graph("first"),
            Run(number=2, settings=VETO, because="veto a+b", compared_with=1),
            Environment(torch="2"),
            frame("0/0"),
            graph("second"),
            WhatIf(base=1, run=2, scope="kernel"),
            Note(on="src:/m/model.py:3", text="here"),
            End(status="ok", seconds=1.0),
        ]
    )
    first, second = recording.runs[1], recording.runs[2]
    assert first.start is not None
    assert first.start.settings == SETTINGS
    assert second.start is not None
    assert second.start.settings == VETO
    assert (first.graphs["0/0"].code, second.graphs["0/0"].code) == ("first", "second")
    assert [len(run.all(FrameStart)) for run in (first, second)] == [1, 1]
    assert [len(run.all(Environment)) for run in (first, second)] == [1, 1]
    for run in (first, second):
        assert run.text("t") == "text"
        assert run.end is not None
        assert run.all(Note)
        assert not run.all(WhatIf)
        assert not run.runs
    assert recording.all(WhatIf)
    assert len(recording.records) == 13


def test_a_run_of_both_engines_has_a_part_for_each() -> None:
    both = structs.replace(SETTINGS, engine="both")
    recording = Recording(
        [
            start(both),
            Run(number=1, settings=both),
            Environment(torch="2"),
            EnginePart(engine="inductor"),
            graph("inductor's"),
            EnginePart(engine="tcw"),
            graph("ours"),
            EngineSpeed(
                first="inductor",
                second="tcw",
                first_ms=1.0,
                second_ms=1.0,
                speedup=1.0,
                noise=0.1,
                rounds=3,
                in_noise=True,
            ),
            Run(number=2, settings=SETTINGS),
            graph("alone"),
        ]
    )
    assert not recording.engines
    run = recording.runs[1]
    assert list(run.engines) == ["inductor", "tcw"]
    assert run.engines["inductor"].graphs["0/0"].code == "inductor's"
    assert run.engines["tcw"].graphs["0/0"].code == "ours"
    start_of_part = run.engines["tcw"].start
    assert start_of_part is not None
    assert start_of_part.settings.engine == "tcw"
    assert run.all(EngineSpeed)
    assert not recording.runs[2].engines
    assert recording.runs[2].graphs["0/0"].code == "alone"


def test_a_worker_that_was_started_again_does_not_replace_the_start() -> None:
    recording = Recording(
        [
            start(pid=7),
            Run(number=1, settings=SETTINGS),
            Run(number=2, settings=VETO),
            start(VETO, pid=8),
        ]
    )
    assert recording.start is not None
    assert recording.start.pid == 7
    second = recording.runs[2].start
    assert second is not None
    assert second.settings == VETO
