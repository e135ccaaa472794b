"""JSON Schemas of what tcw writes for other programs, as `docs/schema/` publishes them."""

from __future__ import annotations

from typing import Any

import msgspec

from tcw.compiler.trace.records import SCHEMA_VERSION, AnyRecord
from tcw.viewers import json_check, json_diff, json_folder, json_report


def schema_of(kind: Any, title: str) -> dict[str, Any]:
    """JSON Schema of a whole object."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **msgspec.json.schema(kind),
    }


TRACE = schema_of(AnyRecord, f"one line of a tcw trace, schema {SCHEMA_VERSION}")
"""What every line of a trace matches; a reader skips lines with an unknown tag."""
REPORT = schema_of(json_report.Report, f"tcw --json, version {json_report.VERSION}")
DIFF = schema_of(json_diff.DiffReport, f"tcw diff --json, version {json_diff.VERSION}")
CHECK = schema_of(json_check.CheckReport, f"tcw check --format json, version {json_check.VERSION}")
FOLDER = schema_of(
    json_folder.FolderReport, f"tcw explain FOLDER --json, version {json_folder.VERSION}"
)
