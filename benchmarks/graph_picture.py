"""The speed of a large graph's picture: first drawing, panning, selecting, zooming.

    python benchmarks/graph_picture.py [nodes] [keys]

Runs `tcw open` on a trace with one graph, in a pseudo-terminal of 120 by 40, and times from a key
to the last byte of the resulting frame. There are two rows each: the graph folded by module, as it
opens, and with every node drawn (`A`). The first picture is timed from the command that shows it.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.terminal import QUIET, Terminal  # noqa: E402
from benchmarks.traces import FILE, Large, large_graph, opening  # noqa: E402
from tcw.compiler.trace.records import CallEnd, CallStart, End, FrameEnd, FrameStart, Location  # noqa: E402

PANS = [b"\x1b[B", b"\x1b[B", b"\x1b[C", b"\x1b[A", b"\x1b[D"]
SELECTS = [b"j", b"j", b"l", b"j", b"k", b"h"]
ZOOMS = [b"+", b"-"]


def write(path: Path, nodes: int) -> None:
    """Write a recording of one graph."""
    out = Large()
    opening(out)
    out.add(CallStart(call=1))
    place = Location(file=FILE, line=15)
    out.add(FrameStart(compile_id="0/0", attempt=0, function="forward", call=1, location=place))
    out.add(large_graph(nodes))
    out.add(FrameEnd(compile_id="0/0", status="compiled", seconds=1.0, ops=nodes))
    out.add(CallEnd(call=1, seconds=out.clock, compiled=("0/0",)))
    out.add(End(status="ok", seconds=out.clock, exit_code=0))
    with path.open("wb") as stream:
        for record in out.records:
            stream.write(msgspec.json.encode(record) + b"\n")


def row(name: str, seconds: list[float]) -> str:
    """Times of the keys that changed the screen."""
    painted = sorted(second * 1e3 for second in seconds if second)
    if not painted:
        return f"{name:<34} no key changed the screen"
    late = painted[min(len(painted) - 1, int(0.95 * len(painted)))]
    middle = statistics.median(painted)
    return f"{name:<34}{middle:8.1f}{late:8.1f}{painted[-1]:8.1f}{len(painted):7}"


def main() -> None:
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    keys = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.tcw"
        write(path, nodes)
        terminal = Terminal(path)
        terminal.wait(b"help")
        terminal.settle(0.5)
        for key in b":picture":
            os.write(terminal.parent, bytes([key]))
            terminal.settle()
        os.write(terminal.parent, b"\r")
        print(f"{nodes:,} nodes: first picture {terminal.wait(b'zoom 1 of 3'):.2f} s")
        terminal.settle(0.5)
        print(
            f"{'milliseconds from key to frame':<34}{'p50':>8}{'p95':>8}{'worst':>8}{'frames':>7}"
        )
        for what in ("folded", "all drawn"):
            if what != "folded":
                start = time.monotonic()
                os.write(terminal.parent, b"A")
                terminal.settle(3.0)
                print(f"{'A: all nodes laid out':<34}{(time.monotonic() - start - 3) * 1e3:8.1f}")
            for name, cycle, count in (
                ("pan", PANS, keys), ("select", SELECTS, keys), ("zoom", ZOOMS, 4)
            ):  # fmt: skip
                quiet = QUIET if name != "zoom" or what == "folded" else 2.0
                times = []
                for index in range(count):
                    os.write(terminal.parent, cycle[index % len(cycle)])
                    times.append(terminal.settle(quiet))
                print(row(f"{what}, {name}", times))
        terminal.close()


if __name__ == "__main__":
    main()
