"""A profiled call as a trace for Perfetto or chrome://tracing."""

from __future__ import annotations

from typing import Any

from viewers.recording import Recording


def chrome_trace(recording: Recording) -> dict[str, Any]:
    """The object of a JSON trace (Trace Event Format): `json.dumps` of it is the file."""
    return {"traceEvents": [], "displayTimeUnit": "ns"}
