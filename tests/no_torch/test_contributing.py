"""The five common changes of CONTRIBUTING, the files that they name and the registries in them; the
lists of benchmarks and news."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tcw.compiler.fusion.rules import RULES
from tcw.compiler.trace.records import KINDS
from tcw.compiler.trace.redaction.fields import FIELDS
from tcw.viewers.panes.arrangement import ARRANGEMENTS, PANES
from tcw.workbench.cli.main import VERBS
from tcw.workbench.tui.hints import GOES, HINTS, SENTENCES

ROOT = Path(__file__).parents[2]
CHANGES = {
    "Advice for a graph break": (
        "compiler/capture/advice/FAMILY.py",
        "compiler/capture/advice/table.py",
    ),
    "A record": ("compiler/trace/records/STAGE.py", "compiler/trace/redaction/fields.py"),
    "A verb": ("workbench/cli/VERB.py", "workbench/cli/main.py"),
    "A fusion rule": ("compiler/fusion/rules/KIND.py", "compiler/fusion/rules/__init__.py"),
    "A pane": ("viewers/panes/NAME.py", "viewers/panes/arrangement.py"),
}  # fmt: skip
"""Change -> the file that is written for it, and the file that registers it."""


def section(title: str) -> list[str]:
    """The numbered items of a change."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    body = re.split(r"^##", text.partition(f"\n### {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[
        0
    ]
    return re.findall(r"^\d+\. (.*(?:\n   .*)*)", body, flags=re.MULTILINE)


def trees(pattern: str) -> Iterator[tuple[Path, ast.Module]]:
    for file in sorted(ROOT.glob(pattern)):
        yield file, ast.parse(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_touches_at_most_five_files_and_each_is_there(change: str) -> None:
    items = section(change)
    named = [re.findall(r"`([\w/.]+/[\w.]+\.\w+)`", item.partition(": ")[0]) for item in items]
    assert 0 < len(items) <= 5
    assert all(len(files) == 1 for files in named), named
    files = [files[0] for files in named]
    assert set(CHANGES[change]) <= set(files)
    for file in files:
        found = re.sub(r"\b(STAGE|FAMILY|VERB|KIND|NAME)\b|(?<=_)(VERB|NAME)(?=\.)", "*", file)
        assert any(ROOT.glob(found)), file


def test_names_in_the_lists_are_names_in_the_files_that_they_are_said_to_be_in() -> None:
    """`HOOKS`, `KINDS`, `_DRAWN` …"""
    for change in CHANGES:
        for item in section(change):
            head, _, words = item.partition(": ")
            (file,) = re.findall(r"`([\w/.]+/[\w.]+\.\w+)`", head)
            pattern = re.sub(r"\b[A-Z]{3,}\b", "*", file)
            texts = [path.read_text(encoding="utf-8") for path in ROOT.glob(pattern)]
            for name in re.findall(r"`(_?[A-Z][A-Z_]{3,})`", words):
                in_base = name == "SCHEMA_VERSION"
                assert in_base or any(re.search(rf"\b{name}\b", text) for text in texts), name


def test_every_family_of_advice_is_in_the_table() -> None:
    families = {
        file.stem
        for file, tree in trees("compiler/capture/advice/*.py")
        if file.stem != "table"
        and any(isinstance(node, ast.FunctionDef) and node.name == "advise" for node in tree.body)
    }
    table = (ROOT / "compiler/capture/advice/table.py").read_text(encoding="utf-8")
    assert families == set(re.findall(r"(\w+)\.advise\b", table))


def test_every_struct_that_is_a_record_is_known_and_can_be_redacted() -> None:
    defined = {
        node.name
        for _, tree in trees("compiler/trace/records/*.py")
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        and any(isinstance(base, ast.Name) and base.id == "Record" for base in node.bases)
    }
    assert {kind.__name__ for kind in KINDS} == defined
    with_text = {"Start", "Graph", "Recompile", "Kernel", "Decided"}
    assert with_text <= FIELDS.keys()


def test_every_command_is_a_verb() -> None:
    commands = {
        file.stem.removesuffix("_")
        for file, tree in trees("workbench/cli/*.py")
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == "command"
    }
    assert commands == set(VERBS)
    for verb in VERBS:
        assert f"tcw {verb}" in (ROOT / "docs/cli.md").read_text(encoding="utf-8")


def test_every_refusal_has_a_rule() -> None:
    used = {
        node.args[0].value
        for pattern in ("compiler/fusion/rules/*.py", "compiler/fusion/*.py")
        for _, tree in trees(pattern)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Refusal"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }
    assert used <= RULES.keys(), used - RULES.keys()


def test_every_pane_of_an_arrangement_is_drawn_and_explained() -> None:
    placed = {
        slot.pane
        for arrangement in ARRANGEMENTS.values()
        for column in (*arrangement.columns, *arrangement.wide)
        for slot in column.slots
    }
    assert placed <= PANES.keys()
    assert placed <= SENTENCES.keys()
    assert ARRANGEMENTS.keys() <= HINTS.keys() | {name for name, _ in GOES}


def test_every_benchmark_is_listed() -> None:
    listed = re.findall(
        r"^\| `(\w+\.py)`", (ROOT / "benchmarks/README.md").read_text(), re.MULTILINE
    )
    commands = [
        file.name
        for file, tree in trees("benchmarks/*.py")
        if any(isinstance(node, ast.If) and "__main__" in ast.dump(node.test) for node in tree.body)
    ]
    assert sorted(listed) == commands


def test_every_fragment_of_news_has_a_kind() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    kinds = {kind["directory"] for kind in project["tool"]["towncrier"]["type"]}
    readme = (ROOT / "news/README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", readme, re.MULTILINE)) == kinds
    for file in ROOT.glob("news/*"):
        assert file.name == "README.md" or re.fullmatch(
            rf"(\d+|\+[\w-]+)\.({'|'.join(kinds)})(\.\d+)?\.md", file.name
        ), file
