"""`tcw run` of programs that compile through a library, against torch's own log (TORCH_TRACE) and
counters of the same program by itself. Each needs its library: install it with `pip install
--no-deps` beside torch."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tcw.compiler.trace.records import FrameEnd, Graph, GraphBreak, Recompile
from tcw.viewers.recording import Recording
from tcw.viewers.summary import summarise
from tests.cpu.test_run import counted, recordings, run, started, write

pytestmark = pytest.mark.long


def needs(*modules: str) -> None:
    for name in modules:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")


def facts(found: Recording) -> dict[str, Any]:
    """What a recording and a log of torch's both have."""
    return {
        "frames": [(frame_end.compile_id, frame_end.status) for frame_end in found.all(FrameEnd)],
        "graphs": [
            (graph.compile_id, graph.ops) for graph in found.all(Graph) if graph.kind == "captured"
        ],
        "breaks": [
            (
                graph_break.compile_id,
                graph_break.gb or graph_break.type,
                Path(graph_break.location.file).name,
                graph_break.location.line,
            )
            for graph_break in found.all(GraphBreak)
        ],
        "recompiles": [
            (
                recompile.compile_id,
                recompile.reason.strip(),
                [failed.guard for failed in recompile.failed],
            )
            for recompile in found.all(Recompile)
        ],
    }


def compiled_as_in(folder: Path, logs: Path) -> Recording:
    """The recording, of one process, which has compiled what torch's log says."""
    (recording,) = recordings(folder / "traces")
    (log,) = (one for one in map(Recording.open, logs.iterdir()) if one.all(FrameEnd))
    own, theirs = facts(recording), facts(log)
    for fact in own:
        assert own[fact] == theirs[fact]
    assert own["graphs"], "something was compiled"
    assert recording.end is not None
    assert recording.end.status == "ok"
    return recording


def same_as_torch_says(folder: Path, *program: str) -> Recording:
    """Run the program by itself with TORCH_TRACE, then recorded: one process compiles, and it has
    compiled what torch's log and counters say. Returns its recording."""
    logs = folder / "logs"
    plain = started(folder, *program, TORCH_TRACE=str(logs))
    assert plain.code == 0, plain.err[-3000:]
    done = run(folder, "-o", "traces", *program)
    assert done.code == 0, done.err[-3000:]
    found = compiled_as_in(folder, logs)
    if (last := plain.out.strip().splitlines()[-1:]) and last[0].startswith('{"graphs"'):
        assert counted(found) == json.loads(last[0])
    return found


def same_in_one_process(folder: Path) -> Recording:
    """Run `program.py` recorded, with TORCH_TRACE: its recording, which says what the log says.

    For a program with threads, which compile differently in each run: torch adds a cache entry
    after it has released its lock, so another thread may compile the frame without a reason.
    """
    logs = folder / "logs"
    done = run(folder, "-o", "traces", "program.py", TORCH_TRACE=str(logs))
    assert done.code == 0, done.err[-3000:]
    found = compiled_as_in(folder, logs)
    said = json.loads(done.out.strip().splitlines()[-1])
    reasons = said.pop("reasons")
    assert counted(found) == said
    assert {recompile.compile_id for recompile in found.all(Recompile) if recompile.failed} == set(
        reasons
    )
    causes = summarise(found).recompiles
    assert {frame.compile_id for cause in causes for frame in cause.frames} >= set(reasons)
    return found


REASONS = """
        import json
        from torch._dynamo.utils import counters, get_compilation_metrics
        print(json.dumps({
            "graphs": counters["stats"].get("unique_graphs", 0),
            "breaks": sum(counters.get("graph_break", {}).values()),
            "reasons": [one.compile_id for one in get_compilation_metrics()
                        if one.recompile_reason],
        }))
"""
"""Torch's counters, and which of its compiles have a reason to be one more of a frame."""


MODEL = """
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(8, 2)

            def forward(self, x):
                return self.layer(torch.relu(x))
"""


def test_trainer(tmp_path: Path) -> None:
    """Hugging Face's, whose last batch is smaller."""
    needs("transformers", "accelerate")
    text = """
        import torch
        from transformers import BertConfig, BertForSequenceClassification
        from transformers import Trainer, TrainingArguments

        config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1,
                            num_attention_heads=2, intermediate_size=32)
        data = [{"input_ids": torch.arange(6) % 50, "labels": n % 2} for n in range(10)]
        arguments = TrainingArguments("out", num_train_epochs=1, per_device_train_batch_size=4,
                                      torch_compile=True, torch_compile_backend="aot_eager",
                                      use_cpu=True, report_to=[], save_strategy="no",
                                      disable_tqdm=True)
        Trainer(BertForSequenceClassification(config), arguments, train_dataset=data).train()
    """
    write(tmp_path, text)
    found = same_as_torch_says(tmp_path, "program.py")
    assert found.all(Recompile), "the last batch"


def test_accelerate(tmp_path: Path) -> None:
    needs("accelerate")
    text = """
        from accelerate import Accelerator
        from accelerate.utils import TorchDynamoPlugin
        from torch.utils.data import DataLoader, TensorDataset

        plugin = TorchDynamoPlugin(backend="aot_eager")
        accelerator = Accelerator(cpu=True, dynamo_plugin=plugin)
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        loader = DataLoader(TensorDataset(torch.randn(10, 8)), 4)
        net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
        for (x,) in loader:
            accelerator.backward(net(x).sum())
            optimizer.step()
    """
    write(tmp_path, MODEL + text)
    same_as_torch_says(tmp_path, "program.py")


def test_lightning(tmp_path: Path) -> None:
    needs("lightning")
    text = """
        import lightning
        from torch.utils.data import DataLoader, TensorDataset

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = torch.compile(Net(), backend="aot_eager")

            def training_step(self, batch, index):
                return self.net(batch[0]).sum()

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), 0.1)

        trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, devices=1,
                                    enable_checkpointing=False, enable_progress_bar=False)
        trainer.fit(Module(), DataLoader(TensorDataset(torch.randn(10, 8)), 4))
    """
    write(tmp_path, MODEL + text)
    same_as_torch_says(tmp_path, "program.py")


def test_pytest_of_a_package(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "net.py").write_text(
        "import torch\n\n\ndef f(x):\n    x = x + 1\n    torch._dynamo.graph_break()\n"
        "    return x * 2\n\n\ncompiled = torch.compile(f, backend='eager')\n"
    )
    (tmp_path / "test_net.py").write_text(
        "import torch\nfrom package.net import compiled\n\n\ndef test_it():\n"
        "    assert compiled(torch.ones(2)).sum() == 8\n    compiled(torch.ones(3))\n"
    )
    program = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", "test_net.py")
    found = same_as_torch_says(tmp_path, *program)
    assert len(found.all(GraphBreak)) >= 1


def test_a_notebook(tmp_path: Path) -> None:
    """Run by nbclient: the kernel is a process of its own."""
    needs("nbclient", "ipykernel", "nbformat")
    text = """
        import json, sys, nbclient, nbformat

        cells = [
            "import torch\\ndef f(x):\\n    x = x.sin()\\n    print('here')\\n    return x + 1",
            "compiled = torch.compile(f, backend='eager')",
            "for size in (3, 4):\\n    compiled(torch.ones(size))",
        ]
        book = nbformat.v4.new_notebook()
        book.cells = [nbformat.v4.new_code_cell(one) for one in cells]
        nbclient.NotebookClient(book, timeout=300).execute()
    """
    write(tmp_path, text, counted=False)
    kernels = tmp_path / "share" / "jupyter" / "kernels" / "python3"
    kernels.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernels / "kernel.json").write_text(
        json.dumps({"argv": command, "display_name": "python", "language": "python"})
    )
    os.environ["JUPYTER_PATH"] = str(tmp_path / "share" / "jupyter")
    try:
        found = same_as_torch_says(tmp_path, "program.py")
    finally:
        del os.environ["JUPYTER_PATH"]
    assert [graph_break.source_line.strip() for graph_break in found.all(GraphBreak)][:1] == [
        "print('here')"
    ]


def test_threads_that_begin_at_once(tmp_path: Path) -> None:
    """Eight threads call each function for the first time together: of some compiles torch itself
    has no reason."""
    text = """
        import sys, threading
        import torch

        sys.setswitchinterval(1e-5)
        torch._dynamo.utils.set_compilation_metrics_limit(1000)
        text = "def f{0}(x):\\n    return torch.relu(x) + {0}"

        def make(number):
            exec(text.format(number), globals())
            return torch.compile(globals()[f"f{number}"], backend="eager", dynamic=True)

        functions = [make(number) for number in range(10)]
        together = threading.Barrier(8)

        def work(rows):
            for one in functions:
                together.wait()
                one(torch.ones(rows, 8))

        threads = [threading.Thread(target=work, args=(2 + n,)) for n in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    """
    write(tmp_path, text + REASONS, counted=False)
    assert same_in_one_process(tmp_path).all(Recompile)


def test_a_server_under_load(tmp_path: Path) -> None:
    """FastAPI in uvicorn, asked by eight threads at once; the server ends by a signal."""
    needs("fastapi", "uvicorn")
    text = """
        import concurrent.futures, json, os, signal, threading, time, urllib.request
        import fastapi, uvicorn

        app = fastapi.FastAPI()
        net = torch.compile(Net(), backend="aot_eager", dynamic=True)

        @app.get("/{rows}")
        def answer(rows: int) -> float:
            with torch.no_grad():
                return float(net(torch.ones(rows, 8)).sum())

        def load():
            url = "http://127.0.0.1:%d/%d"
            while not server.started:
                time.sleep(0.1)
            port = server.servers[0].sockets[0].getsockname()[1]
            def ask(rows):
                return urllib.request.urlopen(url % (port, rows), timeout=300).read()
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                list(pool.map(ask, [2 + n % 5 for n in range(200)]))
            server.should_exit = True

        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
        threading.Thread(target=load).start()
        server.run()
    """
    write(tmp_path, MODEL + text + REASONS, counted=False)
    found = same_in_one_process(tmp_path)
    assert found.all(Recompile)
