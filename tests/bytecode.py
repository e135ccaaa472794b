"""Bytecode of all sources, before the workers of pytest-xdist start.

In a fresh checkout each worker would compile all of them, at the same time as the others: nine
seconds of a processor each.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import py_compile
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

FOLDERS = ("tcw/compiler", "tcw/viewers", "tcw/workbench", "tests")


def write(config: pytest.Config, root: Path) -> None:
    """Where there is none, by all cores. What is out of date is left to the workers."""
    missing = [one for one in sources(root) if not kept_in(one).exists()]
    processes = min(len(os.sched_getaffinity(0)), len(missing))
    children = []
    for first in range(processes):
        if not (child := os.fork()):
            try:
                for source in missing[first::processes]:
                    compile_one(config, source)
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


def sources(root: Path) -> Iterator[Path]:
    for folder in FOLDERS:
        yield from sorted((root / folder).rglob("*.py"))


def has_rewritten_asserts(source: Path) -> bool:
    """A test's or a conftest's, of which pytest keeps bytecode of its own."""
    return source.name == "conftest.py" or source.name.startswith("test_")


def kept_in(source: Path) -> Path:
    if has_rewritten_asserts(source):
        return rewrite.get_cache_dir(source) / (source.stem + rewrite.PYC_TAIL)
    return Path(importlib.util.cache_from_source(str(source)))


def compile_one(config: pytest.Config, source: Path) -> None:
    """A file that does not compile is an error where it is imported."""
    target = kept_in(source)
    if not has_rewritten_asserts(source):
        py_compile.compile(str(source), str(target), quiet=2)
    elif rewrite.try_makedirs(target.parent):
        state = config.stash[rewrite.assertstate_key]
        with contextlib.suppress(SyntaxError):
            stamp, code = rewrite._rewrite_test(source, config)
            rewrite._write_pyc(state, code, stamp, target)
