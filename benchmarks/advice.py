"""Whether advice works when it is pasted: `tcw explain` on programs with known problems.

    python benchmarks/advice.py                            all programs, a few seconds each
    python benchmarks/advice.py -k branch --json rows.jsonl
    python benchmarks/advice.py --check                    the programs themselves, without tcw
    python benchmarks/advice.py --join rows.jsonl          the table of earlier runs

Each program of `advice_programs/` names its cause and, where there is one, a fix that works
(`advice_cases.py`). `tcw explain PROGRAM --json` runs in its own process. What it shows is pasted:
the patch into a copy of the file, settings before the compile, options of `torch.compile`, lines
before each call. Then all calls run compiled, with and without it, and eagerly as they were
(`advice_runs.py`): graphs, breaks and compiles are counted by a backend, outputs, gradients and
state compared with `torch.testing.assert_close`. Nothing of tcw judges.

A fix works if a count falls, none rises, no less runs in graphs, and the results are those of the
eager program. What carries ✓, which an idea does not, has to work: else the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.advice_cases import Case, Fix, cases  # noqa: E402  (the checkout's)

Row = dict[str, Any]
SAME_KIND = {"fallback": "break", "eager": "break"}
"""A break in a loop is one place, whether it is told as the break or as what runs eagerly."""


def explained(case: Case, seconds: float, options: list[str]) -> Row:
    """What `tcw explain --json` says, or why it says nothing."""
    command = [sys.executable, "-m", "tcw", "explain", str(case.file), "--json", "--quiet"]
    try:
        done = subprocess.run(
            [*command, *options, *(["--train"] if case.train else [])],
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        return dict(json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {seconds:.0f} s"}
    except ValueError:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
        return {"failed": f"exit {done.returncode}: {said[-1][:200]}"}


def findings_of(report: Row) -> list[Row]:
    """The findings of a report."""
    return list(report.get("findings") or ())


def right_cause(case: Case, findings: list[Row]) -> bool:
    """Whether the first finding is at the line of a cause, and of its kind; what makes a compile
    fail has no kind of its own."""
    first = findings[0] if findings else {"file": "", "line": None, "kind": ""}
    return any(
        Path(first["file"]).name == case.file.name
        and first["line"] == cause.line
        and (cause.kind == "failure" or _kind(first["kind"]) == _kind(cause.kind))
        for cause in case.causes
    )


def _kind(kind: str) -> str:
    return SAME_KIND.get(kind, kind)


def fix_of(shown: Row) -> Fix:
    """What is to be pasted of a finding's `fix`."""
    return Fix(
        patch=shown["patch"],
        settings=tuple(shown["settings"]),
        compile=shown["compile"],
        before_calls=tuple(shown["before_calls"]),
    )


def ticked(shown: Row) -> bool:
    """Whether the fix carries ✓: it was tried, and helps with the same results."""
    return bool(shown["tried"]) and shown["safety"] != "idea"


def row_of(case: Case, report: Row) -> Row:
    """One line of the table."""
    from benchmarks.advice_runs import Run, run

    findings = findings_of(report)
    row: Row = {
        "name": case.name,
        "about": case.about,
        "gb": case.gb,
        "kind": case.causes[0].kind,
        "line": case.causes[0].line,
        "fixable": bool(case.fixes),
        "failed": report.get("failed", ""),
        "cause": right_cause(case, findings),
        "said": [f"{finding['title']} (line {finding['line']})" for finding in findings],
        "fixes": [],
    }
    shown = [finding["fix"] for finding in findings if finding.get("fix")]
    if shown:
        eager = run(case.file, train=case.train)
        before = run(case.file, Fix(), train=case.train, eager=eager)
        row["before"] = before.counts
        for one in shown:
            if pasteable(one):
                after, why = tried(case, fix_of(one), eager, before, one["safety"])
            else:
                after, why = Run(), "nothing to paste"
            row["fixes"].append(
                {
                    **one,
                    "ticked": ticked(one),
                    "after": after.counts,
                    "wrong": why,
                }
            )
    return row


def pasteable(shown: Row) -> bool:
    """Whether the fix has anything to paste."""
    return fix_of(shown) != Fix()


def tried(case: Case, fix: Fix, eager: Any, before: Any, safety: str) -> tuple[Any, str]:
    """The run with a fix pasted, and what is wrong with it, "" if it works."""
    from benchmarks.advice_runs import Run, pasted, run

    with tempfile.TemporaryDirectory(prefix="advice-") as folder:
        try:
            file = pasted(case.file, fix, Path(folder))
        except ValueError as error:
            return Run(error=str(error)), str(error)
        after = run(file, fix, train=case.train, eager=eager)
    return after, wrong(before, after, eager, safety)


def wrong(before: Any, after: Any, eager: Any, safety: str = "") -> str:
    """Why a fix does not work; "" if it does."""
    if after.error:
        return f"raises: {after.error}"
    if after.differs and not before.differs:
        return f"changes results: {after.differs}"
    if safety == "same results" and after.printed != eager.printed:
        return "changes what is printed"
    if safety == "same results" and after.retyped and not before.retyped:
        return f"puts tensors for numbers into {after.retyped}"
    if before.error:
        return ""
    names = ("breaks", "eager", "compiles", "graphs")
    pairs = {name: (getattr(before, name), getattr(after, name)) for name in names}
    if pairs["breaks"][1] > pairs["breaks"][0] or pairs["eager"][1] > pairs["eager"][0]:
        return f"makes it worse: {before.counts} → {after.counts}"
    if after.ran * 2 < before.ran:
        return f"less runs in graphs: {before.ran} → {after.ran} operations"
    if not any(new < old for old, new in pairs.values()):
        return f"changes nothing: {before.counts} → {after.counts}"
    if pairs["compiles"][1] > pairs["compiles"][0] and not before.eager:
        return f"more compiles: {before.counts} → {after.counts}"
    return ""


def checked(case: Case) -> str:
    """What is wrong with a program of the benchmark itself; "" if its fix works."""
    from benchmarks.advice_runs import run

    eager = run(case.file, train=case.train)
    before = run(case.file, Fix(), train=case.train, eager=eager)
    if eager.error:
        return f"eager raises: {eager.error}"
    typed = [one for one in before.reasons if not one.startswith(("generic_jump", "step_un"))]
    if case.gb and typed and not any(case.gb in reason for reason in typed):
        return f"breaks otherwise: {typed[0].splitlines()[0]}"
    if not (before.error or before.breaks or before.eager or before.compiles > 1):
        return f"nothing is wrong with it: {before.counts}"
    if case.fixes:
        return tried(case, case.reference(), eager, before, "")[1]
    return ""


def table(rows: list[Row]) -> str:
    """Rows as a Markdown table, with totals."""
    lines = ["| program | cause | fix shown | works when pasted |", "|---|---|---|---|"]
    for row in rows:
        fixes = [fix for fix in row["fixes"] if not fix["wrong"] or fix["ticked"]] or row["fixes"]
        first = next((fix for fix in fixes if fix["ticked"]), fixes[0] if fixes else None)
        cells = [row["name"], row["failed"] or ("right" if row["cause"] else "**wrong**")]
        if first is None:
            cells += ["none" + (" (one exists)" if row["fixable"] else ""), ""]
        else:
            text = (first["code"] or first["text"]).splitlines()[0][:60].replace("|", "\\|")
            tick = "✓ " if first["ticked"] else ""
            cells.append(f"{tick}`{text}`" if first["code"] else tick + text)
            works = f"{row['before']} → {first['after']}"
            cells.append(works if not first["wrong"] else f"**{first['wrong'][:120]}**")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *totals(rows)])


def totals(rows: list[Row]) -> list[str]:
    """Causes right, fixes shown, and ticks that hold."""
    fixable = [row for row in rows if row["fixable"]]
    shown = [row for row in fixable if any(fix["ticked"] for fix in row["fixes"])]
    ticks = [fix for row in rows for fix in row["fixes"] if fix["ticked"]]
    hold = [fix for fix in ticks if not fix["wrong"]]
    beyond = [row for row in rows if row not in fixable and _works(row)]
    return [
        f"causes right: {sum(row['cause'] for row in rows)} of {len(rows)}",
        f"programs with a ✓ of those for which a fix exists: {len(shown)} of {len(fixable)}",
        f"✓ that work when pasted: {len(hold)} of {len(ticks)}",
        f"fixes that work where none was known: {len(beyond)}",
    ]


def _works(row: Row) -> bool:
    return any(not fix["wrong"] for fix in row["fixes"])


def joined(files: Iterable[Path]) -> list[Row]:
    """The rows of several runs: for each program, the latest."""
    rows = (json.loads(line) for file in files for line in file.read_text().splitlines())
    return sorted({row["name"]: row for row in rows}.values(), key=lambda row: str(row["name"]))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "-k", dest="name", default="", help="programs whose name contains this, or this,that"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="append a line of JSON a row")
    parser.add_argument("--jobs", type=int, default=1, help="recordings at the same time")
    parser.add_argument("--seconds", type=float, default=180.0, help="for one recording")
    parser.add_argument("--options", default="", help="for tcw explain: '--until capture'")
    parser.add_argument("--check", action="store_true", help="check the programs, without tcw")
    parser.add_argument("--join", type=Path, nargs="+", metavar="FILE", help="measure nothing")
    arguments = parser.parse_args()
    if arguments.join:
        print(table(joined(arguments.join)))
        return 0
    chosen = list(cases(arguments.name))
    if arguments.check:
        wrongs = [f"{case.name}: {said}" for case in chosen if (said := checked(case))]
        print("\n".join([*wrongs, f"{len(chosen) - len(wrongs)} of {len(chosen)} are in order"]))
        return int(bool(wrongs))
    rows: list[Row] = []
    options = shlex.split(arguments.options)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        asked = {pool.submit(explained, case, arguments.seconds, options): case for case in chosen}
        for report in as_completed(asked):
            row = row_of(asked[report], report.result())
            rows.append(row)
            print(f"{row['name']}: {_line(row)}", file=sys.stderr, flush=True)
            if arguments.json:
                with arguments.json.open("a") as stream:
                    stream.write(json.dumps(row) + "\n")
    print(table(sorted(rows, key=lambda row: str(row["name"]))))
    return int(any(fix["ticked"] and fix["wrong"] for row in rows for fix in row["fixes"]))


def _line(row: Row) -> str:
    cause = row["failed"] or ("cause right" if row["cause"] else f"cause wrong ({row['said'][:1]})")
    fixes = [f"{'✓ ' if fix['ticked'] else ''}{fix['wrong'] or 'works'}" for fix in row["fixes"]]
    return "; ".join([cause, *fixes])


if __name__ == "__main__":
    sys.exit(main())
