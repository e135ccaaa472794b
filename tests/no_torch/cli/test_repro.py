"""`tcw repro`: what it says of a trace, and the file that it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.compiler.trace.records import (
    End,
    EnginePart,
    Kernel,
    KernelPrecision,
    Location,
    Numerics,
    OutputPrecision,
    Record,
    Settings,
    Start,
    Text,
    WrongStage,
)
from tcw.compiler.trace.records.measure import StageOfResult
from tcw.compiler.trace.writer import TraceWriter, text_hash
from tcw.viewers.recording import Recording
from tcw.viewers.text.lines import to_text
from tcw.workbench.cli.main import main
from tcw.workbench.cli.repro import written
from tcw.workbench.request import codes
from tests.no_torch.cli.test_commands import Client, client

__all__ = ["client"]

FILE = '"""k1 alone"""\nprint("result")\n'


def kernel(id: str, name: str) -> Kernel:
    return Kernel(
        id=id,
        graph="0/0/forward/lowered",
        name=name,
        label="gelu + layer norm",
        language="cpp",
        locations=(Location(file="/home/me/model.py", line=24),),
    )


def precision(id: str, within: bool | None, text: str = "", **about: object) -> KernelPrecision:
    outputs = (
        OutputPrecision(
            node="mul_6",
            error=1.3e-3 if within is False else 1.2e-7,
            eager_error=1.4e-7,
            bound=4.4e-6,
            note="nan in compiled only" if within is False else "",
        ),
    )
    return KernelPrecision(
        graph="0/0/forward",
        kernel=id,
        call=1,
        outputs=outputs if within is not None else (),
        within=within,
        repro=text,
        **about,  # type: ignore[arg-type]
    )


def trace(folder: Path, *records: object) -> Path:
    file = folder / "run.tcw"
    with file.open("wb") as stream:
        writer = TraceWriter(stream.write)
        start = Start(
            schema_version=1,
            tool_version="1",
            settings=Settings(file="/home/me/model.py", verify=True),
            python="3.11",
            platform="linux",
            pid=1,
            time=0.0,
        )
        writer.emit(start)
        for record in records:
            if isinstance(record, tuple):
                one = precision(record[0], record[1], writer.text(FILE), **record[2])
                writer.emit(one)
            else:
                assert isinstance(record, Record)
                writer.emit(record)
        writer.emit(End(status="ok", seconds=1.0))
    return file


def said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path, *args: str
) -> tuple[int, str]:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "100")
    code = main(["repro", *args])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_the_first_wrong_kernel_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = trace(
        tmp_path,
        kernel("k0", "cpp_fused_add_0"),
        kernel("k1", "cpp_fused_gelu_1"),
        precision("k0", True),
        ("k1", False, {"reproduces": True}),
        precision("k2", None, reason="it draws random numbers"),
    )
    code, text = said(capsys, monkeypatch, tmp_path, str(file))
    assert code == codes.FINDING
    assert text == (
        "3 kernels: 1 within rounding of float64, 1 not (k1), 1 not compared\n"
        "  k2 of 0/0/forward: it draws random numbers\n"
        "\n"
        "k1 cpp_fused_gelu_1  wrong\n"
        "  gelu + layer norm  model.py:24  0/0/forward\n"
        "  result     error     eager     bound\n"
        "  mul_6    1.3e-03   1.4e-07   4.4e-06  nan in compiled only\n"
        "\n"
        "wrote repro_k1.py: according to the trace, run alone, it shows the error\n"
        "  nothing was run: whoever made the trace wrote this code, so read it before you run it\n"
    )
    assert (tmp_path / "repro_k1.py").read_text() == FILE


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"reproduces": False}, "it is wrong only within its graph"),
        ({"repro_note": "no g++"}, "run alone, it failed: no g++"),
    ],
)
def test_whether_it_shows_the_error_is_said(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    about: dict[str, object],
    words: str,
) -> None:
    file = trace(tmp_path, kernel("k1", "cpp_fused_gelu_1"), ("k1", False, about))
    code, text = said(capsys, monkeypatch, tmp_path, str(file), "-o", "mine.py")
    assert code == codes.FINDING
    assert words in " ".join(text.split())
    assert (tmp_path / "mine.py").read_text() == FILE


def test_all_is_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = trace(tmp_path, kernel("k0", "cpp_fused_add_0"), precision("k0", True))
    code, text = said(capsys, monkeypatch, tmp_path, str(file))
    assert (code, text) == (codes.OK, "1 kernel: 1 within rounding of float64\n")
    assert [path.name for path in tmp_path.iterdir()] == ["run.tcw"]


def test_a_kernel_that_was_not_cut_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = trace(tmp_path, kernel("k0", "cpp_fused_add_0"), precision("k0", True))
    code, text = said(capsys, monkeypatch, tmp_path, str(file), "--kernel", "k0")
    assert code == codes.OK
    words = " ".join(text.split())
    assert "this recording has no such files; 'tcw repro model.py --kernel k0' makes one" in words
    code, text = said(capsys, monkeypatch, tmp_path, str(file), "--kernel", "k9")
    assert code == codes.USAGE
    assert "no kernel k9; the kernels are k0" in text


def test_a_kernel_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = trace(
        tmp_path,
        kernel("k1", "cpp_fused_gelu_1"),
        kernel("k2", "cpp_fused_gelu_backward_2"),
        ("k1", False, {"reproduces": True}),
        ("k2", False, {"reproduces": True}),
    )
    name = "cpp_fused_gelu_backward_2"
    code, text = said(capsys, monkeypatch, tmp_path, str(file), "--kernel", name)
    assert code == codes.FINDING
    assert "wrote repro_k2.py: according to the trace, run alone, it shows the error" in text


def test_a_trace_of_both_engines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = trace(
        tmp_path,
        EnginePart(engine="inductor"),
        kernel("k0", "cpp_fused_add_0"),
        precision("k0", True),
        EnginePart(engine="tcw"),
        kernel("k0", "nest_add"),
        ("k0", False, {"reproduces": True}),
    )
    code, text = said(capsys, monkeypatch, tmp_path, str(file))
    assert code == codes.FINDING
    assert text.startswith("2 kernels: 1 within rounding of float64, 1 not (k0)\n")
    assert "k0 nest_add  wrong" in text


def test_a_file_without_a_graph_has_no_kernel_to_compare() -> None:
    """It was just compared: recording it once more would not help."""
    result = written(Recording([]), "", None, of_trace=False)
    assert to_text(result.lines, 100) == "no kernel to compare: no graph was captured\n"
    assert result.code == codes.OK


def test_nothing_was_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, text = said(capsys, monkeypatch, tmp_path, str(trace(tmp_path)))
    assert code == codes.USAGE
    assert "no kernel was compared with float64" in text
    assert "tcw profile --verify" in text


def test_a_file_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = trace(tmp_path, kernel("k1", "cpp_fused_gelu_1"), ("k1", False, {}))
    code, text = said(capsys, monkeypatch, tmp_path, str(file), "-o", "nowhere/mine.py")
    assert code == codes.USAGE
    assert "-o nowhere/mine.py: no folder nowhere" in text


@pytest.mark.parametrize(
    "id", ["../k1", "/tmp/k1", "k1/..", "k 1", "k1\n", "", "\x1b[2J", "k\u0661", "k" * 300]
)
def test_a_name_that_leads_elsewhere_names_no_file(
    id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    (folder / "repro_..").mkdir(parents=True)
    file = trace(folder, kernel(id, "nest"), (id, False, {"reproduces": True}))
    before = sorted(tmp_path.rglob("*"))
    code, text = said(capsys, monkeypatch, folder, str(file))
    assert code == codes.USAGE
    assert "-o FILE" in text
    assert "\x1b" not in text
    assert sorted(tmp_path.rglob("*")) == before
    code, text = said(capsys, monkeypatch, folder, str(file), "-o", "mine.py")
    assert code == codes.FINDING
    assert (folder / "mine.py").read_text() == FILE


@pytest.mark.parametrize("output", ["repro_k1.py", "mine.py"])
@pytest.mark.parametrize("linked", [False, True, None])
def test_nothing_is_written_over_or_through(
    output: str,
    linked: bool | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`linked`: the name is a link to another file; None: a link to nothing."""
    victim = tmp_path / "victim"
    if linked is not None:
        victim.write_text("mine")
    if linked is False:
        (tmp_path / output).write_text("mine")
    else:
        (tmp_path / output).symlink_to(victim)
    file = trace(tmp_path, kernel("k1", "nest"), ("k1", False, {"reproduces": True}))
    given = ("-o", output) if output == "mine.py" else ()
    code, text = said(capsys, monkeypatch, tmp_path, str(file), *given)
    assert code == codes.USAGE
    why = "it already exists" if linked is False else "it is a symbolic link"
    assert f"-o {output}: {why}" in text
    assert "wrote" not in text
    if linked is None:
        assert not victim.exists()
    else:
        assert (tmp_path / output).read_text() == victim.read_text() == "mine"


@pytest.mark.parametrize("kernel", [(), ("--kernel", "k4"), ("--kernel", "cpp_fused_add_0")])
@pytest.mark.parametrize("linked", [False, True])
def test_a_taken_default_name_is_told_before_the_run(
    kernel: tuple[str, ...],
    linked: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    client: Client,
) -> None:
    (tmp_path / "model.py").write_text("model = None\n")
    taken = tmp_path / "repro_k4.py"
    if linked:
        taken.symlink_to("nowhere")
    else:
        taken.write_text("mine")
    code, text = said(capsys, monkeypatch, tmp_path, "model.py", *kernel)
    assert code == codes.USAGE
    assert "repro_k4.py: it " in text
    assert "(-o FILE)" in text
    assert client.settings is None
    said(capsys, monkeypatch, tmp_path, "model.py", *kernel, "-o", "mine.py")
    assert client.settings is not None


def test_only_the_name_that_the_file_would_get_has_to_be_free(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    client: Client,
) -> None:
    (tmp_path / "model.py").write_text("model = None\n")
    for name in ("repro_k4.py", "repro_kernels.py"):
        (tmp_path / name).write_text("mine")
    said(capsys, monkeypatch, tmp_path, "model.py", "--kernel", "k5")
    assert client.settings is not None


@pytest.mark.parametrize("name", ["mailed.tcw", "mailed.TCW", "mailed", "mailed.trace"])
def test_what_is_not_named_a_model_is_never_run(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], client: Client
) -> None:
    file = tmp_path / name
    file.write_text("raise SystemExit('it ran')\n")
    assert main(["repro", str(file)]) == codes.USAGE
    text = capsys.readouterr().err
    assert "is not a tcw trace" in text
    assert "must end in .py" in text
    assert client.settings is None


@pytest.mark.parametrize("stage", ["capture", "autograd", "passes"])
def test_a_wrong_graph_is_written_where_every_kernel_is_right(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    stage: StageOfResult,
) -> None:
    """Kernels are compared with the graph that they are made of."""
    found = WrongStage(
        call=1, engine="inductor", result="out", stage=stage, graph="0/0", node="mul_1",
        operation="operator.mul", location=Location(file="/home/me/model.py", line=24),
        reproduces=True, repro=text_hash(FILE),
    )  # fmt: skip
    file = trace(tmp_path, precision("k0", True), Text(hash=text_hash(FILE), body=FILE), found)
    code, text = said(capsys, monkeypatch, tmp_path, str(file))
    assert code == codes.FINDING
    assert "1 kernel: 1 within rounding" in text
    assert "model.py:24  wrong: " in text
    assert "operator.mul (mul_1 of 0/0)" in " ".join(text.split())
    assert "wrote repro_graph.py: according to the trace, run, it shows the error" in text
    assert (tmp_path / "repro_graph.py").read_text() == FILE


def test_a_wrong_call_is_no_success_although_its_kernels_are_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for within in (True, None, False):
        numerics = Numerics(compared=1, max_abs=0.5, max_rel=1.0, within=within, rounding=1e-6)
        file = trace(tmp_path, precision("k0", True), numerics)
        code, text = said(capsys, monkeypatch, tmp_path, str(file))
        assert code == (codes.FINDING if within is False else codes.OK)
        assert ("wrong results" in text) is (within is False)


def test_wrong_results_of_right_kernels_are_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = WrongStage(
        call=1, engine="inductor", result="out", stage="kernels", reason="no single kernel is wrong"
    )
    file = trace(tmp_path, precision("k0", True), found)
    code, text = said(capsys, monkeypatch, tmp_path, str(file))
    assert code == codes.FINDING
    assert "its graphs are right; no single kernel is wrong" in text
