"""Recordings in processes of their own, each with empty caches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="package", autouse=True)
def _few_kernels() -> Iterator[None]:
    """A header that is compiled first pays only from the sixth kernel on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0")
        yield
