"""The C++ compiler that is found, and what happens without one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tcw.compiler.codegen.cpp.isa import AVX2, AVX512
from tcw.compiler.runtime.build import BuildFailed, build
from tcw.compiler.runtime.toolchain import Compiler, NoCompiler, find_compiler, instruction_set


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def without_cxx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)


def test_no_compiler_is_an_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_compiler()
    assert isinstance(found, NoCompiler)
    assert "install g++" in found.reason


def test_cxx_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    named = script(tmp_path / "mine", 'echo "mine 1.0 $1"; echo more')
    monkeypatch.setenv("CXX", f"{named} -v1")
    found = find_compiler()
    assert found == Compiler((named, "-v1"), "mine 1.0 -v1")


@pytest.mark.parametrize("named", ["/nowhere/g++", "g++ 'unclosed", "false"])
def test_a_cxx_that_does_not_run_is_named(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("CXX", named)
    found = find_compiler()
    assert isinstance(found, NoCompiler)
    assert named in found.reason


def test_clang_where_there_is_no_gcc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script(tmp_path / "clang++", "echo clang version 16")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_compiler()
    assert isinstance(found, Compiler)
    assert found.is_clang
    assert not instruction_set(found, AVX2).builtins
    assert instruction_set(Compiler(("g++",), "g++ 12"), AVX2) is AVX2


@pytest.mark.parametrize("guarded", [False, True])
def test_guarded_gathers_are_left_out(guarded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcw.compiler.runtime.toolchain.gathers_slowly", lambda: guarded)
    gnu = Compiler(("g++",), "g++ 12")
    assert instruction_set(gnu, AVX512).gathers is not guarded
    assert instruction_set(gnu, AVX2) is AVX2


def test_a_compiler_that_only_fails(tmp_path: Path) -> None:
    broken = Compiler((script(tmp_path / "g++", "echo 'fatal error: no cc1plus' >&2; exit 1"),), "")
    with pytest.raises(BuildFailed, match=r"g\+\+ ended with code 1: fatal error: no cc1plus"):
        build("", broken, ())


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    said = "ld: error: final link failed: No space left on device"
    script_of_it = (
        f"echo 'collect2: error: ld returned 1 exit status' >&2; echo '{said}' >&2; exit 1"
    )
    full = Compiler((script(tmp_path / "g++", script_of_it),), "")
    with pytest.raises(BuildFailed, match="No space left on device"):
        build("", full, ())


def test_a_compiler_that_makes_nothing(tmp_path: Path) -> None:
    lazy = Compiler((script(tmp_path / "g++", "exit 0"),), "")
    with pytest.raises(BuildFailed, match="no shared library"):
        build("", lazy, ())


def test_a_compiler_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="does not start"):
        build("", Compiler((str(tmp_path / "g++"),), ""), ())


def test_a_compiler_that_is_stopped_leaves_neither_files_nor_programs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scratch, temporary = tmp_path / "scratch", tmp_path / "tmp"
    scratch.mkdir()
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tcw.compiler.runtime.build.SECONDS", 1)
    pid = tmp_path / "pid"
    slow = script(tmp_path / "g++", f'touch "$TMPDIR/cc.s"; sleep 1000 & echo $! > {pid}; wait')
    with pytest.raises(BuildFailed, match="stopped after 1 seconds"):
        build("", Compiler((slow,), ""), (), scratch=scratch)
    assert not [*scratch.iterdir(), *temporary.iterdir()]
    state = Path(f"/proc/{pid.read_text().strip()}/stat")
    for _ in range(100):  # it is killed; whoever inherits it collects it
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.02)
    else:
        pytest.fail("the compiler's child goes on")
