"""The commands: verbs, options, exit codes, stdout and stderr. The worker is a stub."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from tcw.compiler.trace.records import AnyRecord, End, Settings
from tcw.workbench.cli.main import VERBS, first_line, main
from tcw.workbench.request import codes
from tests.block_trace import block_trace
from tests.no_torch import traces

ROOT = Path(__file__).parents[3]


class Client:
    """Stands in for `tcw.workbench.worker.client`: plays records back."""

    def __init__(self) -> None:
        self.records: list[AnyRecord] = traces.clean()
        self.settings: Settings | None = None
        self.trace: Path | None = None
        self.error: BaseException | None = None

    def record(
        self,
        settings: Settings,
        *,
        trace: Path | None,
        on_record: Callable[[AnyRecord], None],
        then: object = None,
        tries: object = None,
        python: str = "",
    ) -> End:
        self.settings, self.trace = settings, trace
        if self.error is not None:
            raise self.error
        for record in self.records:
            on_record(record)
        end = self.records[-1]
        assert isinstance(end, End)
        return end


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    import tcw.workbench.worker

    stub = Client()
    module = ModuleType("tcw.workbench.worker.client")
    module.record = stub.record  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tcw.workbench.worker.client", module)
    monkeypatch.setattr(tcw.workbench.worker, "client", module, raising=False)
    return stub


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    file = tmp_path / "model.py"
    file.write_text("model = 1\n")
    return file


def tcw(*arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
    """The real command, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, str(ROOT / "tcw" / "__main__.py"), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=False,
        **more,  # type: ignore[call-overload]
    )


def test_help_imports_nothing_heavy() -> None:
    heavy = ("torch", "triton", "textual", "rich", "msgspec", "pygments", "compiler", "viewers")
    code = (
        "import sys; from tcw.workbench.cli.main import main; code = main(['--help']);"
        f"print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0
    assert done.stderr.strip() == "[]"
    for verb in VERBS:
        assert f"  {verb}" in done.stdout


@pytest.mark.parametrize("verb", [(), *((verb,) for verb in VERBS)])
def test_help_has_one_word_for_an_override(
    verb: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*verb, "--help"]) == codes.OK
    assert "overrul" not in capsys.readouterr().out.casefold()


def test_explain_never_imports_torch_or_textual(tmp_path: Path) -> None:
    code = (
        "import sys; from tcw.workbench.cli.main import main;"
        "main(['explain', 'no.py']); import tcw.viewers.text.explain, tcw.viewers.json_report;"
        "print([m for m in ('torch', 'textual', 'triton') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("verb", ["explain", "step", "open"])
def test_the_docstring_is_the_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == codes.OK
    assert first_line(verb) in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == codes.OK
    assert capsys.readouterr().out.startswith("tcw ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["explian", "x.py"], "Did you mean 'explain'?"),
        (["model.py"], "Did you mean 'tcw explain model.py'?"),
        (["frobnicate"], f"Verbs: {', '.join(VERBS)}."),
        (["explain", "model.py", "--modle", "x"], "--model"),
        (["explain", "model.py", "--show", "brekas"], "Did you mean 'breaks'?"),
        (["explain", "model.py", "--show", "guards=most"], "guards=most: use guards=all"),
        (["explain", "model.py", "--show", "fusion=all"], "fusion=all: use fusion"),
        (["explain", "modle.py"], "Did you mean model.py?"),
        (["explain", "nowhere/model.py"], "no folder nowhere"),
        (["open", ".", "."], "name one of them"),
        (["explain"], "FILE"),
        (["explain", "model.py", "--train", "--no-grad"], "exclude each other"),
        (["explain", "model.py", "--mark-dynamic", "x"], "NAME:DIM"),
        (["explain", "model.py", "--arch", "hopper"], "sm_90"),
        (["explain", "model.py", "--timeout", "-1"], "--timeout"),
        (["explain", "model.py", "--until", "lunch"], "capture"),
        (["explain", "model.py", "extra.py"], "extra.py"),
        (["explain", "model.py", "--trace", "model.py"], "a file that the run reads"),
        (["explain", "model.py", "--trace", "notes.txt"], "is not a trace"),
        (["explain", "model.py", "--trace", "no/run.tcw"], "no folder no"),
        (["open", "model.py"], "is not a tcw trace"),
        (["open", "gone.tcw"], "does not exist"),
        (["open", "newer.tcw"], "install a newer tcw"),
        (["open", "good.tcw"], "needs a terminal"),
    ],
)
def test_usage(
    arguments: list[str],
    says: str,
    model: Path,
    client: Client,
    capsys: pytest.CaptureFixture[str],
) -> None:
    newer = '{"record":"start","schema_version":9,"tool_version":"9","settings":{"file":""},'
    newer += '"python":"","platform":"","pid":1,"time":0}\n'
    (model.parent / "newer.tcw").write_text(newer)
    (model.parent / "notes.txt").write_text("words")
    start = newer.replace('"schema_version":9', '"schema_version":1')
    (model.parent / "good.tcw").write_text(start)
    assert main(arguments) == codes.USAGE
    said = capsys.readouterr()
    assert says in said.err
    assert "Traceback" not in said.err
    assert said.out == ""


@pytest.mark.parametrize("verb", ["explain", "profile", "step", "repro"])
@pytest.mark.parametrize(
    ("name", "begins", "says"),
    [
        ("run.tcw", "import os\n", "no"),
        ("run.TCW", "import os\n", "no"),
        ("run.tcw", '{"record": "start"}\n', "tcw open"),
        ("run.py", '{"record": "start"}\n', "tcw open"),
        ("link.py", "import os\n", "no"),
    ],
)
def test_a_trace_is_never_run(
    verb: str,
    name: str,
    begins: str,
    says: str,
    model: Path,
    client: Client,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = model.parent / name
    if name == "link.py":
        (model.parent / "run.tcw").write_text(begins)
        file.symlink_to("run.tcw")
    else:
        file.write_text(begins)
    assert main([verb, name]) == codes.USAGE
    said = capsys.readouterr()
    assert "trace" in said.err
    assert client.settings is None
    reads = verb == "repro" or (verb == "explain" and name == "run.tcw")
    if not reads:
        assert says in said.err


def test_explain_of_a_trace_prints_its_report(
    model: Path, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same as of a folder that has only this trace."""
    folder = model.parent / "folder"
    folder.mkdir()
    trace = folder / "run.tcw"
    trace.write_bytes(b"\n".join(map(msgspec.json.encode, traces.clean())))
    for options in ([], ["--json"], ["--markdown"], ["--show", "kernels"]):
        assert main(["explain", str(trace), *options]) == codes.OK
        of_file = capsys.readouterr().out
        assert main(["explain", str(folder), *options]) == codes.OK
        assert of_file == capsys.readouterr().out != ""
    assert client.settings is None


def test_settings(model: Path, client: Client) -> None:
    arguments = "--model Net(64) --inputs f32[8,64] --inputs f32[16,64] --train --mode max-autotune"
    arguments += " --fullgraph --dynamic --mark-dynamic x:0 --until codegen --record steps"
    arguments += " --arch sm_80 --timeout 9.5 --trace run.tcw -- --epochs 3"
    assert main(["explain", "model.py", *arguments.split()]) == codes.OK
    assert client.settings == Settings(
        file=str(model),
        model="Net(64)",
        inputs=("f32[8,64]", "f32[16,64]"),
        mode="max-autotune",
        dynamic=True,
        fullgraph=True,
        mark_dynamic=("x:0",),
        grad="train",
        until="codegen",
        record="steps",
        device="cuda",
        arch="sm_80",
        timeout=9.5,
        arguments=("--epochs", "3"),
    )
    assert client.trace == Path("run.tcw")


def test_defaults(model: Path, client: Client) -> None:
    assert main(["explain", "model.py"]) == codes.OK
    assert client.settings == Settings(file=str(model))
    assert client.trace is None


@pytest.mark.parametrize("show", ["guards", "guards=all"])
def test_text_on_stdout(
    show: str, model: Path, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "model.py", "--show", show]) == codes.OK
    said = capsys.readouterr()
    assert "1.41x faster" in said.out
    assert "guards 0/0 forward" in said.out
    assert said.err == ""


@pytest.mark.parametrize(
    ("records", "code", "status"),
    [
        (traces.clean(), codes.OK, "ok"),
        (traces.failed(), codes.MODEL_FAILED, "failed"),
        (traces.timed_out(), codes.MODEL_FAILED, "timeout"),
        ([traces.end("crashed", signal=11)], codes.MODEL_FAILED, "crashed"),
        ([traces.end("interrupted")], codes.INTERRUPTED, "interrupted"),
        ([traces.end("exited", exit_code=3)], codes.MODEL_FAILED, "exited"),
        (block_trace(), codes.OK, "ok"),
    ],
)
def test_exit_codes_and_json(
    records: list[AnyRecord],
    code: int,
    status: str,
    model: Path,
    client: Client,
    capsys: pytest.CaptureFixture[str],
) -> None:
    client.records = records
    assert main(["explain", "model.py", "--json"]) == code
    assert json.loads(capsys.readouterr().out)["status"] == status
    assert main(["explain", "model.py"]) == code


def test_a_fault_of_ours_is_one_line(
    model: Path,
    client: Client,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    client.error = RuntimeError("\x1b[31mbroken\nsecond line")
    assert main(["explain", "model.py", "--json"]) == codes.INTERNAL
    said = capsys.readouterr()
    assert json.loads(said.out)["status"] == "internal"
    (line,) = said.err.splitlines()
    assert line.startswith("tcw: internal error: RuntimeError: ␛[31mbroken; details: ")
    details = Path(line.rpartition("details: ")[2])
    assert "second line" in details.read_text()
    assert details.parent.stat().st_mode & 0o777 == 0o700


def test_a_fault_of_ours_without_a_place_for_its_details(
    model: Path,
    client: Client,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The one cache folder has one rule: what is open to others is not used, and that is said."""
    (tmp_path / "cache" / "tcw").mkdir(parents=True)
    (tmp_path / "cache" / "tcw").chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    client.error = RuntimeError("broken")
    assert main(["explain", "model.py"]) == codes.INTERNAL
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tcw: internal error: RuntimeError: broken; details not saved: ")
    assert "chmod 700" in line
    assert not list((tmp_path / "cache" / "tcw").iterdir())


def test_interrupted(model: Path, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    client.error = KeyboardInterrupt()
    assert main(["explain", "model.py", "--json"]) == codes.INTERRUPTED
    said = capsys.readouterr()
    assert json.loads(said.out)["status"] == "interrupted"
    assert said.err.strip() == "tcw: interrupted"


@pytest.mark.parametrize("arguments", [["explain", "no.py", "--json"], ["explain", "--json"]])
def test_usage_as_json(
    arguments: list[str], model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == codes.USAGE
    assert json.loads(capsys.readouterr().out)["status"] == "usage"


def test_json_after_the_dashes_is_the_scripts(
    model: Path, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "model.py", "--", "--json"]) == codes.OK
    assert "1.41x faster" in capsys.readouterr().out


PIPE = """
import os, sys
from types import ModuleType
from tests.no_torch import traces
module = ModuleType("tcw.workbench.worker.client")
def record(settings, trace, on_record, then, tries, python=""):
    for one in traces.failed(): on_record(one)
    return one
module.record = record
import tcw.workbench.worker
tcw.workbench.worker.client = sys.modules["tcw.workbench.worker.client"] = module
from tcw.workbench.cli import run
run(["explain", "model.py"])
"""


def test_a_reader_that_leaves_is_no_fault(model: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", PIPE],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
        check=False,
    )
    os.close(write)
    assert done.stderr == ""
    assert done.returncode == codes.MODEL_FAILED


def test_a_missing_file_in_a_real_process(tmp_path: Path) -> None:
    done = tcw("explain", "no.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (codes.USAGE, "")
    assert done.stderr.startswith("tcw: no.py does not exist")


def test_completion(tmp_path: Path) -> None:
    """Verbs and options complete, as the documented line sets it up."""
    for words, at, expected in (("tcw ex", "1", "explain"), ("tcw explain --un", "2", "--until")):
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "_TCW_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": at,
        }
        done = subprocess.run(
            [sys.executable, str(ROOT / "tcw" / "__main__.py")],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert expected in done.stdout, done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_every_wrong_option_ends_with_where_the_help_is(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in ("--nonsense", "--help=1"):
        assert main([verb, option]) == codes.USAGE
        assert capsys.readouterr().err.endswith(f"tcw: try 'tcw {verb} --help'\n")


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ("check", "doctor")])
def test_every_missing_file_is_named_with_where_the_help_is(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`check` takes targets, `doctor` nothing."""
    monkeypatch.chdir(tmp_path)
    for file, where in (("gone.py", ""), ("no/gone.py", ": no folder no")):
        assert main([verb, file]) == codes.USAGE
        said = f"tcw: {file} does not exist{where}\ntcw: try 'tcw {verb} --help'\n"
        assert capsys.readouterr().err == said
    assert list(tmp_path.iterdir()) == []
