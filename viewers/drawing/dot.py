"""A diagram in Graphviz's language, and as laid out by Graphviz if its `dot` is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from typing import Literal

from tcw.viewers.drawing.diagram import Diagram
from tcw.viewers.kit.colours import LIGHT, fill_of
from tcw.viewers.plain import plain

MOST = 400
"""Maximum number of blocks for which `dot` is used: it takes half a minute for 5,000."""
SECONDS = 20


def dot(drawn: Diagram, words: Sequence[Sequence[str]]) -> str:
    """The diagram as a digraph; `words` are the lines of each block, plain."""
    ground, edge, ink = (LIGHT[name] for name in ("background", "dim", "text"))
    lines = [
        f"digraph {quoted(plain(drawn.graph.id))} {{",
        f"  graph [bgcolor={quoted(ground)}, ranksep=0.35, nodesep=0.3];",
        f"  edge [color={quoted(edge)}, arrowsize=0.6];",
        '  node [shape=box, style="filled,rounded", color="#00000000", '
        f'fontname="monospace", fontsize=11, fontcolor={quoted(ink)}];',
    ]
    for number, block in enumerate(drawn.blocks):
        label = "".join(f"{escaped(line.strip())}\\l" for line in words[number])
        fill = LIGHT[fill_of(block.hue)]
        lines.append(f'  b{number} [label="{label}", fillcolor={quoted(fill)}];')
    lines += [f"  b{first} -> b{second};" for first, second in drawn.edges]
    return "\n".join([*lines, "}"]) + "\n"


def escaped(words: str) -> str:
    """Inside quotes: a backslash begins `\\N`, `\\l` and the like, a quote ends the string."""
    return words.replace("\\", "\\\\").replace('"', '\\"')


def quoted(words: str) -> str:
    return f'"{escaped(words)}"'


def laid_out(source: str, form: Literal["svg", "png"]) -> bytes | None:
    """The output of `dot`; None if there is no `dot`, or it fails or takes too long."""
    program = shutil.which("dot")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, f"-T{form}"],
            input=source.encode(),
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 and done.stdout else None
