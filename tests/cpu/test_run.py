"""`tcw run`: what the processes of a program compile, as torch's own counters have it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tcw.compiler.trace.records import FrameEnd, FrameStart, Guards
from tcw.viewers.recording import Recording
from tcw.viewers.summary import summarise
from tcw.workbench import DOOR
from tests.cpu.command_line import Done, tcw

COUNTERS = """
import json
from torch._dynamo.utils import counters
print(json.dumps({
    "graphs": counters["stats"].get("unique_graphs", 0),
    "breaks": sum(counters.get("graph_break", {}).values()),
}))
"""


def run(folder: Path, *arguments: str, stdin: str = "", **environment: str) -> Done:
    """The command as a process of its own."""
    return started(folder, DOOR, "run", *arguments, stdin=stdin, **environment)


def started(folder: Path, *arguments: str, stdin: str = "", **environment: str) -> Done:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        input=stdin,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def write(folder: Path, text: str, counted: bool = True) -> None:
    program = textwrap.dedent(text).lstrip() + (COUNTERS if counted else "")
    (folder / "program.py").write_text(program)


def recordings(folder: Path) -> list[Recording]:
    found = [Recording.open(path) for path in folder.glob("*.tcw")]
    return sorted(found, key=lambda one: one.start.time if one.start else 0.0)


def counted(found: Recording) -> dict[str, Any]:
    """What torch's counters count: each break once a compile that met it."""
    summary = summarise(found)
    return {"graphs": summary.compiles, "breaks": sum(one.count for one in summary.breaks)}


LOOP = """
    import sys
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 2)

        def forward(self, x):
            x = torch.relu(x)
            print("in the model", file=sys.stderr)
            return self.layer(x)

    def main():
        model = Net()
        compiled = torch.compile(model, backend="aot_eager")
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        data = TensorDataset(torch.randn(20, 8), torch.randint(0, 2, (20,)))
        for x, y in DataLoader(data, 8, num_workers=2):
            torch.nn.functional.cross_entropy(compiled(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
        print(sys.stdin.read())

    if __name__ == "__main__":
        main()
"""


@pytest.mark.parametrize("by_itself", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_training_loop_with_loader_workers(by_itself: bool, tmp_path: Path) -> None:
    """What torch counts, which is the same of the program by itself; one trace, none of the
    loader's workers."""
    write(tmp_path, LOOP)
    done = run(tmp_path, "-o", "traces", "program.py", stdin="given")
    if by_itself:
        plain = started(tmp_path, "program.py", stdin="given")
        assert (done.code, done.out) == (plain.code, plain.out)
    given, told = done.out.splitlines()
    assert (done.code, given) == (0, "given")
    (recording,) = recordings(tmp_path / "traces")
    assert counted(recording) == json.loads(told)
    assert (recording.end.status, recording.end.calls) == ("ok", 3)  # type: ignore[union-attr]
    assert "1 process compiled" in done.err
    assert "x.size(0) 8 → 4" in done.err
    assert "program.py:" in done.err


def test_children_have_traces_of_their_own(tmp_path: Path) -> None:
    """One that compiles anew, one that only calls what its parent compiled, one of a new Python,
    and one of multiprocessing's server, which Python 3.14 starts processes from."""
    text = """
        import multiprocessing, os, torch

        def f(x):
            return x + 1

        def g(x):
            torch._dynamo.graph_break()
            return x * 2

        first = torch.compile(f, backend="eager")
        second = torch.compile(g, backend="eager")

        def child():
            second(torch.ones(3))

        if __name__ == "__main__":
            first(torch.ones(3))
            for work in (lambda: (first(torch.ones(3)), second(torch.ones(3))),
                         lambda: first(torch.ones(3))):
                if (pid := os.fork()) == 0:
                    work()
                    os._exit(5)
                assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
            for method in ("spawn", "forkserver"):
                other = multiprocessing.get_context(method).Process(target=child)
                other.start()
                other.join()
            first(torch.ones(3, 3))
    """
    write(tmp_path, text, counted=False)
    done = run(tmp_path, "-o", "traces", "program.py")
    assert done.code == 0, done.err
    parent, *children = recordings(tmp_path / "traces")
    assert len(children) == 3
    assert [len(child.all(FrameEnd)) for child in (parent, *children)] == [2] * 4
    ends = [child.end.status for child in (parent, *children)]  # type: ignore[union-attr]
    # multiprocessing's server ends its children by os._exit
    assert ends == ["ok", "exited", "ok", "exited"]
    assert children[0].end.exit_code == 5  # type: ignore[union-attr]
    assert children[2].end.exit_code == 0  # type: ignore[union-attr]
    assert not summarise(parent).breaks
    assert [len(summarise(child).breaks) for child in children] == [1] * 3
    assert "4 processes compiled, 2 different results" in done.err
    assert done.err.count("browse it:") == 2, "what two compiled is told once"
    assert "program.py:7" in done.err.partition(" against process ")[2], "what the others did"


def test_threads_and_a_program_with_packages_of_our_names(tmp_path: Path) -> None:
    text = """
        import sys, threading
        import compiler, torch, viewers

        def make(number):
            namespace = {"torch": torch}
            body = "torch._dynamo.graph_break(); return x.sin() + 1"
            exec(f"def f{number}(x): {body}", namespace)
            return namespace[f"f{number}"]

        def work(function):
            compiled = torch.compile(function, backend="aot_eager")
            for size in (3, 4):
                compiled(torch.ones(size, requires_grad=True)).sum().backward()

        threads = [threading.Thread(target=work, args=(make(one),)) for one in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert "torch._inductor.cudagraph_trees" not in sys.modules, "its import changes the thread"
        assert compiler.WHOSE == viewers.WHOSE == sys.modules["compiler"].WHOSE == "theirs"
    """
    write(tmp_path, text)
    for name in ("compiler", "viewers"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("WHOSE = 'theirs'\n")
    done = run(tmp_path, "-o", "traces", "program.py")
    assert done.code == 0, done.err
    (recording,) = recordings(tmp_path / "traces")
    assert counted(recording) == json.loads(done.out.splitlines()[-1])
    assert recording.end.status == "ok"  # type: ignore[union-attr]


def test_calls_of_another_thread_resets_and_an_error(tmp_path: Path) -> None:
    """A compile keeps its call while another thread calls; torch's counters go on where its compile
    ids restart; what the program raises is in its trace."""
    text = """
        import threading
        import torch

        begun, called = threading.Event(), threading.Event()

        def slow(graph, inputs):
            begun.set()
            assert called.wait(60)
            return graph

        def f(x):
            return x + 1

        def g(x):
            return x * 2

        g = torch.compile(g, backend="eager")
        g(torch.ones(2))
        f = torch.compile(f, backend=slow, dynamic=False)
        thread = threading.Thread(target=f, args=(torch.ones(3),))
        thread.start()
        assert begun.wait(60)
        g(torch.ones(2))
        called.set()
        thread.join()

        def h(x):
            return x - 1

        def i(x):
            return x / 2

        for _ in range(3):
            torch._dynamo.reset()
            for one in (h, i):
                compiled = torch.compile(one, backend="eager")
                compiled(torch.ones(2))
                compiled(torch.ones(3))
    """
    write(tmp_path, text)
    program = tmp_path / "program.py"
    program.write_text(program.read_text() + 'raise ValueError("broken")\n')
    done = run(tmp_path, "-o", "traces", "program.py")
    assert done.code == 1
    (recording,) = recordings(tmp_path / "traces")
    first = [("0/0", 1), ("1/0", 2)]
    assert [(start.compile_id, start.call) for start in recording.all(FrameStart)][:2] == first
    assert [(guards.compile_id, guards.call) for guards in recording.all(Guards)][:2] == first
    assert recording.end is not None
    assert recording.end.calls == 15
    assert counted(recording) == json.loads(done.out) == {"graphs": 14, "breaks": 0}
    assert summarise(recording).graphs == 8
    assert "restarted torch's compile ids 3 times" in " ".join(done.err.split())
    assert recording.failure is not None
    assert recording.failure.message == "broken"
    assert recording.failure.location is not None
    assert recording.failure.location.line == len(program.read_text().splitlines())


@pytest.mark.long
def test_killed_in_the_middle(tmp_path: Path) -> None:
    text = """
        import os, signal, torch

        def slow(graph, inputs):
            os.kill(os.getpid(), signal.SIGKILL)

        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
        torch.compile(lambda x: x + 2, backend=slow)(torch.ones(3))
    """
    write(tmp_path, text, counted=False)
    done = run(tmp_path, "program.py")
    assert done.code == 137
    (recording,) = recordings(tmp_path / "program.tcw")
    assert recording.end is None
    assert not recording.losses
    assert len(recording.all(FrameEnd)) == 1
    assert "killed, or cut off" in done.err
    folder = tmp_path / "program.tcw"
    told = tcw(tmp_path, "explain", str(folder))
    assert told.code == 0
    assert "Still recording, or cut off" in told.out


@pytest.mark.long
def test_two_ranks(tmp_path: Path) -> None:
    """What both ranks compiled is told once."""
    text = """
        import torch, torch.distributed as dist

        dist.init_process_group("gloo")
        model = torch.compile(torch.nn.Linear(8, 2), backend="aot_eager")
        model = torch.nn.parallel.DistributedDataParallel(model)
        for _ in range(2):
            model(torch.randn(4, 8)).sum().backward()
        dist.destroy_process_group()
        raise SystemExit(0)
    """
    write(tmp_path, text, counted=False)
    launch = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "program.py")
    done = run(tmp_path, "-o", "program.tcw", *launch)
    assert done.code == 0, done.err
    assert len(list(tmp_path.glob("program.tcw/program-rank[01]-*.tcw"))) == 2
    assert "2 processes compiled, all the same\n  rank 0  program.py" in done.err
    assert done.err.count("nothing needs attention") == 1


def test_a_file_without_a_model_names_the_command(tmp_path: Path) -> None:
    write(tmp_path, "import torch\n", counted=False)
    done = tcw(tmp_path, "explain", "program.py")
    assert done.code == 3
    assert "tcw run program.py" in " ".join(done.out.split())
