"""Units are built once, whichever process asks, and a damaged library is built again."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from tcw.compiler.codegen.cpp.isa import detect
from tcw.compiler.runtime.build import BuildFailed
from tcw.compiler.runtime.libraries import LibrarySource, kernel_key, library, without_comments
from tcw.compiler.runtime.store import FileStore
from tcw.compiler.runtime.toolchain import (
    Compiler,
    NoCompiler,
    find_compiler,
    unit_flags,
)

TEXT = 'extern "C" int answer() { return 42; }\n'

found = find_compiler()
pytestmark = pytest.mark.skipif(isinstance(found, NoCompiler), reason="no C++ compiler")


@pytest.fixture
def compiler() -> Compiler:
    assert isinstance(found, Compiler)
    return found


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path)


def unit(text: str = TEXT) -> LibrarySource:
    return LibrarySource(text, unit_flags(detect()))


def test_built_once(compiler: Compiler, store: FileStore) -> None:
    first = library(unit(), compiler, store)
    again = library(unit(), compiler, FileStore(store.folder))
    assert (first.hit, again.hit) == (False, True)
    assert again.path == first.path
    assert again.cpu_seconds == first.cpu_seconds > 0
    assert ctypes.CDLL(str(first.path)).answer() == 42


def test_comments_are_not_part_of_the_key(compiler: Compiler) -> None:
    key = kernel_key(unit(), compiler)
    moved = f"// model.py:12\n{TEXT.rstrip()}  // model.py:13\n"
    assert kernel_key(unit(moved), compiler) == key
    assert kernel_key(unit(TEXT.replace("42", "43")), compiler) != key


def test_all_else_is_part_of_the_key(compiler: Compiler) -> None:
    keys = {
        kernel_key(unit(), compiler),
        kernel_key(LibrarySource(TEXT, ("-O0",)), compiler),
        kernel_key(LibrarySource(TEXT, unit().flags, ("-lm",)), compiler),
        kernel_key(unit(), Compiler(compiler.command, "g++ 99")),
    }
    assert len(keys) == 4


def test_slashes_in_a_string_are_no_comment() -> None:
    assert without_comments('say("a // b");\n') == 'say("a // b");\n'


@pytest.mark.parametrize("damage", [b"", b"\x7fELF", b"x" * 100_000])
def test_a_damaged_library_is_built_again(
    compiler: Compiler, store: FileStore, damage: bytes
) -> None:
    path = library(unit(), compiler, store).path
    path.write_bytes(damage)
    again = library(unit(), compiler, store)
    assert not again.hit
    assert ctypes.CDLL(str(again.path)).answer() == 42


def test_a_library_that_was_evicted_is_built_again(compiler: Compiler, store: FileStore) -> None:
    library(unit(), compiler, store).path.unlink()
    assert not library(unit(), compiler, store).hit


def test_an_entry_that_is_no_entry_is_built_again(compiler: Compiler, store: FileStore) -> None:
    library(unit(), compiler, store)
    store.write_sealed("kernels", f"{kernel_key(unit(), compiler)}.json", b"[]")
    assert not library(unit(), compiler, store).hit


def test_what_the_compiler_refuses_is_said(compiler: Compiler, store: FileStore) -> None:
    with pytest.raises(BuildFailed, match=r"line 2 of the unit: .*nonsense.*: int x = nonsense;"):
        library(unit(f"{TEXT}int x = nonsense;\n"), compiler, store)
    assert not (store.folder / "kernels").exists()
    assert not list(store.folder.glob("*.so"))


PROCESS = """
import sys
from pathlib import Path
from tcw.compiler.runtime.libraries import LibrarySource, library
from tcw.compiler.runtime.store import FileStore
from tcw.compiler.runtime.toolchain import find_compiler
sys.stdin.readline()
source = LibrarySource(sys.argv[2], ("-shared", "-fPIC"))
made = library(source, find_compiler(), FileStore(Path(sys.argv[1])))
print(made.hit, made.path)
"""


def test_eight_processes_build_a_unit_once(store: FileStore) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(store.folder), TEXT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=120)[0].split() for process in processes]
    assert sorted(hit for hit, _ in answers) == ["False"] + ["True"] * 7
    assert len({path for _, path in answers}) == 1
    assert [path.suffix for path in store.folder.iterdir() if path.is_file()] == []
