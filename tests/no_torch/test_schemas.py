"""The published JSON Schemas are those of the code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compiler.trace import schema
from tests.conftest import Golden
from viewers import json_check, json_diff, json_folder, json_report

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("explain", json_report.schema()),
        ("diff", json_diff.schema()),
        ("check", json_check.schema()),
        ("folder", json_folder.schema()),
        ("trace", schema.schema()),
    ],
)
def test_published(name: str, made: dict[str, Any], golden: Golden) -> None:
    golden(DOCS / "schema" / f"{name}.schema.json", json.dumps(made, indent=2) + "\n")


def test_the_documentation_names_every_key() -> None:
    text = (DOCS / "json.md").read_text(encoding="utf-8")
    for one in (
        json_report.schema(), json_diff.schema(), json_check.schema(), json_folder.schema()
    ):  # fmt: skip
        for definition in one["$defs"].values():
            for key in definition["properties"]:
                assert f"`{key}`" in text, key
