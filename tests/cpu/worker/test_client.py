"""The front end's side: stopping, Ctrl-C, errors of the caller, a guardian that sleeps."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import uuid
from pathlib import Path

import pytest

from tcw.compiler.trace.output_file import OutputRefused
from tcw.compiler.trace.reader import read_trace
from tcw.compiler.trace.records import AnyRecord, End, Failure, Output, Settings, Start, Warned
from tcw.workbench.worker.client import record
from tests.cpu.worker.recorded import MARK, left_behind, recorded

cold = pytest.mark.cold_start
"""What the front end does with a process that is its own child."""
HANG = "import time\nprint('here')\ntime.sleep(1000)\n"


@pytest.fixture
def hanging(tmp_path: Path) -> Settings:
    file = tmp_path / "model.py"
    file.write_text(HANG)
    return Settings(file=str(file), until="load")


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> str:
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    return mark


@pytest.mark.long
@cold
def test_stopped_by_another_thread(hanging: Settings, mark: str, tmp_path: Path) -> None:
    stop = threading.Event()

    def see(one: AnyRecord) -> None:
        if isinstance(one, Output):
            stop.set()

    end = record(hanging, trace=tmp_path / "run.tcw", on_record=see, stop=stop)
    assert end.status == "interrupted"
    assert end.reason == "loading model.py"
    assert left_behind(mark) == []
    assert read_trace(tmp_path / "run.tcw").records[-1] == end


def test_an_error_of_the_caller_comes_out_and_leaves_nothing(hanging: Settings, mark: str) -> None:
    def see(one: AnyRecord) -> None:
        if isinstance(one, Output):
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        record(hanging, trace=None, on_record=see)
    assert left_behind(mark) == []


def test_a_trace_that_cannot_be_written(hanging: Settings, tmp_path: Path) -> None:
    with pytest.raises(OutputRefused, match="no folder"):
        record(hanging, trace=tmp_path / "no" / "run.tcw", on_record=lambda _: None)


@cold
def test_a_full_disk_ends_the_trace_and_not_the_recording(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("def broken(:\n")
    records: list[AnyRecord] = []
    settings = Settings(file=str(file))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        end = record(settings, trace=tmp_path / "run.tcw", on_record=records.append)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert end.reason == "the trace could not be written: File too large"
    assert [one.message for one in records if isinstance(one, Failure)] == ["invalid syntax"]


def test_control_c(hanging: Settings, mark: str, tmp_path: Path) -> None:
    program = (
        "import signal, sys\n"
        # a shell has it ignored by what it runs in the background
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from pathlib import Path\n"
        "from tcw.compiler.trace.records import Output, Settings\n"
        "from tcw.workbench.worker.client import record\n"
        "see = lambda one: print('seen', flush=True) if isinstance(one, Output) else None\n"
        f"end = record(Settings(file={hanging.file!r}, until='load'),"
        f" trace=Path({str(tmp_path / 'run.tcw')!r}), on_record=see)\n"
        "print(end.status)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "seen\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "interrupted\n"
    finally:
        process.kill()
    assert process.returncode == 0
    assert left_behind(mark) == []
    assert read_trace(tmp_path / "run.tcw").records[-1].status == "interrupted"


@cold
def test_many_recordings_leave_no_descriptor_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        recorded(tmp_path, "def broken(:\n")
    assert len(os.listdir("/proc/self/fd")) == before


@cold
def test_the_guardian_sleeps_and_standard_input_is_empty(tmp_path: Path) -> None:
    text = """
        import os, time
        until = time.monotonic() + 60  # a busy machine may be slow to let it come to that
        while "S (sleeping)" not in (status := open(f"/proc/{os.getppid()}/status").read()):
            if time.monotonic() > until:
                break
            time.sleep(0.01)
        print(status)
        input()
    """
    found = recorded(tmp_path, textwrap.dedent(text))
    printed = "".join(output.text for output in found.all(Output))
    assert "State:\tS (sleeping)" in printed
    assert found.failure.type == "EOFError"
    assert found.line == 9


def test_records_are_numbered_in_the_end(tmp_path: Path) -> None:
    found = recorded(tmp_path, "def broken(:\n")
    assert isinstance(found.end, End)
    assert found.end.lines == len(found.records) - 1
    (start,) = found.all(Start)
    assert start.settings.file == str(found.file)


def test_what_is_made_after_the_worker_stands_before_the_end(tmp_path: Path) -> None:
    file, trace = tmp_path / "model.py", tmp_path / "run.tcw"
    file.write_text("import torch\nmodel = torch.nn.ReLU()\nexample_inputs = (torch.ones(2),)\n")
    ends: list[End] = []

    def then(end: End) -> list[Warned]:
        ends.append(end)
        return [Warned(message="measured later")]

    streamed: list[AnyRecord] = []
    settings = Settings(file=str(file), until="capture")
    end = record(settings, trace=trace, on_record=streamed.append, then=then)
    *_, more, last = read_trace(trace).records
    assert isinstance(more, Warned)
    assert more.message == "measured later"
    assert last == end
    assert [one.status for one in ends] == ["ok"]
    assert streamed[-2:] == [more, last]
