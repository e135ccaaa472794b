"""One cache for all tests of the runtime: the launcher is built once."""

from __future__ import annotations

import pytest

from tcw.compiler.runtime.store import FileStore
from tcw.compiler.runtime.toolchain import NoCompiler, find_compiler

collect_ignore_glob = ["test_*"] if isinstance(find_compiler(), NoCompiler) else []


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> FileStore:
    return FileStore(tmp_path_factory.mktemp("cache"))
