"""The cache of `backend="tcw"`, damaged in every way: the results are always correct.

For each kind of damage, a fork of a process that has imported torch compiles two models of the
same shapes with a copy of a good cache in which one kind of entry is damaged. A stand-in for g++
returns what g++ built before, so that rebuilding is quick.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
import torch

from tcw.compiler.control.gate import Gate
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.engine.backend import backend
from tcw.compiler.engine.recording import listening
from tcw.compiler.trace.records import AnyRecord, Settings, Warned
from tcw.compiler.trace.writer import TraceWriter
from tests.cpu.warm import WarmStart
from tests.long import mostly_long

COMPILER = """#!{python} -SE
import hashlib, os, subprocess, sys
words = sys.argv[1:]
at = words.index("-o") + 1 if "-o" in words else 0
if not at or "-" not in words:
    os.execvp("g++", ["g++", *words])
source = sys.stdin.buffer.read()
key = hashlib.sha256(source + repr(words[: at - 1]).encode()).hexdigest()
kept = os.path.join({folder!r}, key)
if not os.path.exists(kept):
    made = kept + str(os.getpid())
    command = ["g++", *words[:at], made, *words[at + 1 :]]
    code = subprocess.run(command, input=source).returncode
    if code:
        sys.exit(code)
    os.rename(made, kept)
with open(kept, "rb") as read, open(words[at], "wb") as write:
    write.write(read.read())
"""

WORKS = """
import json, os, signal, warnings
import torch
from tcw.compiler.engine.backend import backend

MODELS = (lambda x: torch.softmax(x * 3, -1).sum(0), lambda x: torch.softmax(x + 3, 0).amax(-1))

def works():
    x = torch.linspace(-1, 1, 64).reshape(8, 8)
    for model in MODELS:
        torch.testing.assert_close(torch.compile(model, backend=backend)(x), model(x))
        assert torch.compile(model, backend=backend)(x).shape == (8,)

signal.alarm(90)
try:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        works()
    said = [str(one.message) for one in caught if "tcw" in str(one.message)]
except BaseException as error:
    said = [f"{type(error).__name__}: {error}"]
print(json.dumps(said), flush=True)
os._exit(0)
"""


@dataclass(frozen=True)
class Children:
    """Processes that say how the models work with a cache folder."""

    warm: WarmStart
    program: Path
    compiler: Path
    good: Path

    def work_with(self, folder: Path, **environment: str) -> list[str]:
        """Our warnings, or the error; nothing if all is well."""
        given = {
            **os.environ,
            "CXX": str(self.compiler),
            "TCW_STRICT": "0",
            "TCW_CACHE_DIR": str(folder),
            **environment,
        }
        process = self.warm.start([sys.executable, "-P", str(self.program)], given, [])
        printed, _ = process.communicate()
        if code := process.wait(90):
            return [f"exit code {code}"]
        said: list[str] = json.loads(printed)
        return said


@pytest.fixture(scope="module")
def children(tmp_path_factory: pytest.TempPathFactory, warm_start: WarmStart) -> Children:
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "built").mkdir()
    command = folder / "c++"
    command.write_text(COMPILER.format(python=sys.executable, folder=str(folder / "built")))
    command.chmod(0o755)
    program = folder / "works.py"
    program.write_text(WORKS)
    good = folder / "good"
    good.mkdir(mode=0o700)
    found = Children(warm_start, program, command, good)
    assert found.work_with(good) == []
    return found


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes((content[place] ^ 0x10,)) + content[place + 1 :]


BYTES = {
    "first byte": lambda content: flipped(content, 0),
    "behind the seal": lambda content: flipped(content, min(80, len(content) - 1)),
    "middle": lambda content: flipped(content, len(content) // 2),
    "last byte": lambda content: flipped(content, len(content) - 1),
    "half": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "longer": lambda content: content + b"\0",
    "zeros": lambda content: bytes(len(content)),
}
THINGS = ("fifo", "folder", "link", "gone", "rotated")
KINDS = ("graphs", "kernels", "objects", "keys")


def damage(files: list[Path], how: str) -> None:
    contents = [file.read_bytes() for file in files]
    for number, (file, content) in enumerate(zip(files, contents, strict=True)):
        if how in BYTES:
            file.write_bytes(BYTES[how](content))
            continue
        file.unlink()
        if how == "fifo":
            os.mkfifo(file)
        elif how == "folder":
            file.mkdir()
        elif how == "link":
            file.symlink_to("/dev/zero")
        elif how == "rotated":  # each has another's content: all complete, all in the wrong place
            file.write_bytes(contents[number - 1])


EACH = [(how, kind) for how in (*BYTES, *THINGS) for kind in KINDS]
ONCE = [(how, KINDS[number % len(KINDS)]) for number, how in enumerate((*BYTES, *THINGS))]
"""Each kind of damage, to one kind of entry after the other."""


@pytest.mark.parametrize(
    ("how", "kind"),
    mostly_long(EACH, [*ONCE, *(one for one in EACH if one[0] in ("half", "rotated"))]),
)
def test_a_kind_of_entry_that_is_damaged(
    children: Children, kind: str, how: str, tmp_path: Path
) -> None:
    folder = tmp_path / "cache"
    shutil.copytree(children.good, folder)
    files = sorted((folder / kind).iterdir())
    assert len(files) >= 2
    damage(files, how)
    assert children.work_with(folder) == []


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", [*BYTES, *THINGS])
def test_each_entry_alone_and_what_was_made_anew(
    children: Children, kind: str, how: str, tmp_path: Path
) -> None:
    for name in sorted(file.name for file in (children.good / kind).iterdir()):
        folder = tmp_path / name
        shutil.copytree(children.good, folder)
        damage([folder / kind / name], how)
        for _ in range(2):
            assert children.work_with(folder) == [], name


@pytest.mark.parametrize("what", ["fifo", "file", "gone"])
@pytest.mark.parametrize("kind", [*KINDS, "locks"])
@pytest.mark.long
def test_a_folder_of_a_kind_that_is_none(
    children: Children, kind: str, what: str, tmp_path: Path
) -> None:
    folder = tmp_path / "cache"
    shutil.copytree(children.good, folder)
    shutil.rmtree(folder / kind)
    if what == "fifo":
        os.mkfifo(folder / kind)
    elif what == "file":
        (folder / kind).write_bytes(b"")
    assert children.work_with(folder) == []


def test_a_capacity_below_one_graph(children: Children, tmp_path: Path) -> None:
    """An entry that is about to be loaded stays."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    assert children.work_with(folder, TCW_CACHE_BYTES="1", TCW_STRICT="1") == []
    assert list((folder / "objects").iterdir())


def test_a_cache_folder_that_is_refused_is_said_once(children: Children, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o755)
    (said,) = children.work_with(folder)
    assert "without a cache" in said
    assert f"run: chmod 700 {folder}" in said
    assert not list(folder.iterdir())


def test_in_a_recording_it_is_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.setenv("TCW_CACHE_DIR", str(tmp_path))
    written: list[bytes] = []
    recorder = Recorder(TraceWriter(written.append), Settings(file="model.py"))
    with listening(recorder, Gate({})):
        for model in (torch.sin, torch.cos):
            torch.compile(model, backend=backend)(torch.ones(3))
    (said,) = [line for line in written if b"without a cache" in line]
    assert isinstance(msgspec.json.decode(said, type=AnyRecord), Warned)
