"""The machine's ceilings, as `tcw profile` measures them: copy bandwidth, matrix product rates.

python benchmarks/ceilings.py [cpu|cuda] [--threads N]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from tcw.compiler.measure.work.ceilings import measured  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", nargs="?", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    start = time.perf_counter()
    found = measured(arguments.kind)
    seconds = time.perf_counter() - start
    if found is None:
        print("the machine is busy")
        return
    threads = f", {found.threads} threads" if found.kind == "cpu" else ""
    print(f"{found.device}{threads}, torch {torch.__version__}; measured in {seconds:.1f} s")
    print(f"\n{'working set':>14} {'GB/s':>9}")
    for one in found.bandwidth:
        print(f"{one.bytes / 1024:>11,.0f} KB {one.per_second / 1e9:>9.1f}")
    print(f"\n{'product':>14} {'GFLOP/s':>9}")
    for dtype, rate in found.rates.items():
        print(f"{dtype:>14} {rate / 1e9:>9,.0f}")
    if found.note:
        print(found.note)


if __name__ == "__main__":
    main()
