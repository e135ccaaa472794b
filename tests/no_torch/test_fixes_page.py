"""`docs/fixes.md` is about programs of the benchmark of advice, and shows what is pasted."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from benchmarks.advice_cases import cases

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs/fixes.md").read_text(encoding="utf-8")
make = runpy.run_path(str(ROOT / "docs/make_fixes.py"))


def test_the_page_has_programs_of_the_benchmark_once_each() -> None:
    named = re.findall(r"\]\(\.\./benchmarks/advice_programs/(\w+)\.py\)", PAGE)
    assert len(named) == len(set(named)) >= 80
    assert set(named) <= {case.name for case in cases()}


def test_every_tick_on_the_page_came_to_something_else() -> None:
    ticks = [line for line in PAGE.splitlines() if "| ✓ " in line]
    assert ticks
    for line in ticks:
        before, arrow, after = line.removesuffix(" |").rpartition("| ")[2].partition(" → ")
        assert arrow, line
        assert before != after, line


def row(**fix: Any) -> dict[str, Any]:
    shown = {
        "text": "Do it", "code": "", "patch": "", "settings": [], "compile": {},
        "before_calls": [], "after": "1 graph", "wrong": "", "ticked": True, "safety": "",
    }  # fmt: skip
    return {
        "name": "branch_on_value", "cause": True, "fixable": True, "before": "3 graphs",
        "fixes": [{**shown, **fix}] if fix else [], "failed": "", "said": ["a branch (line 3)"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fix", "words"),
    [
        ({"settings": ["a = True"], "compile": {"dynamic": True}},
         "✓ `a = True`<br>`torch.compile(…, dynamic=True)` | 3 graphs → 1 graph |"),
        ({"patch": "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+    x | y\n"}, "✓ `x \\| y` |"),
        ({"patch": "--- a\n+++ a\n@@ -1 +0,0 @@\n-x\n"}, "✓ Do it |"),
        ({"ticked": False}, "idea: Do it | one exists"),
        ({}, "none | one exists"),
    ],
)  # fmt: skip
def test_a_fix_is_shown_as_what_is_pasted(fix: dict[str, Any], words: str) -> None:
    assert words in make["page"]([row(**fix)], "2.13.0", "today")
