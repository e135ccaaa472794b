"""Whether the accounts of `tcw profile` close: separately measured lines against the measured call.

    python benchmarks/profile_account.py [--engine both] [--only NAME] [--rounds 30] [--threads N]
                                         [--train]

One row per side of each model: the plain call, the time of each line, and the remainder with its
noise. Target: a remainder within 5% of the call. On a busy machine, one thread (`--threads 1`) is
more informative: threads wait for one another, so a disturbance of one disturbs all.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "sample_models"
MODELS = ROOT / "benchmarks" / "models.py"
CASES: dict[str, tuple[Path, str, tuple[str, ...]]] = {
    "gpt, 4 layers": (SAMPLES / "gpt.py", "", ()),
    "llama block": (SAMPLES / "llama_block.py", "", ()),
    "llama block, 512 wide": (MODELS, "LlamaBlock().eval()", ("f32[4,128,512]",)),
    "resnet block": (SAMPLES / "resnet_block.py", "", ()),
    "resnet-18": (MODELS, "ResNet18().eval()", ("f32[4,3,224,224]",)),
    "softmax + norm": (SAMPLES / "softmax_layernorm.py", "", ()),
}
TARGET = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=("inductor", "tcw", "both"), default="both")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--train", action="store_true")
    arguments = parser.parse_args()
    if arguments.threads:
        os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    sys.path.insert(0, str(ROOT))
    from tcw.compiler.trace.records import Settings
    from tcw.workbench.worker.client import record

    print(f"{'model':22} {'engine':9} {'side':9} {'call µs':>11}  remainder  ± noise   lines")
    worst: dict[str, float] = {}
    for name, (file, model, inputs) in CASES.items():
        if arguments.only not in name:
            continue
        settings = Settings(
            file=str(file),
            model=model,
            inputs=inputs,
            engine=arguments.engine,
            grad="train" if arguments.train else "no-grad",
            profile=True,
            rounds=arguments.rounds,
        )
        show(name, settings, record, worst)
    for side, most in worst.items():
        print(
            f"{side}: largest remainder {most:.1%}{'' if most <= TARGET else '  above the target'}"
        )


def show(name: str, settings: Any, record: Callable[..., Any], worst: dict[str, float]) -> None:
    """Print the rows of one model."""
    from tcw.compiler.trace.records import Account, EnginePart, Failure, Warned

    engine = settings.engine

    def see(one: object) -> None:
        nonlocal engine
        if isinstance(one, EnginePart):
            engine = one.engine
        elif isinstance(one, Failure | Warned):
            print(f"{name:22} {one.message}")
        elif isinstance(one, Account):
            share = one.remainder / one.measured.median
            if not one.phase:
                key = f"{one.side} {engine}"
                worst[key] = max(worst.get(key, 0.0), abs(share))
            noise = one.remainder_noise / one.measured.median
            lines = ", ".join(f"{line.name} {line.time.median * 1e6:,.0f}" for line in one.lines)
            print(
                f"{name:22} {engine:9} {one.side:9} {one.measured.median * 1e6:11,.1f} "
                f"{share:9.1%} ±{noise:5.1%}   {one.phase} {lines}",
                flush=True,
            )

    record(settings, trace=None, on_record=see)


if __name__ == "__main__":
    main()
