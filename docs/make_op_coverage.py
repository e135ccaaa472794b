"""`docs/op-coverage.md` from two reports of the op database's sweep.

python -m tests.cpu.engine.op_database --report forward.tsv
python -m tests.cpu.engine.op_database --gradients --report backward.tsv
python docs/make_op_coverage.py forward.tsv backward.tsv
"""

from __future__ import annotations

import datetime
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.cpu.engine.op_cases import Case, operations  # noqa: E402  (the checkout's, not installed)

PAGE = ROOT / "docs" / "op-coverage.md"

VERDICTS = ("equal", "closer", "wrong", "error", "crash", "skipped")

DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", "bool")

UNKNOWN = "?"
"""The fallbacks of a row that `--together` made."""

HEAD = """# Op coverage

The operations of torch's own op database (`torch.testing._internal.common_methods_invocations`),
the first sample of each in every dtype that it supports on a CPU, with `backend="tcw"` and in
eager.
torch {torch}, {date}; written by `docs/make_op_coverage.py`, which says how to run it.

- **equal**: the same as eager within the defaults of `torch.testing.assert_close`, including the
  inputs and mutated inputs.
- **closer**: floats that differ more from eager, but are no further from float64 than eager's or
  Inductor's.
- **wrong**, **error**, **crash**: bugs of ours.
- **skipped**: eager refuses the sample, or AOTAutograd cannot trace it, so no engine runs it.
- **with ATen**: the number of samples run in which at least one operation has no lowering of ours
  and stayed an ATen call. Operations that are calls by design (products, convolutions, attention,
  sorts, FFTs, random numbers) do not count. "–" if several operations ran in one graph.
"""


class Row(NamedTuple):
    name: str
    dtype: str
    sample: str
    verdict: str
    fallbacks: str
    detail: str


def rows_of(file: Path) -> list[Row]:
    return [Row(*line.split("\t")) for line in file.read_text().split("\n") if line]


def table(rows: Sequence[Row], gradients: bool) -> list[str]:
    lines = ["| dtype | " + " | ".join((*VERDICTS, "not run", "with ATen")) + " |"]
    lines.append("|---" * (len(VERDICTS) + 3) + "|")
    for dtype in DTYPES:
        chosen = [row for row in rows if row.dtype == dtype]
        there = sum(Case(op, dtype, gradients).exists() for op in operations())
        if not there:
            continue
        counts = Counter(row.verdict for row in chosen)
        numbers = [str(counts[verdict]) for verdict in VERDICTS]
        numbers.append(str(there - len(chosen)))
        unknown = not chosen or any(row.fallbacks == UNKNOWN for row in chosen)
        numbers.append("–" if unknown else str(sum(bool(row.fallbacks) for row in chosen)))
        lines.append(f"| {dtype} | " + " | ".join(numbers) + " |")
    return lines


def grouped(pairs: Iterable[tuple[str, Row]]) -> list[str]:
    """`reason | operations` for each reason."""
    found: dict[str, set[str]] = {}
    for reason, row in pairs:
        found.setdefault(reason, set()).add(row.name)
    return [
        f"| {_cell(reason)} | {', '.join(f'`{name}`' for name in sorted(names))} |"
        for reason, names in sorted(found.items())
    ]


def fallbacks(rows: Sequence[Row]) -> list[str]:
    parts = [(reason, row) for row in rows for reason in row.fallbacks.split("; ") if reason]
    parts = [(reason, row) for reason, row in parts if reason != UNKNOWN]
    prefix = "no lowering for "
    plain, obstacles = [], []
    for reason, row in parts:
        operation, _, obstacle = reason.removeprefix(prefix).partition(": ")
        if reason.startswith(prefix) and not obstacle:
            plain.append((f"`{operation}`", row))
        elif reason.startswith(prefix):
            obstacles.append((f"{obstacle} (`{operation}`)", row))
        else:
            obstacles.append((reason, row))
    lines = ["| ATen operation without a lowering | reached by |", "|---|---|", *grouped(plain)]
    lines += ["", "| lowering that declines, and why | reached by |", "|---|---|"]
    return lines + grouped(obstacles)


def skipped(rows: Sequence[Row]) -> list[str]:
    chosen = [(_why(row.detail), row) for row in rows if row.verdict == "skipped"]
    return ["| why | operations |", "|---|---|", *grouped(chosen)]


def bad(rows: Sequence[Row]) -> list[str]:
    chosen = [row for row in rows if row.verdict in ("wrong", "error", "crash")]
    if not chosen:
        return ["None."]
    lines = ["| operation | dtype | verdict | what |", "|---|---|---|---|"]
    return lines + [
        f"| `{row.name}` | {row.dtype} | {row.verdict} | {_cell(row.detail[:200])} |"
        for row in chosen
    ]


def _why(detail: str) -> str:
    for prefix, words in (
        ("eager: ", "eager refuses: "),
        ("no samples: ", "the database has no sample: "),
        ("", "AOTAutograd cannot trace it: "),
    ):
        if detail.startswith(prefix):
            return words + detail.removeprefix(prefix).partition(" ")[0].rstrip(":")
    return detail


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def page(forward: Sequence[Row], backward: Sequence[Row]) -> str:
    both = [*forward, *backward]
    head = HEAD.format(torch=torch.__version__, date=datetime.date.today().isoformat())
    sections = [
        head.rstrip(),
        "\n".join(["## Forward", "", *table(forward, False)]),
        "\n".join(["## Forward and backward", "", *table(backward, True)]),
        "\n".join(["## Bugs", "", *bad(both)]),
        "\n".join(["## Left to ATen", "", *fallbacks(both)]),
        "\n".join(["## Skipped", "", *skipped(both)]),
    ]
    return "\n\n".join(sections) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(*(rows_of(Path(file)) for file in sys.argv[1:3])))
