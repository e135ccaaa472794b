"""`tcw profile --modes --try`: what follows the profile is part of the recording."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tcw.compiler.trace.records import AnyRecord, End, ModeRow, Record, Settings, Trial
from tcw.viewers.recording import Recording
from tcw.workbench.cli import modes, trials
from tcw.workbench.cli import profile as verb
from tcw.workbench.cli.main import main
from tcw.workbench.request import codes
from tests.no_torch import profiles

Then = Callable[[End, Callable[[AnyRecord], None]], Iterable[Record]]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model file; the profile of a masked attention stands for what a worker records."""
    made = tmp_path / "model.py"
    made.write_text("model = 1\n")
    monkeypatch.chdir(tmp_path)

    def record(
        settings: Settings,
        trace: Path | None,
        recording: Recording,
        quiet: bool,
        then: Then | None = None,
        tries: object = None,
    ) -> End:
        *before, end = profiles.masked_attention()
        assert isinstance(end, End)
        recording.feed(before)
        assert then is not None
        recording.feed(then(end, lambda _: None))  # type: ignore[arg-type]
        recording.feed([end])
        return end

    def rows(settings: Settings, see: object) -> Iterator[ModeRow]:
        yield ModeRow(name="tcw", engine="tcw", reason="stands for all modes")

    def tried(settings: Settings, recording: Recording, see: object) -> Iterator[Trial]:
        yield Trial(id="mode", words="stands for all suggestions", reason="not tried")

    monkeypatch.setattr(verb, "record", record)
    monkeypatch.setattr(modes, "modes", rows)
    monkeypatch.setattr(trials, "tried", tried)
    return made


@pytest.mark.parametrize(
    ("options", "there"),
    [
        ([], (False, False)),
        (["--modes"], (True, False)),
        (["--try"], (False, True)),
        (["--modes", "--try"], (True, True)),
    ],
)
def test_what_was_asked_for_follows(
    file: Path, capsys: pytest.CaptureFixture[str], options: list[str], there: tuple[bool, bool]
) -> None:
    assert main(["profile", str(file), "--quiet", *options]) == codes.OK
    said = capsys.readouterr().out
    words = ("stands for all modes", "stands for all suggestions")
    assert tuple(word in said for word in words) == there
