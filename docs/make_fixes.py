"""`docs/fixes.md` from the rows of the benchmark of advice.

python benchmarks/advice.py --json rows.jsonl
python docs/make_fixes.py rows.jsonl
"""

from __future__ import annotations

import datetime
import importlib.metadata
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.advice import joined, totals  # noqa: E402  (the checkout's, not installed)
from benchmarks.advice_cases import Case, cases  # noqa: E402

PAGE = ROOT / "docs" / "fixes.md"

HEAD = """# Graph breaks and recompiles, and what removes them

Small programs, each with one problem that people report about `torch.compile`; what `tcw explain`
proposes for it; and what the program comes to with it.
torch {torch}, {date}; written by `docs/make_fixes.py` from `benchmarks/advice.py`.

**✓** was tried by `tcw explain` before it was shown. The last column is measured without tcw: the
fix is pasted, all calls run again, torch's compiles are counted, and outputs, gradients and state
are compared with those of the eager program. What has no ✓ is an idea: it was not tried, or did not
help. Where nothing can be pasted, the last column says why.

{totals}
"""
KINDS = {
    "break": "Graph breaks",
    "eager": "Code that runs eagerly",
    "recompile": "Recompiles",
    "failure": "Compiles that fail",
}


def page(rows: Iterable[dict[str, Any]], torch: str, date: str) -> str:
    """The page: a table for each kind of problem."""
    known = {row["name"]: row for row in rows}
    all_cases = list(cases())
    said = "\n".join(f"- {line}" for line in totals(list(known.values())))
    parts = [HEAD.format(torch=torch, date=date, totals=said)]
    for kind, title in KINDS.items():
        mine = [case for case in all_cases if case.causes[0].kind == kind]
        lines = [_line(case, known[case.name]) for case in mine if case.name in known]
        if lines:
            head = ["| what | kind | fix | result |", "|---|---|---|---|"]
            parts.append("\n".join([f"## {title}\n", *head, *sorted(lines), ""]))
    return "\n".join(parts)


def _line(case: Case, row: dict[str, Any]) -> str:
    link = f"[{case.about.rstrip('.')}](../benchmarks/advice_programs/{case.file.name})"
    said = row["said"][0].rpartition(" (line")[0].partition(": ")[2] if row["said"] else ""
    kind = _escaped(case.gb or said or case.causes[0].kind)
    fix = next((one for one in row["fixes"] if one["ticked"]), None)
    if fix is not None:
        return f"| {link} | {kind} | ✓ {_fix(fix)} | {row['before']} → {fix['after']} |"
    idea = next((one for one in row["fixes"] if one["text"]), None)
    words = f"idea: {_escaped(idea['text'])}" if idea is not None else "none"
    why = case.without_fix or "one exists, which was not found"
    return f"| {link} | {kind} | {words} | {_escaped(why)} |"


def _fix(fix: dict[str, Any]) -> str:
    """The lines to paste, else the words."""
    options = [f"torch.compile(…, {name}={value})" for name, value in fix["compile"].items()]
    lines = [*fix["settings"], *options, *fix["before_calls"]]
    lines += [
        line[1:].strip()
        for line in fix["patch"].splitlines()
        if line.startswith("+") and not line.startswith("+++") and line[1:].strip()
    ]
    if not lines:
        return _escaped(fix["text"])
    return "<br>".join(f"`{line}`".replace("|", "\\|") for line in lines)


def _escaped(text: str) -> str:
    escapes = {"|": "\\|", "<": "&lt;", "*": "\\*", "_": "\\_", "`": "", "[": "\\["}
    return text.translate(str.maketrans(escapes))


def main(files: Sequence[str]) -> None:
    torch = importlib.metadata.version("torch").partition("+")[0]
    date = datetime.date.today().isoformat()
    PAGE.write_text(page(joined([Path(file) for file in files]), torch, date), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
