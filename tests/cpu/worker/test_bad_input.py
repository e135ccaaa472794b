"""Whatever the user's file does: one clear failure with its place, a trace that opens, no orphan.

`recorded` checks the trace and the orphans of each.
"""

from __future__ import annotations

import os
import textwrap
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tcw.compiler.trace.records import (
    CallEnd,
    CallStart,
    Kernel,
    Output,
    OutputCapped,
    Text,
    Warned,
)
from tests.cpu.worker.recorded import DEFAULTS, Recorded
from tests.cpu.worker.recorded import recorded as recorded_plainly

recorded = partial(recorded_plainly, tries=True)
"""With trials: what is hostile to a recording is so to them."""


@pytest.fixture(params=["capture", pytest.param("tcw", marks=pytest.mark.long)], autouse=True)
def _how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until capture, which is quick; and all the way, with our engine."""
    if request.param == "tcw":
        monkeypatch.setitem(DEFAULTS, "until", "run")
        monkeypatch.setitem(DEFAULTS, "engine", "tcw")


NET = """\
import torch

class Net(torch.nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, x):
        {body}
        return self.linear(x)

{tail}
"""


def net(
    body: str = "pass", tail: str = "model = Net()\nexample_inputs = (torch.ones(2, 4),)"
) -> str:
    return NET.format(body=textwrap.indent(body, " " * 8).lstrip(), tail=tail)


FORWARD = 9
"""Line of `body` in the text of `net`."""


@pytest.mark.cold_start
def test_syntax_error_is_found_before_torch_is_imported(tmp_path: Path) -> None:
    found = recorded(tmp_path, "import torch\nx = (1,\nfor y in 3:\n")
    assert found.failure.type == "SyntaxError"
    assert found.line == 2
    assert found.failure.location is not None
    assert found.failure.location.column == 4
    assert found.failure.source_line == "x = (1,"
    assert found.end.status == "failed"
    assert not found.imported_torch


def test_missing_import(tmp_path: Path) -> None:
    found = recorded(tmp_path, "import torch\nimport no_such_package.inner\n")
    assert found.failure.type == "ModuleNotFoundError"
    assert found.line == 2
    assert "no_such_package is not installed" in found.failure.hint


def test_a_file_of_a_package_says_how_to_record_it(tmp_path: Path) -> None:
    (tmp_path / "nets" / "deep").mkdir(parents=True)
    for folder in ("nets", "nets/deep"):
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "nets/deep/blocks.py").write_text("SIZE = 4\n")
    found = recorded(tmp_path, "from .blocks import SIZE\n" + net(), name="nets/deep/model.py")
    assert found.failure.type == "ImportError"
    line = "from nets.deep.model import model, example_inputs"
    assert f"next to nets/ that has `{line}`" in found.failure.hint
    assert recorded(tmp_path, f"{line}\n", name="beside.py").end.status == "ok"


def test_arguments_that_a_script_lacks(tmp_path: Path) -> None:
    lines = "import argparse, torch", "parser = argparse.ArgumentParser()"
    needs = "parser.add_argument('--steps', required=True)"
    text = "\n".join([*lines, needs, "parser.parse_args()", "torch.compile"])
    found = recorded(tmp_path, text, engine="inductor")  # a script has backends of its own
    assert found.failure.hint.startswith("arguments of the script come after `--`")
    given = recorded(tmp_path, text, arguments=("--steps", "3"), engine="inductor")
    assert given.end.status == "ok"


def test_syntax_error_in_a_module_of_the_users(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("def broken(:\n")
    found = recorded(tmp_path, "import helper\nmodel = example_inputs = None\n")
    assert found.failure.type == "SyntaxError"
    assert found.failure.location is not None
    assert found.failure.location.file == str(tmp_path / "helper.py")


def test_no_model_says_what_is_there(tmp_path: Path) -> None:
    found = recorded(tmp_path, net(tail="network = Net()\nexample_inputs = (torch.ones(2, 4),)"))
    assert found.failure.message == "model.py has no `model`"
    assert "modules network; classes Net" in found.failure.hint
    assert "model = network" in found.failure.hint


def test_no_inputs(tmp_path: Path) -> None:
    found = recorded(tmp_path, net(tail="model = Net()\nexample_input = (torch.ones(2, 4),)"))
    assert found.failure.message == "model.py has no `example_inputs`"
    assert found.failure.hint == "is it example_input?"


def test_a_class_in_place_of_an_instance(tmp_path: Path) -> None:
    found = recorded(tmp_path, net(tail="model = Net\nexample_inputs = (torch.ones(2, 4),)"))
    assert found.failure.message == "`model` is the class Net, not an instance of it"
    assert found.failure.hint.startswith("model = Net()")
    assert found.failure.source_line == "model = Net"


def test_inputs_that_do_not_fit(tmp_path: Path) -> None:
    tail = "model = Net()\nexample_inputs = (torch.ones(2, 4), torch.ones(2))"
    found = recorded(tmp_path, net(tail=tail))
    assert found.failure.message == (
        "the inputs do not fit Net.forward(x): too many positional arguments"
    )
    assert found.failure.doing == "reading inputs"
    assert found.line == 8


def test_a_function_that_returns_the_model_in_its_place(tmp_path: Path) -> None:
    tail = "def model():\n    return Net()\nexample_inputs = (torch.ones(2, 4),)"
    found = recorded(tmp_path, net(tail=tail))
    assert found.failure.message == "the inputs do not fit model(): too many positional arguments"
    assert found.failure.hint == "if model() returns the model: --model 'model()'"
    assert recorded(tmp_path, net(tail=tail), model="model()").end.status == "ok"


def test_wrong_shapes_are_not_blamed_on_compiling(tmp_path: Path) -> None:
    found = recorded(tmp_path, net(tail="model = Net()\nexample_inputs = (torch.ones(2, 3),)"))
    assert found.failure.eager_fails is True
    assert found.failure.culprit == "user"
    assert found.failure.source_line.strip() == "return self.linear(x)"
    place = found.failure.location
    assert place is not None
    assert found.failure.source_line[place.column : place.end_column] == "self.linear(x)"
    assert "shapes cannot be multiplied" in found.failure.message
    assert found.failure.doing.startswith("call 1, capture of")
    assert found.end.status == "failed"
    texts = {text.hash: text.body for text in found.all(Text)}
    compiled, _, eager = texts[found.failure.traceback].partition("\nEager:\n")
    for trace in (compiled, eager):
        assert "return self.linear(x)" in trace
        assert not any(f"{folder}{os.sep}" in trace for folder in ("workbench", "compiler")), trace
    assert "fake tensor" in compiled
    assert "fake tensor" not in eager


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        (b"", "NoModel", 1),
        (b"\n  \n", "NoModel", 1),
        (b"x = 1\ny = '\xff'\n", "SyntaxError", 2),
        (b"x = 1\ny = '\0'\n", "SyntaxError", 2),
    ],
)
def test_no_source(tmp_path: Path, text: bytes, kind: str, line: int) -> None:
    found = recorded(tmp_path, text)
    assert found.failure.type == kind
    assert found.line == line
    assert not found.imported_torch


def test_no_file(tmp_path: Path) -> None:
    found = recorded(tmp_path, None, name="absent.py")
    assert found.failure.message.endswith("no such file")
    (tmp_path / "folder.py").mkdir()
    found = recorded(tmp_path, None, name="folder.py")
    assert found.failure.message.endswith("it is a folder, not a Python file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_unreadable_file(tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("")
    (tmp_path / "secret.py").chmod(0)
    found = recorded(tmp_path, None, name="secret.py")
    assert found.failure.message.endswith("permission denied")


def test_sys_exit_while_loading(tmp_path: Path) -> None:
    found = recorded(tmp_path, "import sys\nsys.exit(7)\n")
    assert (found.end.status, found.end.exit_code) == ("exited", 7)
    assert found.line == 2
    assert found.failure.message == "the program ended itself: sys.exit(7)"


def test_sys_exit_in_forward(tmp_path: Path) -> None:
    found = recorded(tmp_path, net("import sys; sys.exit(5)"))
    assert (found.end.status, found.end.exit_code) == ("exited", 5)
    assert found.line == FORWARD


def test_os_exit(tmp_path: Path) -> None:
    found = recorded(tmp_path, net("import os; os._exit(9)"))
    assert (found.end.status, found.end.exit_code) == ("exited", 9)
    assert "os._exit(9)" in found.failure.source_line


def test_exit_in_native_code(tmp_path: Path) -> None:
    found = recorded(tmp_path, "import ctypes\nctypes.CDLL(None)._exit(4)\n")
    assert (found.end.status, found.end.exit_code) == ("exited", 4)
    assert found.failure.type == "exit"


@pytest.mark.parametrize(
    "text",
    [
        "import ctypes\nctypes.string_at(0)\n",
        net("torch._dynamo.graph_break()\nimport ctypes; ctypes.string_at(0)"),
    ],
)
def test_segmentation_fault(tmp_path: Path, text: str) -> None:
    found = recorded(tmp_path, text)
    assert (found.end.status, found.end.signal) == ("crashed", 11)
    assert found.failure.type == "SIGSEGV"
    assert "ctypes.string_at(0)" in found.failure.source_line


def test_abort(tmp_path: Path) -> None:
    found = recorded(tmp_path, "import os\nos.abort()\n")
    assert (found.end.status, found.end.signal) == ("crashed", 6)
    assert found.line == 2


PATIENCE = 6.0
"""Seconds in which a machine with nothing else to do reaches the user's code."""


def timed_out(folder: Path, text: str, reached: Callable[[Recorded], bool]) -> Recorded:
    """A recording that is stopped while the user's code hangs: a busy machine needs longer to get
    there."""
    patience = PATIENCE
    while True:
        found = recorded(folder, text, timeout=patience)
        if reached(found) or patience > 100:
            return found
        patience *= 3


@pytest.mark.parametrize(
    "text",
    [
        "while True: pass\n",
        net("torch._dynamo.graph_break()\nimport time; time.sleep(1000)"),
    ],
)
def test_hang(tmp_path: Path, text: str) -> None:
    def in_the_loop(found: Recorded) -> bool:
        return any(word in found.failure.source_line for word in ("while True", "time.sleep"))

    found = timed_out(tmp_path, text, in_the_loop)
    assert found.end.status == "timeout"
    assert found.failure.type == "timeout"
    assert in_the_loop(found)


def test_hang_that_ignores_signals(tmp_path: Path) -> None:
    deaf = tmp_path / "deaf"
    text = f"""
        import signal, threading
        for number in range(1, 65):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
        threading.Thread(target=lambda: threading.Event().wait()).start()
        open({str(deaf)!r}, "w").close()
        threading.Event().wait()
    """
    found = timed_out(tmp_path, textwrap.dedent(text), lambda _: deaf.exists())
    assert deaf.exists()
    assert found.end.status == "timeout"


@pytest.mark.parametrize(
    "text",
    [
        "x = bytearray(1 << 60)\n",
        "import torch\nx = torch.empty(1 << 50, dtype=torch.uint8).fill_(1)\n",
        net("x = torch.ones(1 << 46, dtype=torch.float64).add_(x.sum())"),
    ],
)
def test_out_of_memory(tmp_path: Path, text: str) -> None:
    found = recorded(tmp_path, text)
    assert found.failure.hint.startswith("out of memory")
    assert "1 << " in found.failure.source_line


def test_killed_from_outside(tmp_path: Path) -> None:
    """As the kernel does when memory runs out."""
    found = recorded(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    assert (found.end.status, found.end.signal) == ("crashed", 9)
    assert "memory" in found.failure.message


def test_fifty_megabytes_of_prints(tmp_path: Path) -> None:
    text = """
        import sys
        for _ in range(50):
            print("x" * 99 + "\\n" * 1, end="", flush=True)
            sys.stdout.write(("y" * 99 + "\\n") * 10_000)
    """
    found = recorded(tmp_path, textwrap.dedent(text) + net())
    assert found.end.status == "ok"
    printed = [output for output in found.all(Output) if output.stream == "stdout"]
    assert sum(len(output.text) for output in printed) == 1_000_000
    assert [capped.stream for capped in found.all(OutputCapped)] == ["stdout"]


def test_threads_and_children_left_behind(tmp_path: Path) -> None:
    text = """
        import os, subprocess, sys, threading, time
        threading.Thread(target=lambda: time.sleep(1000)).start()
        subprocess.Popen(["sleep", "1000"])
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execvp("sleep", ["sleep", "1000"])
            os._exit(0)
    """
    found = recorded(tmp_path, textwrap.dedent(text) + net())
    assert found.end.status == "ok"
    assert len(found.all(CallEnd)) == 1


def test_a_forked_child_writes_no_records(tmp_path: Path) -> None:
    body = """
        torch._dynamo.graph_break()
        import os
        if os.fork() == 0:
            torch.compile(torch.sin, backend="eager")(x)
            os._exit(0)
        os.wait()
    """
    found = recorded(tmp_path, net(textwrap.dedent(body).strip()))
    assert found.end.status == "ok"
    assert len(found.all(CallStart)) == 1


def test_replaced_torch_compile(tmp_path: Path) -> None:
    text = "import torch\ndef mine(*a, **k): raise ValueError('mine')\ntorch.compile = mine\n"
    found = recorded(tmp_path, text + net())
    assert found.end.status == "ok"
    (warned,) = found.all(Warned)
    assert f"torch.compile is replaced at {found.file}:2" in warned.message


def test_terminal_escapes_stay_data(tmp_path: Path) -> None:
    text = "raise ValueError('\\x1b[31mred [/nope] [@click=app.quit] \\ud800')\n"
    found = recorded(tmp_path, text)
    assert found.failure.message.startswith("\x1b[31mred [/nope]")
    assert b"\x1b" not in (tmp_path / "run.tcw").read_bytes()


def test_lying_reprs(tmp_path: Path) -> None:
    lies = (
        "raise SystemExit(3)",
        "return 7",
        "import time; time.sleep(1000)",
        "return 'x' * 10**9",
    )
    head = "".join(
        f"class Liar{number}:\n    def __repr__(self):\n        {lie}\n\n"
        for number, lie in enumerate(lies)
    )
    liars = ", ".join(f"Liar{number}()" for number in range(len(lies)))
    text = NET.format(
        body="x = x * 2", tail=f"model = Net()\nexample_inputs = (torch.ones(2, 4), {liars})"
    ).replace("forward(self, x)", "forward(self, x, *liars)")
    found = recorded(tmp_path, head + text)
    assert found.end.status == "ok"
    (call,) = found.all(CallStart)
    assert [argument.value for argument in call.arguments[1:]] == [
        f"<Liar{number}>" for number in range(len(lies))
    ]


def test_an_exception_that_cannot_be_read(tmp_path: Path) -> None:
    text = "class Odd(Exception):\n    def __str__(self):\n        raise KeyError\n\nraise Odd\n"
    found = recorded(tmp_path, text)
    assert found.failure.type == "Odd"
    assert found.line == 5


def test_missing_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    found = recorded(tmp_path, net("x = torch.sin(x) * 2"), until="run", engine="inductor")
    assert found.failure.type == "InvalidCxxCompiler"
    assert found.failure.eager_fails is False
    assert found.failure.culprit == "machine"
    assert "install g++" in found.failure.hint
    assert found.end.status == "failed"


def test_no_compiler_is_needed_for_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    found = recorded(tmp_path, net("x = torch.sin(x) * 2"), until="codegen")
    assert found.end.status == "ok"
    assert [kernel.language for kernel in found.all(Kernel)].count("cpp") == 1


@pytest.mark.cold_start
def test_prints_without_torch_are_quick(tmp_path: Path) -> None:
    """The worker never waits for the front end longer than a pipe takes to empty."""
    start = time.monotonic()
    found = recorded(tmp_path, "import os\nos.write(1, b'z' * 50_000_000)\nos._exit(0)\n")
    assert found.all(OutputCapped)
    assert time.monotonic() - start < 60


@pytest.mark.parametrize(
    "name", ["two words.py", "new\nline.py", "type s.py", "types.py", "a\udcffb.py"]
)
def test_names_of_files(tmp_path: Path, name: str) -> None:
    found = recorded(tmp_path, "model = 3\nexample_inputs = ()\n", name=name)
    assert found.failure.message == "`model` is a int, which cannot be called"
    assert found.failure.source_line == "model = 3"


def test_a_limit_on_memory(tmp_path: Path) -> None:
    text = """
        import resource, torch
        def model(x):
            pages = int(open("/proc/self/statm").read().split()[0])
            resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + (64 << 20), -1))
            return x.expand(100_000_000).clone()
        example_inputs = (torch.ones(1),)
    """
    found = recorded(tmp_path, textwrap.dedent(text))
    assert found.line == 6
    assert found.failure.hint.startswith("out of memory")


@pytest.mark.parametrize("name", ["exec", "\uff45\uff58\uff45\uff43"])
def test_a_plain_name_is_one_of_the_file(name: str, tmp_path: Path) -> None:
    """A trace may ask for a name, and gives the inputs: no builtin is run with them."""
    code = f"open({str(tmp_path / 'ran')!r}, 'w')"
    found = recorded(tmp_path, net(), model=name, inputs=(repr(code),), until="run")
    assert found.failure.message == f"--model {name!r}: the file does not define that name"
    assert "model = model" in found.failure.hint
    assert not (tmp_path / "ran").exists()
