"""Suggestions tried on a worker that is made up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tcw.compiler.protocol.commands import Measure, Rerun
from tcw.compiler.trace.records import (
    CallEnd,
    Decided,
    End,
    Failure,
    Record,
    Settings,
    Timed,
    Trial,
    Waiting,
    WhatIf,
)
from tcw.workbench.cli import trials as module
from tcw.workbench.cli.trials import TOGETHER, asks_for, trials
from tcw.workbench.request.options import changed_by
from tcw.workbench.worker.trace_file import OnRecord

BASE = Settings(file="model.py", grad="train", profile=True)


@dataclass(frozen=True)
class Suggested:
    id: str
    options: tuple[str, ...] = ()
    group: str = ""

    @property
    def words(self) -> str:
        return f"try {self.id}"


MODE = Suggested("mode", ("--mode", "max-autotune"))
SAVE = Suggested("save", ("--override", "inductor/0/0/joint/save/relu=recompute"))
MARK = Suggested("mark", ("--mark-dynamic", "x:0"))
ENGINE = Suggested("engine", ("--engine", "tcw"))
SOURCE = Suggested("source")


@dataclass
class Worker:
    """Returns, for the settings of a run, what a call takes more than the base's, in seconds."""

    costs: dict[str, float]
    failing: str = ""
    dying: str = ""
    wrong: str = ""
    random: str = ""
    refusing: str = ""
    commands: list[Any] = field(default_factory=list)
    stopped: int = 0

    def start(self, settings: Settings, on_record: OnRecord, first: Rerun) -> Worker:
        self.give, self.runs = on_record, [settings]
        self._over(4)
        return self

    def _over(self, compiles: int, *records: Record) -> None:
        for record in (
            *records,
            CallEnd(call=1, seconds=1.0, compiled=tuple(map(str, range(compiles)))),
        ):
            self.give(record)  # type: ignore[arg-type]
        self.give(Waiting(number=1, kind="end", why="the run is over", stage="run"))

    def send(self, command: Any) -> None:
        self.commands.append(command)
        if isinstance(command, Rerun):
            self.runs.append(command.settings)
            key = self._key(command.settings)
            if key == self.dying:
                gone = Waiting(number=1, kind="end", why="it ended", stage="run", lost=True)
                self.give(gone)
            elif key == self.failing:
                self._over(0, Failure(doing="compiling", type="Error", message="no"))
            elif key == self.refusing:
                decided = Decided(
                    id="d", graph="g", kind="save", default="save", choice="save", refused="rule x"
                )
                self._over(4, decided)
            else:
                self._over(1 if command.settings.mark_dynamic else 4)
        elif isinstance(command, Measure):
            key = self._key(self.runs[command.run - 1])
            cost = self.costs[key]
            self.give(
                WhatIf(
                    base=command.base,
                    run=command.run,
                    scope="call",
                    before=Timed(median=1.0, spread=0.01, runs=20),
                    after=Timed(median=1.0 + cost, spread=0.01, runs=20),
                    difference=cost,
                    noise=0.01,
                    within=None if key == self.random else key != self.wrong,
                    note="random: not comparable (dropout at model.py:3); torch.compile draws …"
                    if key == self.random
                    else "",
                )
            )
            self.give(Waiting(number=2, kind="end", why="the run is over", stage="run"))

    def _key(self, settings: Settings) -> str:
        found = [
            ("mode", settings.mode),
            ("save", settings.overrides),
            ("mark", settings.mark_dynamic),
            ("engine", settings.engine != "inductor"),
        ]
        return "+".join(name for name, there in found if there)

    def stop(self) -> None:
        self.stopped += 1

    def join(self, timeout: float | None = None) -> bool:
        return True


def _tried(worker: Worker, suggestions: Sequence[Suggested]) -> list[Trial]:
    found = list(trials(BASE, suggestions, start=worker.start))
    assert worker.stopped >= 1 or not worker.commands
    return found


def test_what_helps_is_kept_and_then_tried_together() -> None:
    worker = Worker({"mode": -0.2, "save": -0.1, "mode+save": -0.25, "engine": 0.5})
    found = _tried(worker, [SAVE, ENGINE, MODE, SOURCE])
    assert [(one.id, one.kept) for one in found] == [
        ("save", True),
        ("engine", False),
        ("mode", True),
        ("source", False),
        (TOGETHER, True),
    ]
    assert [one.reason for one in found if not one.kept] == [
        "slower",
        "the source has to be changed by hand",
    ]
    together = found[-1]
    assert together.options == (*MODE.options, *SAVE.options), "the most helpful first"
    assert [one.command != "" for one in found] == [one.kept for one in found]
    assert together.command == (
        "tcw profile model.py --mode max-autotune --train "
        "--override inductor/0/0/joint/save/relu=recompute"
    )
    assert all(run.profile is False for run in worker.runs)


def test_what_is_no_faster_together_leaves_the_best_alone() -> None:
    worker = Worker({"mode": -0.2, "save": -0.1, "mode+save": -0.15})
    found = _tried(worker, [SAVE, MODE])
    assert found[-1].reason == "no faster than the best single change"
    assert [one.kept for one in found] == [True, True, False]


def test_of_one_group_one_is_taken_together() -> None:
    worker = Worker({"mode": -0.2, "save": -0.1, "mark": -0.205, "mode+save": -0.25})
    mode, mark = (Suggested(one.id, one.options, "break") for one in (MODE, MARK))
    found = _tried(worker, [mode, mark, SAVE])
    assert [one.group for one in found] == ["break", "break", "", ""]
    assert found[-1].options == (*MODE.options, *SAVE.options)


def test_a_change_that_another_includes_is_not_combined_with_it() -> None:
    both = Suggested("both", (*MODE.options, *MARK.options))
    found = _tried(Worker({"mark": -0.1, "mode+mark": -0.3}), [MARK, both])
    assert [(one.id, one.kept) for one in found] == [("mark", True), ("both", True)]
    also = Suggested("also", (*SAVE.options, *MARK.options))
    costs = {"mode+mark": -0.3, "save+mark": -0.2, "mode+save+mark": -0.4}
    together = _tried(Worker(costs), [both, also])[-1]
    assert together.id == TOGETHER
    assert together.options == (*MODE.options, *MARK.options, *SAVE.options), "each once"


def test_what_contradicts_is_not_combined() -> None:
    worker = Worker({"mode": -0.1, "engine": -0.2, "save": -0.15})
    found = _tried(worker, [MODE, ENGINE, SAVE])
    assert [one.id for one in found] == ["mode", "engine", "save"], "the engine's is the best"
    assert all(one.kept for one in found)


def test_other_outputs_and_noise_are_not_kept() -> None:
    worker = Worker({"mode": -0.5, "save": -0.005}, wrong="mode")
    first, second = _tried(worker, [MODE, SAVE])
    assert "assert_close" in first.reason
    assert first.equal is False
    assert second.reason == "within the noise"


def test_results_that_cannot_be_compared_are_not_kept() -> None:
    (found,) = _tried(Worker({"mode": -0.5}, random="mode"), [MODE])
    assert (found.kept, found.equal) == (False, None)
    assert found.reason == "random: not comparable (dropout at model.py:3)"


def test_fewer_compiles_help_where_a_call_is_no_slower() -> None:
    (found,) = _tried(Worker({"mark": 0.001}), [MARK])
    assert found.kept
    assert found.words == "try mark (in these calls: compiles 4 → 1)"
    (slower,) = _tried(Worker({"mark": 0.1}), [MARK])
    assert (slower.kept, slower.reason) == (False, "slower")


def test_a_failure_and_a_refusal_have_their_words() -> None:
    worker = Worker({"save": -0.5}, failing="mode", refusing="save")
    failed, refused = _tried(worker, [MODE, SAVE])
    assert failed.reason == "compiling: Error: no"
    assert failed.before is None
    assert refused.reason == "the override is refused: rule x"


def test_a_worker_that_died_is_started_again() -> None:
    worker = Worker({"save": -0.5}, dying="mode")
    died, kept = _tried(worker, [MODE, SAVE])
    assert died.reason == "it ended"
    assert kept.kept
    assert worker.stopped == 2


def test_a_base_that_does_not_compile_is_told() -> None:
    class Broken(Worker):
        def start(self, settings: Settings, on_record: OnRecord, first: Rerun) -> Worker:
            on_record(Failure(doing="loading", type="Error", message="no"))
            on_record(Waiting(number=1, kind="end", why="the run failed", stage="load"))
            return self

    (found,) = _tried(Broken({}), [MODE])
    assert found.reason == "the base could not be compiled again: loading: Error: no"


def test_the_end_of_the_worker_is_told() -> None:
    class Ending(Worker):
        def start(self, settings: Settings, on_record: OnRecord, first: Rerun) -> Worker:
            on_record(End(status="crashed", seconds=1.0, reason="signal 11"))
            return self

    (found,) = _tried(Ending({}), [MODE])
    assert found.reason == "the worker ended: crashed signal 11"


def test_a_worker_that_says_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.05)

    class Silent(Worker):
        def start(self, settings: Settings, on_record: OnRecord, first: Rerun) -> Worker:
            return self

    (found,) = _tried(Silent({}), [MODE])
    assert "not done after" in found.reason


def test_settings_and_edits_are_options_like_all(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def model(x):\n    print(x)\n    return x\n")
    base = Settings(file=str(tmp_path / "model.py"), edits=("drop:2",))
    options = ("--set", "allow_rnn=True", "--as-tensor", "t", "--edit", "later:2")
    changed = changed_by(base, options).settings
    assert changed.torch_settings == ("torch._dynamo.config.allow_rnn = True",)
    assert (changed.as_tensors, changed.edits) == (("t",), ("drop:2", "later:2"))
    assert asks_for(base, options).endswith(
        "--as-tensor t --set 'allow_rnn = True' --edit drop:2 --edit later:2"
    )
    for wrong in (("--set", "x"), ("--edit", "drop"), ("--edit", "vanish:1")):
        assert changed_by(base, wrong).reason
    start = Worker({}).start
    (trial,) = trials(base, [Suggested("both", ("--edit", "later:2"))], start=start)
    assert trial.reason == "later:2: another edit changes the same place"


def test_nothing_is_started_for_what_cannot_be_tried() -> None:
    def start(settings: Settings, on_record: OnRecord, first: Rerun) -> Worker:
        raise AssertionError("a worker was started")

    suggestions = [
        SOURCE,
        Suggested("same", ("--engine", "inductor")),
        Suggested("unknown", ("--modus", "x")),
        Suggested("grad", ("--no-grad",)),
    ]
    reasons = [trial.reason for trial in trials(BASE, suggestions, start=start)]
    assert reasons[:2] == ["the source has to be changed by hand", "the profile already has it"]
    assert reasons[2].startswith("--modus x: No such option")
    assert reasons[3] == "--no-grad changes what runs, not how"


def test_options_are_read_as_on_the_asks_for() -> None:
    settings = changed_by(
        BASE, ("--mark-dynamic", "x:0", "--mark-dynamic", "y:1", "--dynamic", "--fullgraph")
    ).settings
    assert settings.mark_dynamic == ("x:0", "y:1")
    assert settings.dynamic is True
    assert settings.fullgraph is True
    assert asks_for(Settings(file="a b.py", model="Net(4)", inputs=("f32[2]",))) == (
        "tcw profile 'a b.py' --model 'Net(4)' --inputs 'f32[2]'"
    )
