"""JSON Schema of a trace: of each of its lines."""

from __future__ import annotations

from typing import Any

import msgspec

from compiler.trace.records import SCHEMA_VERSION, AnyRecord


def schema() -> dict[str, Any]:
    """The schema that every line of a trace fits; a reader skips lines with a tag that is not
    in it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"one line of a tcw trace, schema {SCHEMA_VERSION}",
        **msgspec.json.schema(AnyRecord),
    }
