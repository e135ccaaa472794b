"""`tcw run` of programs without torch: they run as they would without it."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TCW = [sys.executable, str(ROOT / "tcw" / "__main__.py"), "run"]


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """A job in the background ignores ctrl-c, and so would the programs that it starts."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def write(folder: Path, text: str, name: str = "program.py") -> Path:
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(textwrap.dedent(text))
    return file


def run(
    folder: Path, *arguments: str, stdin: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TCW, *arguments],
        cwd=folder,
        input=stdin,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_arguments_input_output_and_exit_code(tmp_path: Path) -> None:
    text = """
        import sys
        print(sys.argv, sys.path[0], __name__)
        print(sys.stdin.read(), file=sys.stderr)
        sys.exit(41)
    """
    write(tmp_path, text)
    done = run(tmp_path, "program.py", "--json", "-o", "b c", stdin="given")
    assert done.returncode == 41
    assert done.stdout == f"{['program.py', '--json', '-o', 'b c']} {tmp_path} __main__\n"
    assert done.stderr.startswith("given\ntcw: no process compiled anything")
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]


def test_a_module_and_a_command(tmp_path: Path) -> None:
    write(tmp_path, "", "package/__init__.py")
    write(tmp_path, "import sys; print(sys.argv[1:], sys.path[0])", "package/__main__.py")
    assert run(tmp_path, "-q", "-m", "package", "-x").stdout == f"['-x'] {tmp_path}\n"
    assert run(tmp_path, "-q", "sh", "-c", "echo $0; exit 9").returncode == 9
    assert run(tmp_path, "-q", "--", "sh", "-c", "kill -9 $$").returncode == 137
    missing = run(tmp_path, "no-such-program")
    assert missing.returncode == 127
    assert "no-such-program is not a command" in missing.stderr
    assert missing.stderr.endswith("tcw: try 'tcw run --help'\n")
    assert run(tmp_path, "--frobnicate", "x.py").returncode == 2
    assert run(tmp_path).returncode == 2


def test_the_environment_is_that_of_the_program_but_for_ours(tmp_path: Path) -> None:
    """Its own sitecustomize runs, and our folder is not on its path; the same in its children."""
    write(tmp_path, "import builtins; builtins.THEIRS = 1", "own/sitecustomize.py")
    text = """
        import os, subprocess, sys
        assert THEIRS == 1
        assert "own" in sys.modules["sitecustomize"].__file__
        assert not [one for one in sys.path if "start_up" in one], sys.path
        assert not {"tcw.compiler", "tcw.workbench", "torch", "msgspec"} & set(sys.modules)
        print(sorted(name for name in os.environ if name not in os.environ["BEFORE"].split()))
        if len(sys.argv) == 1:
            subprocess.run([sys.executable, __file__, "child"], check=True)
    """
    write(tmp_path, text)
    before = " ".join([*os.environ, "BEFORE", "PYTHONPATH"])
    done = run(tmp_path, "-q", "program.py", PYTHONPATH=str(tmp_path / "own"), BEFORE=before)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "['TCW_PACKAGES', 'TCW_RECORD']\n" * 2


def test_the_folder_is_new_or_empty(tmp_path: Path) -> None:
    write(tmp_path, "print('ran')")
    write(tmp_path, "", "full/notes.txt")
    refused = run(tmp_path, "-o", "full", "program.py")
    assert refused.returncode == 2
    assert "not empty" in refused.stderr
    assert "ran" not in refused.stdout
    assert run(tmp_path, "-o", "program.py", "program.py").returncode == 2


COUNTS = """
    import signal, sys, time
    got = []
    signal.signal(signal.SIGINT, lambda *_: got.append("INT"))
    signal.signal(signal.SIGTERM, lambda *_: got.append("TERM"))
    print("ready", flush=True)
    end = time.time() + 20
    while not got and time.time() < end:
        time.sleep(0.01)
    time.sleep(0.3)
    print(got, flush=True)
    sys.exit(3)
"""


@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_a_signal_to_tcw_is_passed_on(tmp_path: Path, name: str) -> None:
    write(tmp_path, COUNTS)
    with subprocess.Popen(
        [*TCW, "-q", "program.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.Signals[f"SIG{name}"])
        assert process.stdout.read() == f"['{name}']\n"
    assert process.returncode == 3


def test_ctrl_c_in_a_terminal_reaches_the_program_once(tmp_path: Path) -> None:
    write(tmp_path, COUNTS)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, [*TCW, "program.py"])
    seen = b""
    sent = False
    end = time.time() + 60
    while time.time() < end:
        try:
            seen += os.read(terminal, 4096)
        except OSError:
            break
        if b"ready" in seen and not sent:
            sent = True
            os.write(terminal, b"\x03")
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    assert b"['INT']" in seen
    assert b"no process compiled anything" in seen
    assert status == 3


def test_a_program_that_leaves_ctrl_c_to_python_ends_with_130(tmp_path: Path) -> None:
    write(tmp_path, "import time; print('ready', flush=True); time.sleep(20)")
    with subprocess.Popen(
        [*TCW, "-q", "program.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        error = process.communicate()[1]
    assert process.returncode == 130
    assert error.rstrip().endswith("KeyboardInterrupt")
