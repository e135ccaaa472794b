"""A compile that is driven: the same kernels, runs like fresh recordings, nothing left behind."""

from __future__ import annotations

import os
import queue
import signal
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from msgspec import structs

from tcw.compiler.protocol.commands import Answer, Breakpoint, Go, Rerun, SetBreakpoints
from tcw.compiler.trace.records import (
    AnyRecord,
    CallEnd,
    Decided,
    End,
    Failure,
    FrameEnd,
    Graph,
    GraphBreak,
    Numerics,
    PassChange,
    Phase,
    Refused,
    Resumed,
    Run,
    Settings,
    StageStart,
    Start,
    Step,
    Waiting,
)
from tcw.compiler.trace.records.session import Engine
from tcw.viewers.recording import Recording
from tcw.workbench.worker.client import Driver, record
from tests.cpu.worker.driven import MODEL, Person, person, runs, vetoed, written
from tests.cpu.worker.test_kill import parent_of
from tests.decided import asked_in, pairs_in
from tests.long import mostly_long

ROUNDS = """
import torch

def model(x, y):
    h = torch.nn.functional.layer_norm(torch.softmax(x, -1) + y, (32,))
    return torch.nn.functional.gelu(h) * y.sum(0, keepdim=True)

example_inputs = (torch.randn(64, 32), torch.randn(64, 32))
"""

ENGINES: tuple[Engine, ...] = ("inductor", "tcw")
engines = pytest.mark.parametrize("engine", ENGINES)
all_steps = pytest.mark.parametrize("engine", mostly_long(ENGINES, ("tcw",)))
"""Of a session with every kind of step, which takes Inductor twenty seconds."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("driven") / "model.py"
    file.write_text(MODEL)
    return file


def alone(settings: Settings) -> Recording:
    """The same, not driven. What is compared is written before anything is built."""
    recording = Recording()
    record(settings, trace=None, on_record=lambda one: recording.feed([one]))
    assert recording.end is not None
    assert recording.end.status == "ok"
    return recording


@pytest.fixture(scope="module")
def undriven(file: Path) -> Callable[[Engine], Recording]:
    return cache(lambda engine: alone(Settings(file=str(file), engine=engine, until="codegen")))


@pytest.fixture(scope="module")
def driven(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Engine], Person]:
    """An engine once, with every kind of step, then run several times more."""

    @cache
    def found(engine: Engine) -> Person:
        settings = Settings(file=str(file), engine=engine)
        trace = tmp_path_factory.mktemp(engine) / "run.tcw"
        with person(settings, trace) as one:
            drive(one)
        return one

    return found


def drive(one: Person) -> None:
    """Every instruction of run 1; then a veto, and the same again without it; then by stages."""
    one.until_end("instruction")
    again = structs.replace(one.settings, overrides={vetoed(one): "apart"})
    one.send(Rerun(settings=again, because="veto", compare_with=1, measure=False))
    assert one.waits().kind == "end"
    one.send(Rerun(settings=one.settings, because="undo", wait=True))
    assert one.waits().kind == "start"
    one.until_end("decision")
    one.send(Rerun(settings=one.settings, wait=True))
    one.waits()
    one.until_end("stage")
    quick = structs.replace(one.settings, until="codegen")
    one.send(Rerun(settings=quick, wait=True))
    one.waits()
    one.until_end("graph")
    one.send(Rerun(settings=quick, wait=True))
    one.waits()
    one.goes("frame")
    one.goes("over")
    one.until_end("pass")


@all_steps
def test_stepping_by_anything_gives_the_kernels_of_an_undriven_recording(
    engine: Engine, driven: Callable[[Engine], Person], undriven: Callable[[Engine], Recording]
) -> None:
    expected = written(undriven(engine))
    assert expected
    for number, run in runs(driven(engine)).items():
        if number != 2:
            assert written(run) == expected, number


def test_stepping_by_decisions_gives_inductors_kernels(
    file: Path, undriven: Callable[[Engine], Recording]
) -> None:
    with person(Settings(file=str(file), engine="inductor", until="codegen")) as one:
        one.until_end("decision")
    (run,) = runs(one).values()
    assert written(run) == written(undriven("inductor"))
    waits = [waiting.decision for waiting in run.all(Waiting) if waiting.kind == "decision"]
    assert waits == [one.id for one in asked_in(run)]
    assert waits


@all_steps
def test_it_waited_where_it_was_told_to(engine: Engine, driven: Callable[[Engine], Person]) -> None:
    found = runs(driven(engine))
    first = found[1]
    kinds = [waiting.kind for waiting in first.all(Waiting)]
    assert kinds == ["start", *["step"] * len(first.all(Step)), "end"]
    assert len(first.all(Resumed)) == len(kinds)
    at = [waiting.location for waiting in first.all(Waiting)[1:-1]]
    assert at == [step.location for step in first.all(Step)]
    asked = [one.id for one in asked_in(found[3])]
    assert asked
    assert asked == [
        waiting.decision for waiting in found[3].all(Waiting) if waiting.kind == "decision"
    ]
    stages = [waiting.stage for waiting in found[4].all(Waiting) if waiting.kind == "stage"]
    assert stages == ["capture", *(start.stage for start in found[4].all(StageStart))]
    graphs = [waiting.graph for waiting in found[5].all(Waiting) if waiting.kind == "graph"]
    assert graphs == [graph.id for graph in found[5].all(Graph)]
    passes = [waiting for waiting in found[6].all(Waiting) if waiting.kind == "pass"]
    assert len(passes) == len(found[6].all(PassChange))


@all_steps
def test_both_engines_pass_through_all_stages(
    engine: Engine, driven: Callable[[Engine], Person]
) -> None:
    stages = {start.stage for start in runs(driven(engine))[1].all(StageStart)}
    assert stages == {
        "autograd",
        "passes",
        "lowering",
        "fusion",
        "memory",
        "codegen",
        "build",
        "run",
    }


@all_steps
def test_another_run_is_as_a_recording_of_its_own(
    engine: Engine, driven: Callable[[Engine], Person], undriven: Callable[[Engine], Recording]
) -> None:
    """With a veto it is that of a recording with the same overrides; after it, run 1's again."""
    found = runs(driven(engine))
    two = found[2]
    assert two.start is not None
    assert two.start.settings.overrides
    fresh = alone(structs.replace(two.start.settings, record="default", until="codegen"))
    assert written(two) == written(fresh)
    assert written(two) != written(undriven(engine))
    assert [
        decided.overridden
        for decided in two.all(Decided)
        if decided.id in two.start.settings.overrides
    ]
    for run in (found[1], two, found[3]):
        numerics = run.numerics
        assert numerics is not None
        assert numerics.within, "the model's state is as it was before run 1"
    ids = [[graph.id for graph in run.all(Graph)] for run in found.values()]
    assert all(one == ids[0] for one in ids)


@all_steps
def test_no_time_that_was_measured_holds_a_wait(
    engine: Engine, driven: Callable[[Engine], Person]
) -> None:
    run = runs(driven(engine))[1]
    waited = sum(resumed.seconds for resumed in run.all(Resumed)[1:])
    last = max(step.at for step in run.all(Step))
    first = min(step.at for step in run.all(Step))
    frame = run.all(FrameEnd)[0]
    call = run.all(CallEnd)[0]
    # the wall clock of the frame holds all waits; what was measured does not
    assert frame.at - first >= waited
    assert frame.seconds <= frame.at - first - waited + (first - run.all(Run)[0].at)
    assert call.seconds <= call.at - run.all(Run)[0].at - waited
    assert last - first >= 0
    for phase in run.all(Phase):
        assert phase.seconds <= call.seconds + 0.5
        parent = next((one for one in run.all(Phase) if one.id == phase.parent), None)
        if parent is not None:
            assert parent.start <= phase.start + 1e-6
            assert phase.start + phase.seconds <= parent.start + parent.seconds + 1e-6


@engines
def test_a_refused_force_keeps_waiting_and_a_veto_holds(engine: Engine, file: Path) -> None:
    settings = Settings(file=str(file), engine=engine, until="fusion")
    first = Breakpoint(number=1, kind="decision", decision="fuse", once=True)
    with person(settings, breakpoints=[first]) as one:
        waiting = one.goes()
        assert (waiting.kind, waiting.breakpoint) == ("decision", 1)
        one.send(Answer(id=waiting.decision, choice="weld"))
        assert one.next(Refused).rule == "no-such-choice"
        for asked in asked_in(one)[-1].forbidden:
            one.send(Answer(id=waiting.decision, choice=asked.choice))
            assert one.next(Refused).rule == asked.rule
        assert one.all(Waiting)[-1] == waiting
        one.send(SetBreakpoints(breakpoints=(Breakpoint(number=2, kind="rejection"),)))
        one.send(Go(mode="continue", choice="apart"))
        waiting = one.waits()
        while waiting.kind != "end":
            asked = asked_in(one)[-1]
            assert asked.default == "apart"
            one.send(SetBreakpoints(breakpoints=()))
            waiting = one.goes()
        vetoed = asked_in(one)[0].id
        last = [decided for decided in one.all(Decided) if decided.id == vetoed][-1]
        assert (last.choice, last.default == "apart" or last.overridden) == ("apart", True)


BREAKING = """
import torch

def inner(x):
    return x.sin()

def model(x):
    y = inner(x) + 1
    print("broken")
    return y * 2

example_inputs = [(torch.ones(4),), (torch.ones(6),)]
"""


def test_breaks_recompiles_misses_and_lines(tmp_path: Path) -> None:
    """Across a break that restarts the frame, and a second call that compiles again."""
    file = tmp_path / "model.py"
    file.write_text(BREAKING)
    wanted = [
        Breakpoint(number=1, kind="break"),
        Breakpoint(number=2, kind="recompile"),
        Breakpoint(number=3, kind="line", file="model.py", line=8),
        Breakpoint(number=4, kind="miss"),
    ]
    settings = Settings(file=str(file), engine="tcw", until="autograd")
    with person(settings, breakpoints=wanted) as one:
        found = one.until_end()
        kinds = [(waiting.breakpoint, waiting.compile_id, waiting.attempt) for waiting in found]
        assert kinds[:3] == [(3, "0/0", 0), (1, "0/0", 0), (3, "0/0", 1)]
        assert (2, "0/1", 0) in kinds
        assert found[1].location is not None
        assert found[1].location.line == 9
        assert one.all(GraphBreak)
        one.send(SetBreakpoints(breakpoints=()))
        one.send(Rerun(settings=settings, wait=True))
        one.waits()
        one.goes("instruction")
        while one.goes("line").location.line != 8:  # type: ignore[union-attr]
            pass
        inside = one.goes("instruction")
        while inside.location is not None and inside.location.line != 5:
            inside = one.goes("instruction")
        out = one.goes("out")
        assert out.location is not None
        assert out.location.line == 8
        again = one.goes("out")
        assert again.kind == "step"
        assert "0/0 is done" in again.why


@pytest.mark.parametrize(
    ("engine", "places"),
    [("inductor", ("decision", "running")), ("tcw", (None, "instruction", "running"))],
)
def test_stop_at_any_place_leaves_nothing(
    engine: Engine, places: tuple[str | None, ...], file: Path, tmp_path: Path
) -> None:
    settings = Settings(file=str(file), engine=engine, until="fusion")
    for place in places:
        with person(settings, tmp_path / "run.tcw") as one:
            if place == "running":
                one.send(Go(mode="continue"))
                one.next(Graph)
            elif place is not None:
                one.goes(place)  # type: ignore[arg-type]
        assert one.driver.end is not None
        assert one.driver.end.status == "interrupted"


DYING = """
import os, signal, torch
model = torch.nn.Linear(4, 4)
if os.path.exists(__file__ + ".die"):
    os.kill(os.getpid(), signal.SIGKILL)
example_inputs = (torch.ones(2, 4),)
"""


def test_a_worker_that_died_is_started_again_for_the_next_run(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(DYING)
    settings = Settings(file=str(file), engine="tcw", until="capture")
    with person(settings, tmp_path / "run.tcw") as one:
        assert one.goes().kind == "end"
        (tmp_path / "model.py.die").touch()
        file.write_text(DYING + "\n")  # a changed file is read by a worker of its own
        one.send(Rerun(settings=settings))
        dead = one.waits()
        assert (dead.kind, "crashed" in dead.why) == ("end", True)
        assert one.all(Failure)[-1].type == "SIGKILL"
        (tmp_path / "model.py.die").unlink()
        one.send(Rerun(settings=settings, compare_with=1))
        assert one.waits().kind == "end"
    assert [run.number for run in one.all(Run)] == [1, 2, 3]
    assert one.driver.end is not None
    assert one.driver.end.status == "ok"
    recording = Recording(one.records)
    assert list(recording.runs) == [1, 2, 3]
    assert recording.runs[3].all(Graph)


def test_killed_while_it_waits_it_goes_on_with_another_run(file: Path, tmp_path: Path) -> None:
    """The worker, then the guardian that watches it: the state is told, and nothing is left."""
    settings = Settings(file=str(file), engine="tcw", until="capture")
    with person(settings, tmp_path / "run.tcw") as one:
        one.goes("instruction")
        for number, victim in enumerate((lambda pid: pid, parent_of), 2):
            os.kill(victim(one.all(Start)[-1].pid), signal.SIGKILL)
            dead = one.waits()
            assert dead.kind == "end"
            assert "the worker is gone: crashed" in dead.why
            one.send(Rerun(settings=settings, wait=True))
            assert one.waits().kind == "start"
            assert one.all(Run)[-1].number == number
        assert one.goes().kind == "end"
    assert one.driver.end is not None
    assert one.driver.end.status == "ok"


@pytest.mark.parametrize("engine", mostly_long(ENGINES, ("inductor",)))
def test_a_run_goes_on_to_the_very_decision_that_it_overrules(engine: Engine, file: Path) -> None:
    settings = Settings(file=str(file), engine=engine, until="fusion")
    with person(settings) as one:
        one.until_end()
        id = vetoed(one)
        again = structs.replace(settings, overrides={id: "apart"})
        until = Breakpoint(number=0, kind="decision", id=id)
        one.send(Rerun(settings=again, compare_with=1, measure=False, until=until))
        waiting = one.waits()
        assert (waiting.kind, waiting.why) == ("decision", "run to cursor")
        told = one.records[-2]
        assert isinstance(told, Decided)
        assert told.id == id
        assert one.goes().kind == "end"
        answers = [decided for decided in one.all(Decided) if decided.id == id]
        assert answers[-1].choice == "apart"
        assert any(decided.overridden for decided in answers)


def test_a_first_run_that_does_not_wait(file: Path) -> None:
    """As a recorded trace is run again."""
    settings = Settings(file=str(file), engine="tcw", until="capture")
    simple_queue: queue.SimpleQueue[AnyRecord] = queue.SimpleQueue()
    first = Rerun(settings=settings, because="dynamic on")
    driver = Driver(settings, None, simple_queue.put, first=first)
    kinds: list[str] = []
    runs: list[Run] = []
    while "end" not in kinds:
        record = simple_queue.get(timeout=240)
        if isinstance(record, Waiting):
            kinds.append(record.kind)
        elif isinstance(record, Run):
            runs.append(record)
    driver.stop()
    assert driver.join(240)
    assert kinds == ["end"]
    assert [(run.number, run.because, run.compared_with) for run in runs] == [(1, "dynamic on", 0)]


SCRIPT = """
import torch
print("hello")

@torch.compile(backend="tcw")
def f(x):
    return x.sin() + 1

f(torch.ones(4))
"""


def test_a_script_is_stepped_and_run_again_in_a_new_worker(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(SCRIPT)
    settings = Settings(file=str(file), until="autograd")
    with person(settings, tmp_path / "run.tcw") as one:
        waiting = one.goes("instruction")
        assert waiting.location is not None
        assert waiting.location.file == str(file)
        assert one.until_end()[-1].kind == "end"
        one.send(Rerun(settings=settings, wait=True))
        assert one.waits().kind == "start"
        assert one.goes().kind == "end"
    first, second = Recording(one.records).runs.values()
    assert [step.opcode for step in first.all(Step)] == [step.opcode for step in second.all(Step)]


UNCOPYABLE = (
    MODEL
    + """
class Lock(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Net()

    def __deepcopy__(self, memo):
        raise TypeError("held by a lock")

    def forward(self, x):
        return self.inner(x)

model = Lock()
"""
)


def test_a_model_that_cannot_be_copied_is_loaded_again(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(UNCOPYABLE)
    with person(Settings(file=str(file), engine="tcw")) as one:
        one.until_end()
        one.send(Rerun(settings=one.settings))
        assert one.waits().kind == "end"
    first, second = Recording(one.records).runs.values()
    assert written(first) == written(second)
    assert isinstance(second.all(Numerics)[0].within, bool)


def test_a_rerun_before_the_first_step_takes_the_place_of_the_run(file: Path) -> None:
    settings = Settings(file=str(file), engine="tcw", until="capture")
    with person(settings) as one:
        one.send(Rerun(settings=structs.replace(settings, dynamic=True)))
        assert one.waits().kind == "end"
    first, second = Recording(one.records).runs.values()
    assert not first.all(Graph)
    assert second.all(Graph)
    assert isinstance(one.records[-1], End)


def test_a_breakpoint_on_a_pair_stops_once_and_again_only_where_inductor_changed_its_mind(
    file: Path,
) -> None:
    """Its rounds weigh the same pair over and over, in ever larger groups."""
    model = file.with_name("rounds.py")
    model.write_text(ROUNDS)
    settings = Settings(file=str(model), engine="inductor", until="fusion")
    pairs = [pair for pair in pairs_in(alone(settings)) if not pair.within]
    weighed = Counter(pair.id for pair in pairs)
    assert max(weighed.values()) > 2
    wanted = [
        Breakpoint(number=number, kind="decision", id=id) for number, id in enumerate(weighed, 1)
    ]
    with person(settings, None, wanted) as one:
        stops = [found for found in one.until_end() if found.decision]
        asked = asked_in(one)
    told: dict[str, set[str]] = {}
    for stop, question in zip(stops, asked, strict=True):
        before = told.setdefault(question.id, set())
        assert question.default not in before, stop.why
        assert ("weighed again in round" in stop.why) == bool(before)
        before.add(question.default)
    assert set(told) == set(weighed)
    assert any(len(answers) == 2 for answers in told.values())
