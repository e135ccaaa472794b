"""The worker imports all of ours before the user's file loads: later the names are theirs.

A hook may import as it is installed; what runs inside a compile may not.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("compiler", "viewers", "workbench", "sample_models")
BEFORE_STEPPING_ASIDE = {
    ("workbench/worker/process.py", "workbench.worker.recording"),
    ("workbench/worker/recording.py", "workbench.worker"),
    ("workbench/worker/recording.py", "workbench.worker.driven"),
    ("workbench/worker/backends.py", "compiler.engine"),
}
"""These run before the user's file loads."""


@pytest.mark.parametrize(
    "file",
    sorted([*(ROOT / "compiler").rglob("*.py"), *(ROOT / "workbench" / "worker").rglob("*.py")]),
    ids=lambda file: str(file.relative_to(ROOT)),
)
def test_no_late_import_of_ours(file: Path) -> None:
    tree = ast.parse(file.read_text())
    late = []
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name not in ("install", "_install"):
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom):
                    late.append(node.module or "." * node.level)
                elif isinstance(node, ast.Import):
                    late += [name.name for name in node.names]
    place = str(file.relative_to(ROOT))
    ours = [name for name in late if name.startswith(".") or name.partition(".")[0] in PACKAGES]
    assert [name for name in ours if (place, name) not in BEFORE_STEPPING_ASIDE] == []
