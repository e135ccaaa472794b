"""Is the predicted GPU code what a GPU compiles? Needs a GPU; run from the project's root.

    python benchmarks/gpu_prediction.py [--diff] [NAME …]

Each sample model is recorded twice: on the CPU with `--device cuda --arch sm_NN` and all GPUs
hidden, and on the real GPU. A kernel counts as the same if the other recording of its graph has one
with the same source, apart from device names; `--diff` shows the others. Exits with 1 if any kernel
has no counterpart.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tcw.compiler.trace.records import Kernel
from tcw.viewers.recording import Recording

ROOT = Path(__file__).parents[1]
SAMPLES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("pointwise_chain", ("--no-grad",)),
    ("softmax_layernorm", ("--no-grad",)),
    ("resnet_block", ("--no-grad",)),
    ("llama_block", ("--no-grad",)),
    ("transformer_block", ("--no-grad",)),
    ("transformer_block", ("--train",)),
    ("gpt", ("--no-grad",)),
    ("dynamic_shapes", ("--no-grad",)),
)

ON_GPU = 'import torch\n\ntorch.set_default_device("cuda")\n'
"""Prepended to the sample's text, so that everything is created on the GPU."""

DEVICE_WORDS = (
    (re.compile(r"DeviceProperties\(.*?\)"), "DeviceProperties()"),
    (re.compile(r"'backend_hash': '\w+'"), "'backend_hash': ''"),
    (re.compile(r"'(kernel_num_gb|kernel_flop)': [\d.e+-]+,? ?"), ""),
)
"""Parts that depend on the device or this installation of Triton, not on code."""


def record(file: Path, options: tuple[str, ...], trace: Path, hidden: bool) -> Recording:
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""} if hidden else dict(os.environ)
    command = [sys.executable, str(ROOT / "tcw" / "__main__.py"), "explain", str(file), *options]
    command += ["--quiet", "--trace", str(trace)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
    return Recording.open(trace)


def kernels(recording: Recording) -> dict[str, list[str]]:
    """Graph (without the architecture) -> sources of its Triton kernels, in order."""
    found: dict[str, list[str]] = {}
    for kernel in recording.all(Kernel):
        if kernel.language == "triton":
            text = recording.text(kernel.text)
            for pattern, words in DEVICE_WORDS:
                text = pattern.sub(words, text)
            found.setdefault(re.sub(r"@sm_\d+", "", kernel.graph), []).append(text)
    return found


def main(names: list[str]) -> int:
    import torch

    major, minor = torch.cuda.get_device_capability()
    arch = f"sm_{major}{minor}"
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, predicted for {arch}")
    print(f"{'model':20}{'grad':10}{'graphs':>7}{'kernels':>9}{'the same':>10}")
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, grad in SAMPLES:
            if names and name not in names:
                continue
            cpu = ROOT / "sample_models" / f"{name}.py"
            gpu = Path(folder) / f"{name}_gpu.py"
            gpu.write_text(ON_GPU + cpu.read_text(encoding="utf-8"), encoding="utf-8")
            trace = Path(folder) / "trace.tcw"
            predicted = kernels(
                record(cpu, (*grad, "--device", "cuda", "--arch", arch), trace, hidden=True)
            )
            real = kernels(record(gpu, grad, trace, hidden=False))
            graphs = sorted({*predicted, *real})
            total = same = 0
            notes: list[str] = []
            for graph in graphs:
                left, right = predicted.get(graph, []), real.get(graph, [])
                equal = sum(text in left for text in right)
                same += equal
                total += max(len(left), len(right))
                if equal < max(len(left), len(right)):
                    notes += _difference(graph, left, right)
            print(f"{name:20}{grad[0][2:]:10}{len(graphs):7}{total:9}{same:10}", flush=True)
            if notes and "--diff" in sys.argv:
                print("\n".join(notes))
            wrong += total - same
    return int(wrong > 0)


def _difference(graph: str, predicted: list[str], real: list[str]) -> list[str]:
    left = [text for text in predicted if text not in real]
    right = [text for text in real if text not in predicted]
    lines = [f"  {graph}: {len(left)} predicted and {len(right)} real kernels have no counterpart"]
    for one, other in zip(left, right, strict=False):
        diff = difflib.unified_diff(
            one.splitlines(), other.splitlines(), "predicted", "real", lineterm="", n=1
        )
        lines += [f"    {line}" for line in list(diff)[:40]]
    return lines


if __name__ == "__main__":
    raise SystemExit(main([word for word in sys.argv[1:] if not word.startswith("-")]))
