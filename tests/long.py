"""The part of a matrix that plain `pytest` runs; the rest of it is `long`."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def mostly_long(values: Iterable[Any], plain: Container[Any]) -> list[ParameterSet]:
    """Parameters for a test each: a value, or a tuple of them. Those not in `plain` are long."""
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=() if value in plain else pytest.mark.long,
        )
        for value in values
    ]
