"""The published JSON Schemas are those of the code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Golden
from tests.no_torch import schemas

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("explain", schemas.REPORT),
        ("diff", schemas.DIFF),
        ("check", schemas.CHECK),
        ("folder", schemas.FOLDER),
        ("trace", schemas.TRACE),
    ],
)
def test_published(name: str, made: dict[str, Any], golden: Golden) -> None:
    golden(DOCS / "schema" / f"{name}.schema.json", json.dumps(made, indent=2) + "\n")


def test_the_documentation_names_every_key() -> None:
    text = (DOCS / "json.md").read_text(encoding="utf-8")
    for one in (
        schemas.REPORT, schemas.DIFF, schemas.CHECK, schemas.FOLDER
    ):  # fmt: skip
        for definition in one["$defs"].values():
            for key in definition["properties"]:
                assert f"`{key}`" in text, key
