"""What a piece of advice changes in a recording, and in the file when it is pasted."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tcw.compiler.trace.records import (
    Advice,
    CallStart,
    FrameStart,
    Location,
    Settings,
    SourceChange,
    Start,
)
from tcw.viewers.recording import Recording
from tcw.viewers.summary.findings import Finding
from tcw.viewers.summary.place import Place
from tcw.workbench.fixes.candidates import (
    Candidate,
    NotTriable,
    applied,
    candidates,
    merged,
    pasted,
    pasting,
)

MODEL = """import torch


class Net(torch.nn.Module):
    def forward(self, x, n):
        if x.sum() > 0:
            x = x * 2
        return x + n


model = Net()
example_inputs = (torch.ones(2, 2), 0.5)
"""
SCRIPT = """import torch


@torch.compile
def scaled(x, n):
    return x * n


for rows in (2, 3):
    y = scaled(torch.ones(rows, 4)[:, 1:], n=0.5)
"""


def settings_of(folder: Path, text: str) -> Settings:
    file = folder / "model.py"
    file.write_text(text)
    return Settings(file=str(file), until="capture")


def recording_of(settings: Settings, script: bool = False) -> Recording:
    start = Start(
        schema_version=2,
        tool_version="",
        settings=settings,
        python="",
        platform="",
        pid=1,
        time=0.0,
    )
    frame = FrameStart(
        compile_id="0/0",
        attempt=0,
        function="scaled",
        location=Location(file=settings.file, line=4),
        call=1,
    )
    calls = [] if script else [CallStart(call=1, arguments=())]
    return Recording([start, frame, *calls])


def finding(settings: Settings, line: int, kind: Any = "break") -> Finding:
    text = Path(settings.file).read_text().split("\n")[line - 1]
    place = Place(settings.file, line, text)
    return Finding(kind, "", "a finding", place=place, compile_ids=("0/0",))


def followed(folder: Path, advice: Advice, line: int = 6, kind: Any = "break") -> Settings:
    settings = settings_of(folder, MODEL)
    return applied(advice, finding(settings, line, kind), recording_of(settings), settings)


def test_a_setting_is_made(tmp_path: Path) -> None:
    code = "torch._dynamo.config.capture_scalar_outputs = True"
    assert followed(tmp_path, Advice(text="", code=code)).torch_settings == (code,)


def test_an_option_of_compile_is_given_to_a_model_that_is_not_compiled(tmp_path: Path) -> None:
    advice = Advice(text="", code="torch.compile(model, dynamic=True)")
    made = followed(tmp_path, advice)
    assert made.dynamic is True
    assert made.changes == ()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("model = torch.compile(Net())", "model = torch.compile(Net(), dynamic=True)"),
        ("model = torch.compile(Net(), mode='max')", "mode='max', dynamic=True)"),
        ("model.compile()", "model.compile(dynamic=True)"),
        ("@torch.compile\ndef f(x): pass", "@torch.compile(dynamic=True)\ndef f"),
        ("@torch.compile()\ndef f(x): pass", "@torch.compile(dynamic=True)\ndef f"),
    ],
)
def test_an_option_is_written_where_the_file_compiles(
    tmp_path: Path, written: str, expected: str
) -> None:
    settings = settings_of(tmp_path, f"{MODEL}\n{written}\n")
    advice = Advice(text="", code="torch.compile(model, dynamic=True)")
    made = applied(advice, finding(settings, 6), recording_of(settings), settings)
    assert made.dynamic is None
    (text,) = (after for _, after in pasted(made, settings).values())
    assert expected in text


def test_what_is_compiled_with_the_option_already_does_not_change(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, f"{MODEL}\nmodel = torch.compile(model, dynamic=True)\n")
    settings = Settings(file=settings.file, dynamic=True)
    advice = Advice(text="", code="torch.compile(model, dynamic=True)")
    with pytest.raises(NotTriable):
        applied(advice, finding(settings, 6), recording_of(settings), settings)


def test_code_replaces_the_statement_of_a_break(tmp_path: Path) -> None:
    advice = Advice(text="", code="x = torch.where(x.sum() > 0, x * 2, x)")
    (change,) = followed(tmp_path, advice).changes
    assert (change.line, change.end_line) == (6, 7)
    assert change.text == "        x = torch.where(x.sum() > 0, x * 2, x)"


def test_code_above_a_statement_keeps_it(tmp_path: Path) -> None:
    advice = Advice(text="", code="torch._check(x.size(0) > 1)", place="above")
    (change,) = followed(tmp_path, advice, 8).changes
    assert (change.line, change.end_line) == (8, 7)


def test_a_mark_runs_before_each_call(tmp_path: Path) -> None:
    advice = Advice(text="", code="torch._dynamo.mark_dynamic(x, 0)")
    assert followed(tmp_path, advice, 5, "recompile").before_calls == (advice.code,)


def test_code_without_a_place_is_an_idea(tmp_path: Path) -> None:
    for code in ("lr=torch.tensor(0.1)", "model = Wrapped(torch.compile(module))", "x ="):
        with pytest.raises(NotTriable):
            followed(tmp_path, Advice(text="", code=code), 5, "recompile")


def test_code_for_a_file_of_a_library_is_an_idea(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, MODEL)
    place = Place("/usr/lib/python3/site-packages/library.py", 6, "")
    broken = Finding("break", "", "", place=place)
    with pytest.raises(NotTriable):
        applied(Advice(text="", code="x = 1"), broken, recording_of(settings), settings)


def test_in_a_script_a_line_before_each_call_is_written_at_the_call(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, SCRIPT)
    advice = Advice(text="", code="x = x.contiguous()", place="call")
    recompiled = finding(settings, 6, "recompile")
    made = applied(advice, recompiled, recording_of(settings, script=True), settings)
    (change,) = made.changes
    assert change.text == "    y = scaled(torch.ones(rows, 4)[:, 1:].contiguous(), n=0.5)"
    number = Advice(text="", code="n = torch.tensor(n)", options=("--as-tensor", "n"))
    made = applied(number, recompiled, recording_of(settings, script=True), settings)
    assert made.changes[0].text.endswith("n=torch.tensor(0.5))")
    assert made.as_tensors == ()


def test_a_mark_in_a_script_needs_a_name(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, SCRIPT)
    advice = Advice(text="", code="torch._dynamo.mark_dynamic(x, 0)")
    with pytest.raises(NotTriable):
        applied(advice, finding(settings, 6, "recompile"), recording_of(settings, True), settings)


def test_pasted_settings_come_below_the_imports(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, MODEL)
    line = "torch._dynamo.config.capture_scalar_outputs = True"
    made = applied(
        Advice(text="", code=line), finding(settings, 6), recording_of(settings), settings
    )
    ((before, after),) = pasted(made, settings).values()
    assert before == MODEL
    assert after == MODEL.replace("import torch\n", f"import torch\n{line}\n", 1)
    assert pasting(settings, made) == {"settings": (line,), "compile": {}, "before_calls": ()}


def test_fixes_that_change_the_same_lines_are_not_combined(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, MODEL)

    def candidate(line: int, end: int, text: str) -> Candidate:
        change = SourceChange(file=settings.file, line=line, end_line=end, text=text)
        changed = Settings(file=settings.file, until="capture", changes=(change,))
        return Candidate("key", Advice(text=""), changed)

    first, second = candidate(6, 7, "        x = x * 2"), candidate(7, 7, "            pass")
    other = candidate(8, 8, "        return x")
    together, taken = merged(settings, [first, second, other])
    assert taken == [first, other]
    assert len(together.changes) == 2


def test_a_statement_moves_before_each_call(tmp_path: Path) -> None:
    text = MODEL.replace(
        "        return x + n", "        x.requires_grad = True\n        return x + n"
    )
    settings = settings_of(tmp_path, text)
    gone = SourceChange(file=settings.file, line=8, end_line=8, text="")
    advice = Advice(text="", code="x.requires_grad_()", place="call", changes=(gone,))
    with_it = applied(advice, finding(settings, 6), recording_of(settings), settings)
    assert with_it.before_calls == ("x.requires_grad_()",)
    assert with_it.changes == (gone,)


def test_the_effect_of_the_advice_is_said_with_that_of_its_setting(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, MODEL)
    advice = Advice(
        text="",
        code="torch._dynamo.config.reorderable_logging_functions.add(print)\nx = x * 2",
        place="statement",
        effect="one value",
    )
    advised = dataclasses.replace(finding(settings, 6), fixes=(advice,))
    (made,) = candidates(advised, recording_of(settings), settings)
    assert made.effect == "one value, prints and logs come after the graph"
