"""JSON Schema of the lines of a trace."""

from __future__ import annotations

from typing import Any

import msgspec

from compiler.trace.records import SCHEMA_VERSION, AnyRecord


def schema() -> dict[str, Any]:
    """The schema that every line of a trace matches; a reader skips lines with an unknown tag."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"one line of a tcw trace, schema {SCHEMA_VERSION}",
        **msgspec.json.schema(AnyRecord),
    }
