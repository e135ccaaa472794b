from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tcw.compiler.trace.records import Settings
from tcw.viewers.command_line import command_line


def test_all_that_was_asked_for() -> None:
    settings = Settings(
        file="/a/my model.py", model="Net(4)", inputs=("f32[2]",), engine="tcw", grad="train",
        mode="max-autotune", dynamic=False, fullgraph=True, mark_dynamic=("x:0",),
        as_tensors=("t",), torch_settings=("torch._dynamo.config.allow_rnn = True",),
        edits=("drop:2",), overrides={"tcw/0/0/forward/fuse/a+b": "apart"}, profiled_call=2,
        arguments=("--size", "4"),
    )  # fmt: skip
    words = shlex.split(command_line("profile", settings, ("--verify",)))
    assert words == [
        "tcw", "profile", "/a/my model.py", "--model", "Net(4)", "--inputs", "f32[2]",
        "--engine", "tcw", "--mode", "max-autotune", "--train", "--fullgraph", "--no-dynamic",
        "--mark-dynamic", "x:0", "--as-tensor", "t", "--set", "allow_rnn = True",
        "--edit", "drop:2", "--override", "tcw/0/0/forward/fuse/a+b=apart", "--call", "2",
        "--verify", "--", "--size", "4",
    ]  # fmt: skip
    assert "--override" not in command_line("step", settings, overrides=False)


def test_a_file_below_is_named_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    below = Settings(file=str(tmp_path / "models" / "gpt.py"))
    assert command_line("profile", below) == "tcw profile models/gpt.py"
    monkeypatch.chdir(tmp_path.parent.parent)
    beside = Settings(file="/elsewhere/gpt.py")
    assert command_line("profile", beside) == "tcw profile /elsewhere/gpt.py"


def test_a_trace_may_name_no_file() -> None:
    assert shlex.split(command_line("profile", Settings(file=""))) == ["tcw", "profile", ""]
