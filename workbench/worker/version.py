"""This tool's version."""

from __future__ import annotations

import importlib.metadata


def tool_version() -> str:
    """The installed version; "0+unknown" in a checkout that is not installed."""
    try:
        return importlib.metadata.version("tcw")
    except importlib.metadata.PackageNotFoundError:
        return "0+unknown"
